"""RandWire: stages wired by random graphs, edges pointing from lower to higher node numbers; stage i has seed + i.

A node sums its inputs weighted by sigmoids of parameters, then ReLU, depthwise 3x3, pointwise, batch norm. One without
predecessors reads the stage's input with stride 2; those without successors are averaged.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

import torch
from torch import Tensor, nn

from ..families.random_wiring import Wiring, wire
from .vision import classes_of

HEAD_CHANNELS = 1280


class _Node(nn.Module):
    def __init__(self, inputs: int, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        if inputs > 1:
            self.w = nn.Parameter(torch.zeros(inputs))
        self.conv = nn.Sequential(
            nn.ReLU(), nn.Conv2d(inner, inner, 3, stride=stride, padding=1, groups=inner, bias=False),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer))

    def forward(self, inputs: List[Tensor]) -> Tensor:
        x = inputs[0]
        if len(inputs) > 1:
            weights = torch.sigmoid(self.w)
            x = x * weights[0]
            for i in range(1, len(inputs)):
                x = x + inputs[i] * weights[i]
        return self.conv(x)


class _Stage(nn.Module):
    def __init__(self, wiring: Wiring, inner: int, outer: int) -> None:
        super().__init__()
        self.before = [[j for j in neighbours if j < i] for i, neighbours in enumerate(wiring)]
        self.leaves = [i for i, neighbours in enumerate(wiring) if not any(j > i for j in neighbours)]
        self.nodes = nn.ModuleList([
            _Node(len(before), outer, outer, 1) if before else _Node(1, inner, outer, 2) for before in self.before])

    def forward(self, x: Tensor) -> Tensor:
        outputs: List[Tensor] = []
        for node, before in zip(self.nodes, self.before):
            outputs.append(node([outputs[j] for j in before] if before else [x]))
        total = outputs[self.leaves[0]]
        for leaf in self.leaves[1:]:
            total = total + outputs[leaf]
        return total / len(self.leaves)


class RandWire(nn.Module):
    """Stem, randomly wired stages of doubling widths, head."""

    def __init__(self, channels: int, width: int, wirings: Sequence[Wiring], classes: int) -> None:
        super().__init__()
        stem = max(width // 2, 1)
        self.stem = nn.Sequential(nn.Conv2d(channels, stem, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(stem))
        widths = [stem] + [width << i for i in range(len(wirings))]
        self.stages = nn.Sequential(*[_Stage(wiring, inner, outer)
                                      for wiring, inner, outer in zip(wirings, widths, widths[1:])])
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv2d(widths[-1], HEAD_CHANNELS, 1, bias=False), nn.BatchNorm2d(HEAD_CHANNELS), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(HEAD_CHANNELS, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(x)))


def randwire(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    kind, nodes, seed = args.get("kind", "ws"), args.get("nodes", 32), args.get("seed", 0)
    wirings = [wire(kind, nodes, seed + i) for i in range(args.get("stages", 4))]
    return RandWire(input[2], args.get("ch", 78), wirings, classes_of(args, input))
