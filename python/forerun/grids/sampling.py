"""What a grid is made of: samples as plain data, seeded draws, and an estimate of what a sample costs.

A `Sample` is one op to time: its name, its input tensors in the order of the op's schema (a list of tensors flattened,
an absent optional tensor None), its other arguments by name, and the precision of float32 matmuls. Nothing here needs
torch. Costs are rooflines with modest rates; they only keep samples affordable and say what a plan will take.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar

Shape = Tuple[int, ...]
T = TypeVar("T")

ELEMENT_BYTES: Mapping[str, int] = {
    "float32": 4, "bfloat16": 2, "float16": 2, "float64": 8, "int64": 8, "int32": 4, "int16": 2, "uint8": 1, "int8": 1,
    "bool": 1, "uint64": 8,
}

# Bytes of the inputs of a sample, and of its outputs; microseconds of a call.
MAX_BYTES = 2 << 30
MAX_US = 3000.0
BYTES_PER_US = 3.0e6
LAUNCH_US = 3.0
# FLOPs a microsecond, well below what the hardware can do: most shapes are no better.
MATMUL_RATE: Mapping[str, float] = {"fp32": 30e6, "tf32": 100e6, "half": 250e6}
CONV_RATE: Mapping[str, float] = {"float32": 40e6, "bfloat16": 120e6, "float16": 120e6}


@dataclass(frozen=True)
class TensorSpec:
    """A tensor by dtype, shape and strides; strides None: contiguous."""

    dtype: str
    shape: Shape
    strides: Optional[Shape] = None

    def extent(self) -> int:
        """Elements from the first to the last in memory."""
        if any(size == 0 for size in self.shape):
            return 0
        if self.strides is None:
            return math.prod(self.shape)
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))

    def bytes(self) -> int:
        return math.prod(self.shape) * ELEMENT_BYTES[self.dtype]

    def to_json(self) -> List[object]:
        return [self.dtype, list(self.shape), None if self.strides is None else list(self.strides)]

    @staticmethod
    def from_json(value: Sequence[object]) -> TensorSpec:
        """Takes [dtype, shape, strides or null]; the strides may be left out."""
        dtype, shape = value[0], value[1]
        strides = value[2] if len(value) > 2 else None
        if not isinstance(dtype, str) or not isinstance(shape, (list, tuple)):
            raise ValueError(f"{value!r} is not [dtype, shape, strides]")
        return TensorSpec(dtype, tuple(shape), tuple(strides) if isinstance(strides, (list, tuple)) else None)


@dataclass(frozen=True)
class Sample:
    """One op to time."""

    grid: str
    op: str
    inputs: Tuple[Optional[TensorSpec], ...]
    attributes: Mapping[str, object] = field(default_factory=dict)
    precision: str = "fp32"
    cost_us: float = 0.0

    def describe(self) -> Dict[str, object]:
        """The fields of an op/1 record that say what is asked for."""
        return {"op": self.op, "inputs": [None if spec is None else spec.to_json() for spec in self.inputs],
                "attributes": dict(self.attributes), "precision": self.precision}

    @cached_property
    def id(self) -> str:
        """Names the op, its inputs, its attributes and the precision, whichever grid asked."""
        text = json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @staticmethod
    def from_json(value: Mapping[str, object], grid: str) -> Sample:
        """Reads {op, inputs, attributes, precision}; attributes and precision may be left out."""
        op, inputs, attributes = value.get("op"), value.get("inputs"), value.get("attributes", {})
        if not isinstance(op, str) or not isinstance(inputs, list) or not isinstance(attributes, dict):
            raise ValueError("a sample is {op, inputs, attributes, precision}")
        specs = tuple(None if entry is None else TensorSpec.from_json(entry) for entry in inputs)
        return Sample(grid, op, specs, attributes, str(value.get("precision", "fp32")))


class Draw:
    """Seeded random choices of sizes."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def log_int(self, low: int, high: int) -> int:
        """Log-uniform in [low, high]."""
        value = math.exp(self.random.uniform(math.log(low), math.log(high + 1)))
        return min(high, max(low, int(value)))

    def pick(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def weighted(self, choices: Mapping[T, float]) -> T:
        return self.random.choices(list(choices), weights=list(choices.values()))[0]

    def size(self, low: int, high: int, even: float = 0.75) -> int:
        """A log-uniform extent, rounded as extents of models mostly are: to 64, 32, 16 or 8 with probability `even`."""
        value = self.log_int(low, high)
        if not self.chance(even):
            return value
        steps = [step for step in (64, 32, 16, 8) if step <= value]
        if not steps:
            return value
        step = steps[0] if self.chance(0.5) else self.pick(steps)
        return max(low, min(high, round(value / step) * step))

    def dtype(self) -> str:
        return self.weighted({"float32": 0.52, "bfloat16": 0.40, "float16": 0.08})


def channels_last(shape: Shape) -> Shape:
    """The strides of an image batch [N, C, H, W] whose channels lie together."""
    _, channels, height, width = shape
    return (channels * height * width, 1, width * channels, channels)


def contiguous(shape: Shape) -> Shape:
    strides = [1] * len(shape)
    for place in range(len(shape) - 2, -1, -1):
        strides[place] = strides[place + 1] * max(shape[place + 1], 1)
    return tuple(strides)


def permuted(dtype: str, shape: Shape, order: Sequence[int]) -> TensorSpec:
    """What `permute(order)` makes of a contiguous tensor of this shape."""
    strides = contiguous(shape)
    return TensorSpec(dtype, tuple(shape[i] for i in order), tuple(strides[i] for i in order))


def image(dtype: str, shape: Shape, last: bool) -> TensorSpec:
    """A batch of images in either layout. One channel, or one pixel, makes both the same: contiguous."""
    if not last or shape[1] == 1 or shape[2] * shape[3] == 1:
        return TensorSpec(dtype, shape)
    return TensorSpec(dtype, shape, channels_last(shape))


def stream_us(*specs: Optional[TensorSpec]) -> float:
    """What moving these tensors takes at the least."""
    return LAUNCH_US + sum(spec.bytes() for spec in specs if spec is not None) / BYTES_PER_US


@dataclass(frozen=True)
class Limits:
    """What a configuration may cost: its dearest sample within [min_us, max_us], its inputs within max_bytes."""

    max_us: float = MAX_US
    min_us: float = 0.0
    max_bytes: int = MAX_BYTES


LARGE = Limits(max_us=5 * MAX_US, min_us=MAX_US / 4, max_bytes=4 << 30)


def fits(samples: Sequence[Sample], limits: Limits = Limits()) -> bool:
    """Whether the samples of one configuration keep the limits, by their estimate and the bytes of their inputs."""
    return limits.min_us <= max(sample.cost_us for sample in samples) <= limits.max_us and all(
        sum(spec.bytes() for spec in sample.inputs if spec is not None) <= limits.max_bytes for sample in samples)


def draw_many(draw: Draw, count: int, configuration: Callable[[Draw], Sequence[Sample]],
              limits: Limits = Limits()) -> List[Sample]:
    """Draws configurations, each a few samples, until `count` distinct samples are there. None is over the limits."""
    found: Dict[str, Sample] = {}
    for samples in _affordable(draw, configuration, limits):
        for sample in samples:
            found.setdefault(sample.id, sample)
        if len(found) >= count:
            return list(found.values())[:count]
    raise RuntimeError(f"a grid has only {len(found)} samples, not {count}")


def _affordable(draw: Draw, configuration: Callable[[Draw], Sequence[Sample]],
                limits: Limits) -> Iterator[Sequence[Sample]]:
    misses = 0
    while misses < 10_000:
        samples = configuration(draw)
        if samples and fits(samples, limits):
            misses = 0
            if draw.chance(_worth(max(sample.cost_us for sample in samples))):
                yield samples
        else:
            misses += 1


def _worth(cost_us: float) -> float:
    """How likely a configuration is kept. Log-uniform extents give mostly launch-bound ops, which say little."""
    return 0.2 if cost_us < 2 * LAUNCH_US else 0.5 if cost_us < 4 * LAUNCH_US else 1.0
