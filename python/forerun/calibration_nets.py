"""Small networks that `forerun.calibrate` trains an iteration of, to read ops among others: PyTorch is all they need.

A network is drawn by its number: its kind (images, tokens, pixels, series, tables), its blocks, and how it is trained.
Blocks of one network differ from one another, since repeated ones would tell nothing new, and sizes are spread over
doublings from what only the host bounds to what fills a fortieth of the GPU's memory. No published network is among
them: blocks are what most have in common.
"""
from __future__ import annotations

import dataclasses
import random
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .families.drawing import log_integer, log_multiple, weighted

_BYTES_AN_ELEMENT = 1200  # of the GPU's memory, for one of a network's widest activation
_LEAST_ELEMENTS = 1 << 16
_MOST_ELEMENTS = 1 << 26
_MOST_LOGITS = 4  # times the elements
_CHANNELS_LAST = 0.35


@dataclasses.dataclass(frozen=True)
class Net:
    """A network on the device, what it is fed with, and how it is trained."""

    kind: str
    model: nn.Module
    batch: Tuple[Tensor, ...]
    run: Mapping[str, Any]  # precision and optimizer, as a record has them


@dataclasses.dataclass(frozen=True)
class Room:
    """Where a network is made, and how large its activations may be."""

    device: torch.device
    most_elements: int
    half: str  # the autocast that suits the GPU

    @staticmethod
    def of(device: torch.device) -> Room:
        properties = torch.cuda.get_device_properties(device)
        most = min(_MOST_ELEMENTS, max(_LEAST_ELEMENTS, properties.total_memory // _BYTES_AN_ELEMENT))
        return Room(device, most, "amp_bf16" if properties.major >= 8 else "amp_fp16")

    def elements(self, rng: random.Random) -> int:
        return log_integer(rng, min(_LEAST_ELEMENTS, self.most_elements), self.most_elements)


def draw_net(number: int, room: Room) -> Net:
    """The network of that number; equal numbers in equal rooms give equal networks."""
    rng = random.Random(f"forerun.calibrate:{number}")
    kind = weighted(rng, tuple((name, share) for name, (share, _) in KINDS.items()))
    precision = weighted(rng, (("fp32", 0.35), ("tf32", 0.15), (room.half, 0.5)))
    run: Dict[str, Any] = {"precision": precision, "optimizer": _optimizer(rng), "channels_last": False}
    torch.manual_seed(number)
    with room.device:
        model, batch = KINDS[kind][1](rng, room)
        if kind in ("images", "pixels") and rng.random() < _CHANNELS_LAST:
            run["channels_last"] = True
            model = model.to(memory_format=torch.channels_last)
            batch = (batch[0].contiguous(memory_format=torch.channels_last), *batch[1:])
    return Net(kind, model.train(), batch, run)


def _optimizer(rng: random.Random) -> Dict[str, Any]:
    """One that updates all parameters at once: those that take one after the other run hundreds of equal small ops."""
    name = rng.choice(("SGD", "Adam", "AdamW"))
    return {"name": name, "impl": rng.choice(("foreach", "fused")), "lr": 1e-3, "momentum": 0.9 if name == "SGD" else 0}


# -- images ------------------------------------------------------------------------------------------------------------

_ACTIVATIONS: Sequence[Tuple[Callable[[], nn.Module], float]] = (
    (lambda: nn.ReLU(inplace=True), 0.45), (lambda: nn.SiLU(inplace=True), 0.15), (nn.GELU, 0.15),
    (lambda: nn.Hardswish(inplace=True), 0.1), (lambda: nn.LeakyReLU(0.1, inplace=True), 0.08), (nn.Tanh, 0.07),
)


def _activation(rng: random.Random) -> nn.Module:
    return weighted(rng, _ACTIVATIONS)()


def _convolution(rng: random.Random, inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1,
                 active: bool = True) -> nn.Sequential:
    """A convolution with its norm and what follows; some have a bias and no norm."""
    bare = rng.random() < 0.15
    layers: List[nn.Module] = [nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=bare)]
    if not bare:
        layers.append(nn.GroupNorm(8, outer) if rng.random() < 0.1 and outer % 8 == 0 else nn.BatchNorm2d(outer))
    if active:
        layers.append(_activation(rng))
    return nn.Sequential(*layers)


class _Residual(nn.Module):
    def __init__(self, rng: random.Random, body: nn.Module, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.body = body
        self.short = nn.Identity() if inner == outer and stride == 1 else _convolution(rng, inner, outer, 1, stride,
                                                                                       active=False)
        self.active = _activation(rng)

    def forward(self, x: Tensor) -> Tensor:
        return self.active(self.body(x) + self.short(x))


class _Squeeze(nn.Module):
    """Channels weighed by a mean over the image."""

    def __init__(self, rng: random.Random, width: int) -> None:
        super().__init__()
        inner = max(4, width // rng.choice((4, 8, 16)))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), _activation(rng),
                                  nn.Conv2d(inner, width, 1), rng.choice((nn.Sigmoid, nn.Hardsigmoid))())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x)


class _ChannelMixer(nn.Module):
    """A wide depth-wise convolution, then linear layers over the channels."""

    def __init__(self, rng: random.Random, width: int) -> None:
        super().__init__()
        kernel = rng.choice((3, 5, 7, 7))
        self.space = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width)
        self.norm, self.scale = nn.LayerNorm(width), nn.Parameter(torch.full((width,), 0.1))
        inner = rng.choice((2, 3, 4)) * width
        self.channels = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.scale * self.channels(self.norm(self.space(x).permute(0, 2, 3, 1)))
        return x + mixed.permute(0, 3, 1, 2)


