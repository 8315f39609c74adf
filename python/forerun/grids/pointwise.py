"""Element-wise ops and copies, by size, dtype, layout and broadcasting.

Copies of permuted tensors are a kind of their own: how far apart neighbours lie decides how long they take.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Tuple

from forerun.grids.sampling import Draw, Sample, Shape, TensorSpec, channels_last, draw_many, image, permuted, stream_us

GRID = "elementwise"

Attributes = Mapping[str, object]

_UNARY: Mapping[str, Attributes] = {
    "relu.default": {}, "relu_.default": {}, "gelu.default": {}, "silu.default": {}, "silu_.default": {},
    "sigmoid.default": {}, "tanh.default": {}, "exp.default": {}, "sqrt.default": {}, "rsqrt.default": {},
    "hardswish.default": {}, "hardswish_.default": {}, "hardtanh_.default": {"min_val": 0.0, "max_val": 6.0},
    "leaky_relu.default": {"negative_slope": 0.01}, "elu.default": {}, "pow.Tensor_Scalar": {"exponent": 2},
    "neg.default": {}, "log.default": {}, "abs.default": {}, "cos.default": {}, "clone.default": {},
    "mul.Tensor": {"other": 0.25}, "div.Tensor": {"other": 8.0}, "div.Scalar": {"other": 49},
    "add.Tensor": {"other": 1.0}, "mul_.Tensor": {"other": 0.9}, "eq.Scalar": {"other": 0}, "zero_.default": {},
    "native_dropout.default": {"p": 0.1, "train": True}, "bernoulli_.float": {"p": 0.8},
    "clamp_min.default": {"min": 0.0},
}
_BINARY: Mapping[str, Attributes] = {
    "add.Tensor": {}, "add_.Tensor": {}, "sub.Tensor": {}, "mul.Tensor": {}, "mul_.Tensor": {}, "div.Tensor": {},
    "maximum.default": {}, "threshold_backward.default": {"threshold": 0}, "gelu_backward.default": {},
    "silu_backward.default": {}, "sigmoid_backward.default": {}, "tanh_backward.default": {},
    "hardswish_backward.default": {}, "hardtanh_backward.default": {"min_val": 0.0, "max_val": 6.0},
    "leaky_relu_backward.default": {"negative_slope": 0.01, "self_is_result": False},
    "elu_backward.default": {"alpha": 1.0, "scale": 1, "input_scale": 1, "is_result": False},
    "lerp_.Scalar": {"weight": 0.1}, "copy_.default": {},
}
_BROADCAST = ("add.Tensor", "mul.Tensor", "add_.Tensor", "sub.Tensor", "div.Tensor")
_TERNARY: Mapping[str, Attributes] = {"addcmul_.default": {"value": 0.001}, "addcdiv_.default": {"value": -0.001}}


def _shape(draw: Draw) -> Shape:
    """A tensor of about 1 to 200 million elements in the shape of a vector, matrix, token batch or image batch."""
    kind = draw.weighted({"vector": 0.15, "matrix": 0.2, "tokens": 0.3, "images": 0.35})
    if kind == "vector":
        return (draw.log_int(1, 1 << 27),)
    if kind == "matrix":
        return draw.size(1, 65536), draw.size(1, 32768)
    if kind == "tokens":
        return draw.log_int(1, 512), draw.size(1, 2048, even=0.4), draw.size(8, 8192, even=0.9)
    size = draw.log_int(1, 224)
    return draw.log_int(1, 512), draw.size(1, 2048), size, size


def _tensor(draw: Draw, dtype: str, shape: Shape) -> TensorSpec:
    return image(dtype, shape, draw.chance(0.3)) if len(shape) == 4 else TensorSpec(dtype, shape)


def _one(op: str, inputs: Tuple[Optional[TensorSpec], ...], attributes: Attributes, moved: float) -> List[Sample]:
    return [Sample(GRID, f"aten.{op}", inputs, attributes, "fp32", moved)]


def _unary(draw: Draw) -> List[Sample]:
    op = draw.pick(list(_UNARY))
    spec = _tensor(draw, draw.dtype(), _shape(draw))
    return _one(op, (spec,), _UNARY[op], stream_us(spec, spec))


def _binary(draw: Draw) -> List[Sample]:
    op = draw.pick(list(_BINARY))
    spec = _tensor(draw, draw.dtype(), _shape(draw))
    return _one(op, (spec, spec), _BINARY[op], stream_us(spec, spec, spec))


def _ternary(draw: Draw) -> List[Sample]:
    spec = TensorSpec("float32", _shape(draw))
    op = draw.pick(list(_TERNARY))
    return _one(op, (spec, spec, spec), _TERNARY[op], stream_us(spec, spec, spec, spec))


def _broadcast(draw: Draw) -> List[Sample]:
    """A bias, a scale per channel or per image and channel, a mask for all heads."""
    shape = _shape(draw)
    dtype = draw.dtype()
    spec = _tensor(draw, dtype, shape)
    if len(shape) == 4:
        other = draw.pick(((shape[0], shape[1], 1, 1), (1, shape[1], 1, 1), (shape[1], 1, 1), (shape[0], 1, 1, 1),
                           (1, 1) + shape[2:]))
    elif len(shape) == 3:
        other = draw.pick((shape[2:], (1,) + shape[1:], shape[:2] + (1,)))
    else:
        other = shape[1:]
    return _one(draw.pick(_BROADCAST), (spec, TensorSpec(dtype, other)), {}, stream_us(spec, spec))


def _masked(draw: Draw) -> List[Sample]:
    spec = _tensor(draw, draw.dtype(), _shape(draw))
    mask = TensorSpec("bool", spec.shape, spec.strides)
    cost = stream_us(spec, spec, mask)
    kind = draw.pick(("native_dropout_backward.default", "masked_fill.Scalar", "where.self"))
    if kind == "where.self":
        return _one(kind, (mask, spec, spec), {}, cost)
    attributes: Attributes = {"scale": 1.1111111111111112} if kind.startswith("native") else {"value": -100.0}
    return _one(kind, (spec, mask), attributes, cost)


def _cast(draw: Draw) -> List[Sample]:
    source, target = draw.pick((("float32", "bfloat16"), ("bfloat16", "float32"), ("float32", "float16"),
                                ("float16", "float32"), ("float32", "bfloat16"), ("bfloat16", "float32")))
    spec = _tensor(draw, source, _shape(draw))
    made = TensorSpec(target, spec.shape, spec.strides)
    if draw.chance(0.15):
        return _one("copy_.default", (made, spec), {}, stream_us(spec, made))
    attributes: Dict[str, object] = {"dtype": target}
    if len(spec.shape) == 4 and spec.strides is None and draw.chance(0.2):
        attributes["memory_format"] = "channels_last"
    return _one("_to_copy.default", (spec,), attributes, stream_us(spec, made))


def _permuted_copy(draw: Draw) -> List[Sample]:
    """clone(contiguous) of a permuted tensor, and add of tensors in different layouts."""
    dtype = draw.dtype()
    kind = draw.weighted({"heads": 0.35, "matrix": 0.15, "windows": 0.2, "layout": 0.2, "mixed": 0.1})
    if kind == "heads":
        head = draw.pick((16, 32, 64, 96, 128))
        shape: Shape = (draw.log_int(1, 128), draw.size(8, 1024, even=0.4), draw.log_int(1, 32), head)
        spec = permuted(dtype, shape, draw.pick(((0, 2, 1, 3), (0, 2, 3, 1), (1, 0, 2, 3), (2, 0, 1, 3))))
    elif kind == "matrix":
        spec = permuted(dtype, (draw.size(1, 32768), draw.size(1, 8192)), (1, 0))
    elif kind == "windows":
        window, count = draw.pick((7, 8, 12)), draw.log_int(1, 10)
        shape = (draw.log_int(1, 128), count, window, count, window, draw.size(16, 768))
        spec = permuted(dtype, shape, (0, 1, 3, 2, 4, 5))
    else:
        size = draw.log_int(2, 128)
        shape = (draw.log_int(1, 256), draw.size(2, 1024), size, size)
        spec = TensorSpec(dtype, shape, channels_last(shape))
        if kind == "mixed":
            return _one("add.Tensor", (TensorSpec(dtype, shape), spec), {}, stream_us(spec, spec, spec))
        if draw.chance(0.5):
            return _one("clone.default", (TensorSpec(dtype, shape),), {"memory_format": "channels_last"},
                        stream_us(spec, spec))
    return _one("clone.default", (spec,), {"memory_format": "contiguous_format"}, stream_us(spec, spec))


def _fill(draw: Draw) -> List[Sample]:
    spec = TensorSpec(draw.dtype(), _shape(draw))
    if draw.chance(0.5):
        return _one("zeros.default", (), {"size": list(spec.shape), "dtype": spec.dtype}, stream_us(spec))
    return _one("fill_.Scalar", (spec,), {"value": 1.0}, stream_us(spec))


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _unary: 0.29, _binary: 0.25, _ternary: 0.03, _broadcast: 0.13, _masked: 0.05, _cast: 0.12, _permuted_copy: 0.11,
    _fill: 0.02,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
