"""Families written out in torch.nn, module by module as the zoo names them: alexnet, unet, recurrent language models,
nn.Transformer as a language model, and DLRM.
"""

from __future__ import annotations

import itertools
from typing import Any, List, Mapping, Sequence

import torch
from torch import Tensor, nn

from .vision import classes_of

# Rows of the 26 categorical features of the Criteo Kaggle data.
CRITEO_ROWS = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10,
               5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572)


class AlexNet(nn.Module):
    """AlexNet (one tower, as torchvision has it) with open widths."""

    def __init__(self, channels: int, multiplier: float, units: int, classes: int, dropout: float) -> None:
        super().__init__()
        widths = [int(width * multiplier) for width in (64, 192, 384, 256, 256)]
        self.features = nn.Sequential(
            nn.Conv2d(channels, widths[0], 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(widths[0], widths[1], 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(widths[1], widths[2], 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(widths[2], widths[3], 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(widths[3], widths[4], 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(widths[4] * 36, units), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(units, units), nn.ReLU(inplace=True), nn.Linear(units, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def alexnet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return AlexNet(input[2], args.get("mult", 1.0), args.get("fc", 4096), classes_of(args, input),
                   args.get("dropout", 0.5))


class _DoubleConv(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inner, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
            nn.Conv2d(outer, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True))

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class _Down(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), _DoubleConv(inner, outer))

    def forward(self, x: Tensor) -> Tensor:
        return self.maxpool_conv(x)


class _Up(nn.Module):
    """Doubles the side and puts the skipped features before what comes from below."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inner, outer, 2, stride=2)
        self.conv = _DoubleConv(2 * outer, outer)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        rows, columns = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        if rows or columns:
            x = nn.functional.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([skip, x], dim=1))


class _Pixels(nn.Module):
    def __init__(self, inner: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inner, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class UNet(nn.Module):
    """U-Net with padded convolutions, batch norm and transposed convolutions; a class for every pixel."""

    def __init__(self, channels: int, width: int, depth: int, classes: int) -> None:
        super().__init__()
        self.depth = depth
        self.inc = _DoubleConv(channels, width)
        for i in range(depth):
            self.add_module(f"down{i + 1}", _Down(width << i, width << (i + 1)))
        for i in range(depth):
            self.add_module(f"up{i + 1}", _Up(width << (depth - i), width << (depth - i - 1)))
        self.outc = _Pixels(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inc(x)
        skips: List[Tensor] = []
        for i in range(self.depth):
            skips.append(x)
            x = self.get_submodule(f"down{i + 1}")(x)
        for i in range(self.depth):
            x = self.get_submodule(f"up{i + 1}")(x, skips.pop())
        return self.outc(x)


def unet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return UNet(input[2], args.get("width", 64), args.get("depth", 4), classes_of(args, input))


class RecurrentLanguageModel(nn.Module):
    """Embedding, an RNN module of `layers` layers (stack: `layers` modules of one layer), linear layer to the words."""

    def __init__(self, kind: str, vocab: int, width: int, hidden: int, layers: int, stack: bool) -> None:
        super().__init__()
        module = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind]
        self.emb = nn.Embedding(vocab, width)
        if stack:
            widths = [width] + [hidden] * (layers - 1)
            self.r = nn.ModuleList([module(inner, hidden, batch_first=True) for inner in widths])
        else:
            self.r = nn.ModuleList([module(width, hidden, layers, batch_first=True)])
        self.out = nn.Linear(hidden, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.emb(tokens)
        for module in self.r:
            x, _ = module(x)
        return self.out(x)


def recurrent(args: Mapping[str, Any], input: Sequence[Any], kind: str = "lstm") -> nn.Module:
    return RecurrentLanguageModel(args.get("kind", kind), args.get("vocab", input[3]), args.get("d", 512),
                                  args.get("h", 512), args.get("layers", 2), bool(args.get("stack", False)))


def recurrent_tanh(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return recurrent(args, input, "rnn")


def recurrent_gru(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return recurrent(args, input, "gru")


class TransformerLanguageModel(nn.Module):
    """nn.Transformer whose two sides read one embedding; no masks, no positions."""

    def __init__(self, vocab: int, width: int, heads: int, encoder: int, decoder: int, feed_forward: int,
                 dropout: float) -> None:
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        self.t = nn.Transformer(width, heads, encoder, decoder, feed_forward, dropout, batch_first=True)
        self.out = nn.Linear(width, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.emb(tokens)
        return self.out(self.t(x, x))


def transformer(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return TransformerLanguageModel(args.get("vocab", input[3]), args.get("d", 512), args.get("heads", 8),
                                    args.get("enc", 6), args.get("dec", 6), args.get("ff", 2048),
                                    args.get("dropout", 0.1))


class Dlrm(nn.Module):
    """Dense features through an MLP, sparse ones through summed embedding bags, their dot products through another MLP.

    The indices of the pairs are made anew in each forward pass, as DLRM's own program does it.
    """

    def __init__(self, features: int, dim: int, rows: Sequence[int], bottom: Sequence[int], top: Sequence[int],
                 classes: int) -> None:
        super().__init__()
        pairs = (len(rows) + 1) * len(rows) // 2
        self.emb_l = nn.ModuleList([nn.EmbeddingBag(count, dim, mode="sum") for count in rows])
        self.bot_l = _mlp([features, *bottom, dim], open_end=False)
        self.top_l = _mlp([dim + pairs, *top, classes], open_end=True)

    def forward(self, dense: Tensor, offsets: Tensor, *indices: Tensor) -> Tensor:
        features = [self.bot_l(dense)]
        for number, (table, values) in enumerate(zip(self.emb_l, indices)):
            features.append(table(values, offsets[number]))
        stacked = torch.cat(features, dim=1).view(dense.shape[0], -1, features[0].shape[1])
        products = torch.bmm(stacked, torch.transpose(stacked, 1, 2))
        pairs = list(itertools.combinations(range(len(features)), 2))
        row = torch.tensor([later for _, later in pairs])
        column = torch.tensor([earlier for earlier, _ in pairs])
        return self.top_l(torch.cat([features[0], products[:, row, column]], dim=1))


def _mlp(widths: Sequence[int], open_end: bool) -> nn.Sequential:
    layers: List[nn.Module] = []
    for inner, outer in zip(widths, widths[1:]):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*(layers[:-1] if open_end else layers))


def dlrm(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return Dlrm(input[2], args.get("dim", 16), args.get("rows", CRITEO_ROWS), args.get("bottom", (512, 256, 64)),
                args.get("top", (512, 256)), classes_of(args, input))