class _Growing(nn.Module):
    """Layers that each see all that came before."""

    def __init__(self, rng: random.Random, width: int) -> None:
        super().__init__()
        growth = log_multiple(rng, 8, 64, 4)
        self.layers = nn.ModuleList([
            nn.Sequential(nn.BatchNorm2d(width + i * growth), nn.ReLU(inplace=True),
                          _convolution(rng, width + i * growth, 4 * growth, 1),
                          nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)) for i in range(3)])
        self.width = width + 3 * growth

    def forward(self, x: Tensor) -> Tensor:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


def _divisor(rng: random.Random, width: int) -> int:
    return rng.choice([groups for groups in (1, 1, 2, 4, 8, 16, 32) if width % groups == 0])


def _image_block(rng: random.Random, inner: int, outer: int, stride: int) -> Tuple[nn.Module, int]:
    """A block and its width."""
    kind = weighted(rng, (("basic", 0.25), ("bottleneck", 0.25), ("inverted", 0.2), ("mixer", 0.1), ("growing", 0.08),
                          ("plain", 0.12)))
    kernel = rng.choice((3, 3, 3, 5))
    if kind == "basic":
        body = nn.Sequential(_convolution(rng, inner, outer, 3, stride),
                             _convolution(rng, outer, outer, 3, active=False))
        return _Residual(rng, body, inner, outer, stride), outer
    if kind == "bottleneck":
        middle = max(8, outer // rng.choice((1, 2, 4)) // 8 * 8)
        body = nn.Sequential(_convolution(rng, inner, middle, 1),
                             _convolution(rng, middle, middle, 3, stride, _divisor(rng, middle)),
                             *([_Squeeze(rng, middle)] if rng.random() < 0.2 else []),
                             _convolution(rng, middle, outer, 1, active=False))
        return _Residual(rng, body, inner, outer, stride), outer
    if kind == "inverted":
        middle = inner * rng.choice((2, 3, 4, 6))
        return nn.Sequential(_convolution(rng, inner, middle, 1),
                             _convolution(rng, middle, middle, kernel, stride, middle),
                             *([_Squeeze(rng, middle)] if rng.random() < 0.5 else []),
                             _convolution(rng, middle, outer, 1, active=False)), outer
    down: List[nn.Module] = [nn.Conv2d(inner, outer, 2, 2)] if stride == 2 else []
    if kind == "mixer":
        width = outer if down else inner
        return nn.Sequential(*down, _ChannelMixer(rng, width)), width
    if kind == "growing":
        growing = _Growing(rng, outer if down else inner)
        return nn.Sequential(*down, growing), growing.width
    pool = [rng.choice((nn.MaxPool2d, nn.AvgPool2d))(3, stride, 1)] if stride == 2 else []
    return nn.Sequential(_convolution(rng, inner, outer, kernel), *pool), outer


def _side(rng: random.Random) -> int:
    return rng.choice((32, 64, 96, 128, 160, 192, 224, 224, 256, rng.randint(24, 288)))


def _images(rng: random.Random, room: Room) -> Tuple[nn.Module, Tuple[Tensor, ...]]:
    side, width = _side(rng), log_multiple(rng, 16, 192, 8)
    stride = 1 if side < 80 else rng.choice((2, 2, 4))
    kernel = rng.choice((3, 3, 7, 4)) if stride > 1 else 3
    colours, classes = weighted(rng, ((3, 0.85), (1, 0.15))), rng.choice((10, 100, 1000))
    inner, least = width, side // stride
    layers: List[nn.Module] = [_convolution(rng, colours, width, kernel, stride)]
    if stride == 2 and rng.random() < 0.5:
        layers.append(nn.MaxPool2d(3, 2, 1))
        least //= 2
    first = width * (side // stride) ** 2
    for _ in range(rng.randint(3, 6)):
        shrinks = 2 if least >= 12 and rng.random() < 0.45 else 1
        outer = min(2048, log_multiple(rng, 16, 64, 8) + inner if rng.random() < 0.4 else inner * shrinks)
        block, inner = _image_block(rng, inner, outer // 8 * 8, shrinks)
        layers.append(block)
        least //= shrinks
    head: List[nn.Module] = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(inner, classes)]
    batch = max(1, min(512, room.elements(rng) // first))
    return nn.Sequential(*layers, *head), (torch.randn(batch, colours, side, side),
                                           torch.randint(classes, (batch,)))


class _Pixels(nn.Module):
    """Down, up again, and what was skipped beside it."""

    def __init__(self, rng: random.Random, colours: int, width: int, classes: int) -> None:
        super().__init__()
        self.first, self.down = _convolution(rng, colours, width, 3), _convolution(rng, width, 2 * width, 3)
        self.inside, _ = _image_block(rng, 2 * width, 2 * width, 1)
        outer = _width_of(self.inside, 2 * width)
        self.up: nn.Module = nn.ConvTranspose2d(outer, width, 2, 2) if rng.random() < 0.6 else nn.Sequential(
            nn.Upsample(scale_factor=2, mode=rng.choice(("nearest", "bilinear"))),
            nn.Conv2d(outer, width, 3, padding=1))
        self.last, self.out = _convolution(rng, 2 * width, width, 3), nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skipped = self.first(x)
        below = self.inside(self.down(F.max_pool2d(skipped, 2)))
        return self.out(self.last(torch.cat([skipped, self.up(below)], 1)))


def _width_of(block: nn.Module, usual: int) -> int:
    growing = [module.width for module in block.modules() if isinstance(module, _Growing)]
    return growing[0] if growing else usual


def _pixels(rng: random.Random, room: Room) -> Tuple[nn.Module, Tuple[Tensor, ...]]:
    side, width, classes = _side(rng) // 8 * 8, log_multiple(rng, 16, 96, 8), rng.choice((2, 19, 21))
    batch = max(1, min(128, room.elements(rng) // (width * side * side)))
    labels = torch.randint(classes, (batch, side, side))
    return _Pixels(rng, 3, width, classes), (torch.randn(batch, 3, side, side), labels)


# -- tokens ------------------------------------------------------------------------------------------------------------


class _RootMeanSquare(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        value = x.to(torch.float32)
        value = value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * value.to(x.dtype)


class _Attention(nn.Module):
    """Written out or fused, causal or not, with positions that turn or without, with fewer keys than queries or not."""

    def __init__(self, rng: random.Random, heads: int, head: int) -> None:
        super().__init__()
        width = heads * head
        shared = rng.choice([part for part in (1, 1, 2, 4) if heads % part == 0])
        self.heads, self.groups, self.head = heads, heads // shared, head
        self.bias = rng.random() < 0.6
        self.together = rng.random() < 0.4 and shared == 1
        sizes = [3 * width] if self.together else [width, self.groups * head, self.groups * head]
        self.into = nn.ModuleList([nn.Linear(width, size, bias=self.bias) for size in sizes])
        self.out = nn.Linear(width, width, bias=self.bias)
        self.causal, self.turned, self.eager = rng.random() < 0.6, rng.random() < 0.4, rng.random() < 0.3
        self.dropout = rng.choice((0.0, 0.1))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.into[0](x).chunk(3, -1) if self.together else [layer(x) for layer in self.into]
        query, key, value = (part.view(batch, length, -1, self.head).transpose(1, 2) for part in parts)
        if self.turned:
            query, key = self._turn(query), self._turn(key)
        if self.groups != self.heads:
            times = self.heads // self.groups
            key, value = (part[:, :, None].expand(-1, -1, times, -1, -1).reshape(batch, self.heads, length, self.head)
                          for part in (key, value))
        seen = self._eager(query, key, value) if self.eager else F.scaled_dot_product_attention(
            query, key, value, dropout_p=self.dropout, is_causal=self.causal)
        return self.out(seen.transpose(1, 2).reshape(batch, length, -1))

    def _turn(self, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[2], device=x.device).float(),
                             torch.full((self.head // 2,), 0.1, device=x.device))
        angles = torch.cat((angles, angles), -1).to(x.dtype)
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()

    def _eager(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = torch.matmul(query, key.transpose(2, 3)) / self.head ** 0.5
        if self.causal:
            length = scores.shape[-1]
            hidden = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        shares = F.dropout(torch.softmax(scores, -1, dtype=torch.float32).to(value.dtype), self.dropout)
        return torch.matmul(shares, value)


class _FeedForward(nn.Module):
    def __init__(self, rng: random.Random, width: int, inner: int) -> None:
        super().__init__()
        bias = rng.random() < 0.6
        self.gated = rng.random() < 0.4
        self.up, self.down = nn.Linear(width, inner, bias=bias), nn.Linear(inner, width, bias=bias)
        self.gate = nn.Linear(width, inner, bias=bias) if self.gated else nn.Identity()
        self.active: nn.Module = rng.choice((nn.GELU(), nn.GELU("tanh"), nn.ReLU(), nn.SiLU()))

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.active(self.gate(x)) * self.up(x) if self.gated else self.active(self.up(x)))


class _TokenBlock(nn.Module):
    """Attention and linear layers, each with its norm before or behind."""

    def __init__(self, rng: random.Random, heads: int, head: int) -> None:
        super().__init__()
        width = heads * head
        self.before = rng.random() < 0.7
        norm = rng.choice((nn.LayerNorm, nn.LayerNorm, _RootMeanSquare))
        self.first, self.second = norm(width), norm(width)
        self.attention = _Attention(rng, heads, head)
        inner = 4 * width if rng.random() < 0.5 else log_multiple(rng, max(256, width), 6 * max(256, width), 64)
        self.forward_part, self.dropout = _FeedForward(rng, width, inner), nn.Dropout(rng.choice((0.0, 0.1)))

    def forward(self, x: Tensor) -> Tensor:
        if self.before:
            x = x + self.dropout(self.attention(self.first(x)))
            return x + self.dropout(self.forward_part(self.second(x)))
        x = self.first(x + self.dropout(self.attention(x)))
        return self.second(x + self.dropout(self.forward_part(x)))


class _Tokens(nn.Module):
    def __init__(self, rng: random.Random, vocab: int, heads: int, head: int, length: int) -> None:
        super().__init__()
        width = heads * head
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[_TokenBlock(rng, heads, head) for _ in range(rng.randint(1, 3))])
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocab, bias=rng.random() < 0.3)
        if rng.random() < 0.4:
            self.out.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.out(self.norm(self.blocks(self.words(tokens) + self.places(places))))


def _tokens(rng: random.Random, room: Room) -> Tuple[nn.Module, Tuple[Tensor, ...]]:
    heads, head = log_integer(rng, 2, 32), weighted(rng, ((64, 0.6), (128, 0.2), (32, 0.1), (80, 0.05), (96, 0.05)))
    length = log_integer(rng, 32, 2048) // 8 * 8
    vocab = rng.choice((8000, 30522, 32000, 50257, log_integer(rng, 1000, 64000)))
    most = max(length, _MOST_LOGITS * room.most_elements // vocab)
    batch = max(1, min(room.elements(rng) // (heads * head), most) // length)
    tokens = torch.randint(vocab, (batch, length))
    return _Tokens(rng, vocab, heads, head, length), (tokens, tokens)


# -- series and tables -------------------------------------------------------------------------------------------------


class _Series(nn.Module):
    """Words through recurrent layers, or samples of a sound through convolutions and a norm."""

    def __init__(self, rng: random.Random, vocab: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        hidden = log_multiple(rng, 64, 1536, 8)
        layers = rng.randint(1, 3)
        kind = rng.choice((nn.LSTM, nn.LSTM, nn.RNN))
        self.inside = kind(width, hidden, layers, batch_first=True, bidirectional=rng.random() < 0.2)
        self.out = nn.Linear(hidden * (2 if self.inside.bidirectional else 1), vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.inside(self.words(tokens))[0])


def _series(rng: random.Random, room: Room) -> Tuple[nn.Module, Tuple[Tensor, ...]]:
    vocab, width, length = log_integer(rng, 1000, 32000), log_multiple(rng, 64, 1024, 32), log_integer(rng, 16, 256)
    batch = max(1, min(256, room.elements(rng) // max(width, vocab // _MOST_LOGITS) // length))
    tokens = torch.randint(vocab, (batch, length))
    return _Series(rng, vocab, width), (tokens, tokens)


class _Sound(nn.Module):
    def __init__(self, rng: random.Random, width: int) -> None:
        super().__init__()
        layers: List[nn.Module] = []
        inner = 1
        for _ in range(rng.randint(2, 4)):
            kernel = rng.choice((3, 5, 9))
            layers += [nn.Conv1d(inner, width, kernel, rng.choice((1, 2, 4)), kernel // 2), nn.BatchNorm1d(width),
                       rng.choice((nn.ReLU, nn.GELU))()]
            inner = width
            width = width * rng.choice((1, 2))
        self.layers, self.out = nn.Sequential(*layers), nn.Linear(inner, 35)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layers(x).mean(-1))


def _sound(rng: random.Random, room: Room) -> Tuple[nn.Module, Tuple[Tensor, ...]]:
    width, length = log_multiple(rng, 32, 256, 8), rng.choice((4000, 16000, log_integer(rng, 1000, 48000)))
    batch = max(1, min(256, room.elements(rng) // (width * length)))
    return _Sound(rng, width), (torch.randn(batch, 1, length), torch.randint(35, (batch,)))


class _Tables(nn.Module):
    """Rows looked up and summed, beside numbers, through linear layers."""

    def __init__(self, rng: random.Random, rows: Sequence[int], width: int, numbers: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(count, width, mode="sum") for count in rows])
        inner, layers = width * len(rows) + numbers, []  # type: int, List[nn.Module]
        for _ in range(rng.randint(2, 4)):
            outer = log_multiple(rng, 64, 4096, 64)
            layers += [nn.Linear(inner, outer), _activation(rng)]
            inner = outer
        self.top = nn.Sequential(*layers, nn.Linear(inner, 2))

    def forward(self, numbers: Tensor, indices: Tensor) -> Tensor:
        found = [table(indices[:, place]) for place, table in enumerate(self.tables)]
        return self.top(torch.cat([numbers, *found], 1))


def _tables(rng: random.Random, room: Room) -> Tuple[nn.Module, Tuple[Tensor, ...]]:
    width, numbers = log_multiple(rng, 8, 128, 8), log_integer(rng, 4, 256)
    rows = [log_integer(rng, 100, min(1_000_000, room.most_elements // width)) for _ in range(rng.randint(3, 12))]
    batch = max(16, min(65536, room.elements(rng) // 4096))
    many = rng.choice((1, 4, 16))
    indices = torch.randint(min(rows), (batch, len(rows), many))
    return _Tables(rng, rows, width, numbers), (torch.randn(batch, numbers), indices, torch.randint(2, (batch,)))


Maker = Callable[[random.Random, Room], Tuple[nn.Module, Tuple[Tensor, ...]]]

# How often each kind is drawn, and what makes it.
KINDS: Mapping[str, Tuple[float, Maker]] = {
    "images": (0.52, _images), "tokens": (0.28, _tokens), "pixels": (0.07, _pixels), "series": (0.06, _series),
    "sound": (0.03, _sound), "tables": (0.04, _tables),
}
