"""Models in PyTorch alone, recorded with whichever version of it runs this; for capture_versions.py.

    python version_models.py FOLDER
"""
from __future__ import annotations

import pathlib
import sys
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from forerun.capture import capture

functional = torch.nn.functional
Json = Dict[str, Any]
Case = Callable[[], Tuple[Any, Any, Any, Json]]  # gives model, optimizer, batch, and options of the capture
WIDTH, WORDS = 512, 8000


class Attention(nn.Module):
    """Four heads share keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.key, self.value = nn.Linear(WIDTH, WIDTH // 4), nn.Linear(WIDTH, WIDTH // 4)

    def forward(self, x: Any) -> Any:
        def heads(y: Any, times: int) -> Any:
            split = y.view(*x.shape[:2], -1, 64).transpose(1, 2)
            return split.repeat_interleave(times, dim=1) if times > 1 else split

        query, key, value = heads(self.query(x), 1), heads(self.key(x), 4), heads(self.value(x), 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Experts(nn.Module):
    """Two of four for each token, by a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4, bias=False)
        self.experts = nn.ModuleList(feed_forward() for _ in range(4))

    def forward(self, x: Any) -> Any:
        tokens = x.reshape(-1, WIDTH)
        weights, chosen = self.gate(tokens).softmax(-1).topk(2)
        result = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, which = torch.where(chosen == number)
            result.index_add_(0, rows, (expert(tokens[rows]) * weights[rows, which, None]).to(result.dtype))
        return result.view(x.shape)


class Lora(nn.Module):
    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(base.in_features, 8, bias=False), nn.Linear(8, base.out_features, bias=False)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.up(self.down(functional.dropout(x, 0.1, self.training)))


def feed_forward() -> Any:
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


class Block(nn.Module):
    def __init__(self, inner: Any, norm: Any) -> None:
        super().__init__()
        self.norms, self.attention, self.inner = nn.ModuleList([norm(WIDTH), norm(WIDTH)]), Attention(), inner()

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norms[0](x))
        return x + self.inner(self.norms[1](x))


class Decoder(nn.Module):
    def __init__(self, inner: Any = feed_forward, norm: Any = nn.LayerNorm, again: bool = False) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.blocks, self.again = nn.ModuleList(Block(inner, norm) for _ in range(4)), again

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head(x)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(2 * WIDTH, 64)
        self.rnn = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True, bidirectional=True, dropout=0.1)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.rnn(self.embed(tokens))[0])


def convolutions() -> Any:
    def stage(before: int, after: int) -> List[Any]:
        conv = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)
        depthwise = nn.Conv2d(after, after, 3, padding=1, groups=after)
        return [conv, nn.BatchNorm2d(after), nn.ReLU(inplace=True), depthwise]

    stages = stage(3, 64) + stage(64, 128) + stage(128, 256) + [nn.GroupNorm(8, 256), nn.Hardswish()]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(256, 100))


def lora() -> Any:
    model = Decoder().requires_grad_(False)
    for block in model.blocks:
        block.attention.query, block.attention.value = Lora(block.attention.query), Lora(block.attention.value)
        for part in (block.attention.query, block.attention.value):
            part.down.requires_grad_(True), part.up.requires_grad_(True)
    return model


def text(classes: int = WORDS) -> Any:
    return torch.randint(WORDS, (8, 256)), torch.randint(classes, (8, 256))


def case(make: Any, batch: Any, optimizer: Any = torch.optim.AdamW, **options: Any) -> Case:
    def build() -> Tuple[Any, Any, Any, Json]:
        model = make()
        half = options.get("precision") == "bf16"
        extra: Json = {"fused": True} if half else {}
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return model, optimizer(trained, lr=1e-3, **extra), batch(), options

    return build


def images() -> Any:
    return torch.randn(32, 3, 64, 64), torch.randint(100, (32,))


CASES: Dict[str, Case] = {
    "decoder": case(Decoder, text),
    "decoder, amp": case(Decoder, text, precision="amp_bf16"),
    "RMS norm": case(lambda: Decoder(norm=nn.RMSNorm), text),
    "experts": case(lambda: Decoder(Experts), text, precision="amp_bf16"),
    "conv net": case(convolutions, images, torch.optim.SGD, precision="amp_bf16"),
    "LSTM": case(Tagger, lambda: text(64), torch.optim.Adam),
    "LSTM, amp": case(Tagger, lambda: text(64), torch.optim.Adam, precision="amp_fp16"),
    "LoRA": case(lora, text, precision="amp_bf16"),
    "checkpoint": case(lambda: Decoder(again=True), text, precision="amp_bf16"),
    "accumulate": case(Decoder, text, accumulate=4),
    "GradScaler": case(Decoder, text, precision="amp_fp16", clip_grad=1.0),
    "pure bf16": case(Decoder, text, precision="bf16"),
}


def record(folder: pathlib.Path) -> int:
    """Writes a record of each model, or NAME.error."""
    for name, build in CASES.items():
        try:
            model, optimizer, batch, options = build()
            capture(model, optimizer, batch, backend="generic", name=name, file=folder / f"{name}.jsonl", **options)
        except Exception as error:  # to be shown in its place
            (folder / f"{name}.error").write_text(f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(record(pathlib.Path(sys.argv[1])))
