"""Networks of NAS-Bench-201: a stem, three stages of equal cells with blocks of stride 2 between them, a classifier.

A node of a cell is Python's sum of its edges, so that zero is added to the first; an edge `none` multiplies by zero.
Both are what the benchmark's own networks run. Widths double from stage to stage.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

import torch
from torch import Tensor, nn

from ..families.nas_cells import Cell, parse
from .vision import classes_of

STAGES = 3
DEFAULT = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"


class _ReluConvNorm(nn.Module):
    def __init__(self, inner: int, outer: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.op = nn.Sequential(
            nn.ReLU(), nn.Conv2d(inner, outer, kernel, stride=stride, padding=kernel // 2, bias=False),
            nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        return self.op(x)


class _Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.op = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.op(x)


class _Zero(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul(0.0)


def _operation(name: str, width: int) -> nn.Module:
    if name.startswith("nor_conv"):
        return _ReluConvNorm(width, width, 3 if name == "nor_conv_3x3" else 1)
    return {"none": _Zero, "skip_connect": nn.Identity, "avg_pool_3x3": _Pool}[name]()


class _Cell(nn.Module):
    def __init__(self, cell: Cell, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([_operation(name, width) for node in cell for name in node])
        self.first = [sum(map(len, cell[:node])) for node in range(len(cell))]  # layers before those into a node

    def forward(self, x: Tensor) -> Tensor:
        nodes: List[Tensor] = [x]
        for first in self.first:
            nodes.append(sum(self.layers[first + source](node) for source, node in enumerate(nodes)))
        return nodes[-1]


class _Reduction(nn.Module):
    """Halves the side and doubles the width."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.conv_a = _ReluConvNorm(inner, outer, 3, stride=2)
        self.conv_b = _ReluConvNorm(outer, outer, 3)
        self.downsample = nn.Sequential(nn.AvgPool2d(2, stride=2), nn.Conv2d(inner, outer, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv_b(self.conv_a(x))
        return self.downsample(x) + y


class NasCellNetwork(nn.Module):
    def __init__(self, channels: int, cell: Cell, width: int, cells: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
        self.cells = nn.ModuleList()
        for stage in range(STAGES):
            if stage > 0:
                self.cells.append(_Reduction(width << (stage - 1), width << stage))
            self.cells.extend([_Cell(cell, width << stage) for _ in range(cells)])
        last = width << (STAGES - 1)
        self.lastact = nn.Sequential(nn.BatchNorm2d(last), nn.ReLU(inplace=True))
        self.global_pooling = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for cell in self.cells:
            x = cell(x)
        x = self.global_pooling(self.lastact(x))
        return self.classifier(torch.flatten(x, 1))


def nas_cell(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    if input[3] < 4 or input[3] % 4:
        raise ValueError(f"an image of side {input[3]} cannot be halved twice: use a multiple of 4")
    return NasCellNetwork(input[2], parse(args.get("cell", DEFAULT)), args.get("ch", 16), args.get("cells", 5),
                          classes_of(args, input))
