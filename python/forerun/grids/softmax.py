"""Softmax and log-softmax over the last or another dimension, and the losses behind them, both passes."""

from __future__ import annotations

from typing import Callable, List, Mapping, Tuple

from forerun.grids.sampling import Draw, Sample, TensorSpec, draw_many, stream_us

GRID = "softmax"

_CLASSES = (2, 10, 100, 128, 200, 365, 1000, 1024, 4000, 8000, 10000, 21841, 28782, 30522, 32000, 32128, 50257, 50304)


def both_passes(kind: str, spec: TensorSpec, dim: int) -> List[Sample]:
    dtype = spec.dtype
    cost = stream_us(spec, spec)
    return [Sample(GRID, f"aten.{kind}.default", (spec,), {"dim": dim, "half_to_float": False}, "fp32", cost),
            Sample(GRID, f"aten.{kind}_backward_data.default", (spec, spec), {"dim": dim, "input_dtype": dtype}, "fp32",
                   cost + stream_us(spec))]


def _attention(draw: Draw) -> List[Sample]:
    length = draw.pick((16, 25, 49, 64, 77, 101, 128, 144, 145, 192, 197, 256, 384, 512, 768, 1024, 2048))
    keys = length if draw.chance(0.85) else draw.log_int(1, 2048)
    dtype = draw.dtype()
    return both_passes("_softmax", TensorSpec(dtype, (draw.log_int(1, 4096), draw.log_int(1, 32), length, keys)), -1)


def _classes(draw: Draw) -> List[Sample]:
    classes = draw.pick(_CLASSES) if draw.chance(0.7) else draw.log_int(2, 65536)
    kind = draw.weighted({"_log_softmax": 0.75, "_softmax": 0.25})
    return both_passes(kind, TensorSpec(draw.dtype(), (draw.size(1, 65536, even=0.4), classes)), 1)


def _pixels(draw: Draw) -> List[Sample]:
    size = draw.log_int(8, 320)
    classes = draw.pick((2, 10, 19, 21, 64, 150))
    return both_passes("_log_softmax", TensorSpec(draw.dtype(), (draw.log_int(1, 64), classes, size, size)), 1)


def _loss(draw: Draw) -> List[Sample]:
    shape: Tuple[int, ...] = (draw.log_int(1, 65536), draw.pick(_CLASSES))
    target = shape[:1]
    name = "nll_loss"
    if draw.chance(0.25):
        size = draw.log_int(8, 320)
        shape = (draw.log_int(1, 64), draw.pick((2, 10, 19, 21, 150)), size, size)
        target = (shape[0], size, size)
        name = "nll_loss2d"
    spec, labels = TensorSpec("float32", shape), TensorSpec("int64", target)
    scalar = TensorSpec("float32", ())
    attributes = {"reduction": 1, "ignore_index": -100}
    return [Sample(GRID, f"aten.{name}_forward.default", (spec, labels, None), attributes, "fp32", stream_us(labels)),
            Sample(GRID, f"aten.{name}_backward.default", (scalar, spec, labels, None, scalar), attributes, "fp32",
                   stream_us(spec))]


def _regression(draw: Draw) -> List[Sample]:
    spec = TensorSpec(draw.dtype(), (draw.log_int(1, 1 << 16), draw.log_int(1, 4096)))
    scalar = TensorSpec(spec.dtype, ())
    return [Sample(GRID, "aten.mse_loss.default", (spec, spec), {}, "fp32", stream_us(spec, spec)),
            Sample(GRID, "aten.mse_loss_backward.default", (scalar, spec, spec), {"reduction": 1}, "fp32",
                   stream_us(spec, spec, spec))]


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _attention: 0.36, _classes: 0.36, _pixels: 0.08, _loss: 0.15, _regression: 0.05,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
