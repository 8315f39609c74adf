"""DiT as its paper describes it (adaLN-Zero blocks on patches of a latent image), for test_config_models.py."""

from __future__ import annotations

import math
from typing import Any, Tuple

import needs_torch  # noqa: F401  (skips where there is no PyTorch)

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WAVES = 256


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        packed = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = packed.unbind(0)
        x = F.scaled_dot_product_attention(query, key, value)
        return self.proj(x.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.act = nn.GELU(approximate="tanh")
        self.fc2 = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, ratio: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.mlp = Mlp(width, int(width * ratio))
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x: Tensor, told: Tensor) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN_modulation(told).chunk(6, dim=1)
        x = x + gate1.unsqueeze(1) * self.attn(modulate(self.norm1(x), shift1, scale1))
        return x + gate2.unsqueeze(1) * self.mlp(modulate(self.norm2(x), shift2, scale2))


class Final(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.norm_final = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.linear = nn.Linear(width, out)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))

    def forward(self, x: Tensor, told: Tensor) -> Tensor:
        shift, scale = self.adaLN_modulation(told).chunk(2, dim=1)
        return self.linear(modulate(self.norm_final(x), shift, scale))


class Steps(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(WAVES, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, steps: Tensor) -> Tensor:
        half = WAVES // 2
        places = torch.arange(0, half, dtype=torch.float32, device=steps.device)
        frequencies = torch.exp(-math.log(10000) * places / half)
        angles = steps[:, None].float() * frequencies[None]
        return self.mlp(torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1))


class Labels(nn.Module):
    def __init__(self, classes: int, width: int, dropped: float) -> None:
        super().__init__()
        self.classes, self.dropped = classes, dropped
        self.embedding_table = nn.Embedding(classes + (dropped > 0), width)

    def forward(self, labels: Tensor) -> Tensor:
        if self.dropped > 0:
            drop = torch.rand(labels.shape[0], device=labels.device) < self.dropped
            labels = torch.where(drop, self.classes, labels)
        return self.embedding_table(labels)


class Patches(nn.Module):
    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)


class Dit(nn.Module):
    """The arguments have the names and defaults of the authors' class, which are those of a config of type `dit`."""

    def __init__(self, input_size: int = 32, patch_size: int = 2, in_channels: int = 4, hidden_size: int = 1152,
                 depth: int = 28, num_heads: int = 16, mlp_ratio: float = 4.0, class_dropout_prob: float = 0.1,
                 num_classes: int = 1000, learn_sigma: bool = True, **unused: Any) -> None:
        super().__init__()
        self.patch, self.side, self.learn_sigma = patch_size, input_size // patch_size, learn_sigma
        self.x_embedder = Patches(in_channels, hidden_size, patch_size)
        self.t_embedder = Steps(hidden_size)
        self.y_embedder = Labels(num_classes, hidden_size, class_dropout_prob)
        self.pos_embed = nn.Parameter(torch.zeros(1, self.side ** 2, hidden_size), requires_grad=False)
        self.blocks = nn.ModuleList(Block(hidden_size, num_heads, mlp_ratio) for _ in range(depth))
        self.final_layer = Final(hidden_size, patch_size ** 2 * in_channels * (1 + learn_sigma))

    def forward(self, batch: Tuple[Tensor, Tensor, Tensor]) -> Tensor:
        images, steps, labels = batch
        x = self.x_embedder(images) + self.pos_embed
        told = self.t_embedder(steps) + self.y_embedder(labels)
        for block in self.blocks:
            x = block(x, told)
        x = self.final_layer(x, told)
        x = x.reshape(x.shape[0], self.side, self.side, self.patch, self.patch, -1).permute(0, 5, 1, 3, 2, 4)
        x = x.reshape(x.shape[0], -1, self.side * self.patch, self.side * self.patch)
        return x.chunk(2, dim=1)[0] if self.learn_sigma else x
