"""Sums and means over rows, columns, channels, pixels and everything; cumulative sums; sorts."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping

from forerun.grids.sampling import Draw, Sample, TensorSpec, draw_many, image, stream_us

GRID = "reduction"


def _one(op: str, spec: TensorSpec, attributes: Mapping[str, object], cost: float) -> List[Sample]:
    return [Sample(GRID, f"aten.{op}", (spec,), attributes, "fp32", cost)]


def _matrix(draw: Draw, dtype: str) -> TensorSpec:
    return TensorSpec(dtype, (draw.size(1, 262144, even=0.4), draw.size(1, 32768, even=0.8)))


def _images(draw: Draw, dtype: str) -> TensorSpec:
    size = draw.log_int(1, 160)
    return image(dtype, (draw.log_int(1, 512), draw.size(1, 2048), size, size), draw.chance(0.35))


def _columns(draw: Draw) -> List[Sample]:
    """Bias gradients: of a matrix over its rows, of tokens over batch and length."""
    spec = _matrix(draw, draw.dtype())
    if draw.chance(0.3):
        spec = TensorSpec(spec.dtype, (draw.log_int(1, 256), draw.size(1, 1024, even=0.4), spec.shape[1]))
    dims = list(range(len(spec.shape) - 1))
    return _one("sum.dim_IntList", spec, {"dim": dims, "keepdim": True}, stream_us(spec))


def _channels(draw: Draw) -> List[Sample]:
    """Bias and scale gradients of images, squeeze-and-excitation, pooling by a mean."""
    spec = _images(draw, draw.dtype())
    kind = draw.weighted({"bias": 0.35, "pixels": 0.3, "mean": 0.35})
    if kind == "mean":
        attributes: Dict[str, object] = {"dim": [2, 3]} if draw.chance(0.3) else {"dim": [-1, -2], "keepdim": True}
        return _one("mean.dim", spec, attributes, stream_us(spec))
    return _one("sum.dim_IntList", spec, {"dim": [0, 2, 3] if kind == "bias" else [2, 3], "keepdim": True},
                stream_us(spec))


def _rows(draw: Draw) -> List[Sample]:
    spec = _matrix(draw, draw.dtype())
    op = draw.pick(("sum.dim_IntList", "mean.dim", "amax.default", "argmax.default", "var_mean.correction", "any.dim"))
    if op == "argmax.default" or op == "any.dim":
        return _one(op, spec, {"dim": -1}, stream_us(spec))
    return _one(op, spec, {"dim": [-1], "keepdim": True}, stream_us(spec))


def _everything(draw: Draw) -> List[Sample]:
    spec = TensorSpec(draw.dtype(), (draw.log_int(1, 1 << 28),))
    if draw.chance(0.4):
        spec = _images(draw, spec.dtype)
    op = draw.weighted({"sum.default": 0.65, "mean.default": 0.25, "max.default": 0.1})
    return _one(op, spec, {}, stream_us(spec))


def _cumulative(draw: Draw) -> List[Sample]:
    dtype = draw.weighted({"float32": 0.6, "bfloat16": 0.2, "int64": 0.2})
    spec = TensorSpec(dtype, (draw.log_int(1, 65536), draw.log_int(1, 16384)))
    return _one("cumsum.default", spec, {"dim": draw.pick((0, 1))}, 3 * stream_us(spec, spec))


def _sorting(draw: Draw) -> List[Sample]:
    dtype = draw.weighted({"float32": 0.6, "bfloat16": 0.2, "int64": 0.2})
    rows, length = draw.log_int(1, 16384), draw.log_int(2, 200000)
    spec = TensorSpec(dtype, (rows, length))
    if draw.chance(0.5):
        return _one("sort.default", spec, {"dim": -1, "descending": draw.chance(0.5)}, 20 + 30 * stream_us(spec))
    k = min(length, draw.pick((1, 2, 5, 8, 10, 50, 100)))
    return _one("topk.default", spec, {"k": k, "dim": -1}, 10 + 10 * stream_us(spec))


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _columns: 0.3, _channels: 0.25, _rows: 0.12, _everything: 0.13, _cumulative: 0.07, _sorting: 0.13,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
