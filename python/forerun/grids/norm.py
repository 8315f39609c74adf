"""Batch, layer and group norm, forward and backward, in both layouts.

On CUDA a batch norm in float32 or float16 goes to cuDNN and one in bfloat16 to PyTorch's own kernels, all with float32
statistics.
"""

from __future__ import annotations

from typing import Callable, List, Mapping, Optional, Tuple

from forerun.grids.sampling import Draw, Sample, TensorSpec, draw_many, image, stream_us

GRID = "norm"
Images = Tuple[int, int, int, int]


def _images(draw: Draw) -> Images:
    size = draw.pick((1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 19, 20, 28, 32, 35, 40, 48, 56, 64, 75, 80, 96, 112, 128,
                      160))
    return draw.size(1, 512, even=0.4), draw.size(4, 2560), size, size


def _batch_norm(draw: Draw) -> List[Sample]:
    return batch_norm(draw, {"float32": 0.5, "bfloat16": 0.45, "float16": 0.05}, 0.42)


def batch_norm(draw: Draw, dtypes: Mapping[str, float], last: float, shape: Optional[Images] = None) -> List[Sample]:
    """Both passes over images of a shape, drawn where none is given; `last`: how many lie channels-last."""
    shape = _images(draw) if shape is None else shape
    dtype = draw.weighted(dtypes)
    cudnn = dtype != "bfloat16"
    source = image(dtype, shape, draw.chance(last))
    if draw.chance(0.03):
        source = TensorSpec(dtype, (shape[0] + 1, shape[1]))
    if source.bytes() == TensorSpec(dtype, shape[1:2]).bytes():
        return []  # one value a channel has no variance
    per_channel = TensorSpec("float32", (shape[1],))
    four = (per_channel,) * 4
    cost = stream_us(source, source, source)
    if cudnn:
        forward = {"training": True, "exponential_average_factor": 0.1, "epsilon": 1e-05}
        return [Sample(GRID, "aten.cudnn_batch_norm.default", (source,) + four, forward, "fp32", cost),
                Sample(GRID, "aten.cudnn_batch_norm_backward.default",
                       (source, source, per_channel) + four + (TensorSpec("uint8", (0,)),), {"epsilon": 1e-05}, "fp32",
                       2 * cost)]
    return [Sample(GRID, "aten.native_batch_norm.default", (source,) + four,
                   {"training": True, "momentum": 0.1, "eps": 1e-05}, "fp32", cost),
            Sample(GRID, "aten.native_batch_norm_backward.default", (source, source, per_channel) + four,
                   {"train": True, "eps": 1e-05, "output_mask": [True, True, True]}, "fp32", 2 * cost)]


def _layer_norm(draw: Draw) -> List[Sample]:
    return layer_norm(draw, draw.size(16, 8192, even=0.9),
                      draw.weighted({"float32": 0.65, "bfloat16": 0.3, "float16": 0.05}))


def layer_norm(draw: Draw, width: int, dtype: str) -> List[Sample]:
    kind = draw.weighted({"tokens": 0.6, "rows": 0.25, "images": 0.15})
    if kind == "tokens":
        length = draw.pick((16, 32, 49, 64, 128, 196, 197, 256, 384, 512, 1024, 2048))
        lead: Tuple[int, ...] = (draw.log_int(1, 256), length)
    elif kind == "rows":
        lead = (draw.log_int(1, 200000),)
    else:
        size = draw.pick((4, 5, 7, 8, 10, 14, 16, 20, 28, 32, 40, 56, 64))
        lead = (draw.log_int(1, 256), size, size)
    source = TensorSpec(dtype, lead + (width,))
    if kind == "images" and draw.chance(0.5):  # a ConvNeXt block normalizes the channels of a permuted image batch
        height, columns = lead[1], lead[2]
        source = TensorSpec(dtype, source.shape, (width * height * columns, columns, 1, height * columns))
    parameter = TensorSpec(dtype, (width,))
    statistic = TensorSpec("float32", lead + (1,))
    cost = stream_us(source, source, source)
    return [Sample(GRID, "aten.native_layer_norm.default", (source, parameter, parameter),
                   {"normalized_shape": [width], "eps": 1e-05}, "fp32", cost),
            Sample(GRID, "aten.native_layer_norm_backward.default",
                   (TensorSpec(dtype, source.shape), source, statistic, statistic, parameter, parameter),
                   {"normalized_shape": [width], "output_mask": [True, True, True]}, "fp32", 2 * cost)]


def _group_norm(draw: Draw) -> List[Sample]:
    batch, _, size, _ = _images(draw)
    groups = draw.weighted({1: 0.15, 4: 0.1, 8: 0.15, 16: 0.15, 32: 0.45})
    channels = groups * draw.log_int(2, max(2, 2048 // groups))
    dtype = draw.dtype()
    source = image(dtype, (batch, channels, size, size), draw.chance(0.35))
    parameter, statistic = TensorSpec(dtype, (channels,)), TensorSpec(dtype, (batch, groups))
    sizes: Mapping[str, object] = {"N": batch, "C": channels, "HxW": size * size, "group": groups}
    cost = stream_us(source, source, source)
    return [Sample(GRID, "aten.native_group_norm.default", (source, parameter, parameter), {**sizes, "eps": 1e-05},
                   "fp32", cost),
            Sample(GRID, "aten.native_group_norm_backward.default", (source, source, statistic, statistic, parameter),
                   {**sizes, "output_mask": [True, True, True]}, "fp32", 2 * cost)]


def _rms_norm(draw: Draw) -> List[Sample]:
    width = draw.size(16, 8192, even=0.9)
    dtype = draw.weighted({"float32": 0.4, "bfloat16": 0.55, "float16": 0.05})
    lead = (draw.log_int(1, 256), draw.pick((16, 64, 128, 256, 512, 1024, 2048)))
    source, parameter = TensorSpec(dtype, lead + (width,)), TensorSpec(dtype, (width,))
    cost = stream_us(source, source, source)
    return [Sample(GRID, "aten._fused_rms_norm.default", (source, parameter),
                   {"normalized_shape": [width], "eps": 1e-05}, "fp32", cost),
            Sample(GRID, "aten._fused_rms_norm_backward.default",
                   (source, source, TensorSpec("float32", lead + (1,)), parameter),
                   {"normalized_shape": [width], "output_mask": [True, True]}, "fp32", 2 * cost)]


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _batch_norm: 0.54, _layer_norm: 0.28, _group_norm: 0.15, _rms_norm: 0.03,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
