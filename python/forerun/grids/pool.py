"""Pooling (max, average, adaptive), upsampling, padding, slicing and rolling of image batches.

Both passes, both layouts.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Tuple

from forerun.grids.sampling import Draw, Sample, TensorSpec, draw_many, image, stream_us

GRID = "pool"
Images = Tuple[int, int, int, int]

_SIZES = (4, 5, 6, 7, 8, 10, 13, 14, 16, 17, 19, 20, 27, 28, 32, 35, 37, 40, 48, 56, 64, 75, 79, 96, 112, 128, 147, 159,
          160, 192, 224)


def _shape(draw: Draw, least: int = 2) -> Images:
    size = draw.pick(_SIZES) if draw.chance(0.85) else draw.log_int(4, 224)
    return draw.log_int(1, 512), draw.size(1, 2048), max(least, size), max(least, size)


def _pooled(size: int, kernel: int, stride: int, padding: int, ceil: bool) -> int:
    out = (size + 2 * padding - kernel + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (out - 1) * stride >= size + padding:
        out -= 1
    return out


def _window(draw: Draw) -> Tuple[int, int, int]:
    return draw.pick(((3, 2, 1), (3, 2, 0), (2, 2, 0), (3, 1, 1), (5, 1, 2), (2, 1, 0), (5, 3, 0), (7, 1, 0)))


def _max_pool(draw: Draw) -> List[Sample]:
    kernel, stride, padding = _window(draw)
    shape = _shape(draw, kernel)
    ceil, last, dtype = draw.chance(0.15), draw.chance(0.4), draw.dtype()
    return max_pool(shape, (kernel, stride, padding), ceil, last, dtype)


def max_pool(shape: Images, window_of: Tuple[int, int, int], ceil: bool, last: bool, dtype: str) -> List[Sample]:
    """Both passes; `window_of`: size, stride, padding."""
    kernel, stride, padding = window_of
    out = shape[:2] + (_pooled(shape[2], kernel, stride, padding, ceil),) * 2
    source, output = image(dtype, shape, last), image(dtype, out, last)
    indices = TensorSpec("int64", output.shape, output.strides)
    window: Dict[str, object] = {"kernel_size": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 2}
    full = {**window, "dilation": [1, 1], "ceil_mode": ceil}
    cost = stream_us(source, output, indices)
    return [Sample(GRID, "aten.max_pool2d_with_indices.default", (source,), full if ceil else window, "fp32", cost),
            Sample(GRID, "aten.max_pool2d_with_indices_backward.default", (output, source, indices), full, "fp32",
                   2 * cost)]


def _average_pool(draw: Draw) -> List[Sample]:
    kernel, stride, padding = _window(draw)
    shape = _shape(draw, kernel)
    last, dtype = draw.chance(0.4), draw.dtype()
    out = shape[:2] + (_pooled(shape[2], kernel, stride, padding, False),) * 2
    source, output = image(dtype, shape, last), image(dtype, out, last)
    window: Dict[str, object] = {"kernel_size": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 2}
    cost = stream_us(source, output)
    return [Sample(GRID, "aten.avg_pool2d.default", (source,), window, "fp32", cost),
            Sample(GRID, "aten.avg_pool2d_backward.default", (output, source),
                   {**window, "ceil_mode": False, "count_include_pad": True}, "fp32", 2 * cost)]


def _adaptive(draw: Draw) -> List[Sample]:
    shape = _shape(draw)
    size = draw.pick((2, 3, 4, 5, 6, 7))
    last, dtype = draw.chance(0.35), draw.dtype()
    source, output = image(dtype, shape, last), image(dtype, shape[:2] + (size, size), last)
    cost = 2 * stream_us(source, output)
    return [Sample(GRID, "aten._adaptive_avg_pool2d.default", (source,), {"output_size": [size, size]}, "fp32", cost),
            Sample(GRID, "aten._adaptive_avg_pool2d_backward.default", (output, source), {}, "fp32", cost)]


def _upsample(draw: Draw) -> List[Sample]:
    shape = _shape(draw)
    factor = draw.pick((2, 2, 2, 4, 8))
    last, dtype = draw.chance(0.35), draw.dtype()
    return upsample(draw.pick(("nearest2d", "bilinear2d")), shape, factor, last, dtype)


def upsample(mode: str, shape: Images, factor: int, last: bool, dtype: str) -> List[Sample]:
    """Both passes."""
    out = shape[:2] + (shape[2] * factor, shape[3] * factor)
    source, output = image(dtype, shape, last), image(dtype, out, last)
    corners: Dict[str, object] = {"align_corners": False} if mode == "bilinear2d" else {}
    size = {"output_size": list(out[2:])}
    cost = 2 * stream_us(source, output)
    return [Sample(GRID, f"aten.upsample_{mode}.default", (source,), {**size, **corners}, "fp32", cost),
            Sample(GRID, f"aten.upsample_{mode}_backward.default", (output,),
                   {**size, "input_size": list(shape), **corners}, "fp32", 2 * cost)]


def _pad(draw: Draw) -> List[Sample]:
    """Padding as in Swin (channels last in memory) and as before convolutions; negative padding is its gradient."""
    dtype = draw.dtype()
    batch, channels, height, width = _shape(draw)
    amount = draw.pick((1, 2, 3, 4, 6))
    if draw.chance(0.5):
        spec, pad = TensorSpec(dtype, (batch, height, width, channels)), [0, 0, 0, amount, 0, amount]
    else:
        spec, pad = image(dtype, (batch, channels, height, width), draw.chance(0.3)), [amount] * 4
    if draw.chance(0.4) and min(height, width) > 2 * amount:
        pad = [-size for size in pad]
    return [Sample(GRID, "aten.constant_pad_nd.default", (spec,), {"pad": pad, "value": 0.0}, "fp32",
                   stream_us(spec, spec))]


def _roll(draw: Draw) -> List[Sample]:
    batch, channels, height, width = _shape(draw)
    spec = TensorSpec(draw.dtype(), (batch, height, width, channels))
    shift = draw.pick((-3, -3, 3, 3, 4, -4, 6, -6))
    return [Sample(GRID, "aten.roll.default", (spec,), {"shifts": [shift, shift], "dims": [1, 2]}, "fp32",
                   stream_us(spec, spec))]


def _slice_backward(draw: Draw) -> List[Sample]:
    batch, channels, height, width = _shape(draw)
    whole = (batch, height, width, channels)
    dim = draw.pick((0, 1, 2, 3))
    dtype = draw.dtype()
    made = TensorSpec(dtype, whole)
    if draw.chance(0.5):
        index = draw.random.randrange(whole[dim])
        spec = TensorSpec(dtype, whole[:dim] + whole[dim + 1:])
        return [Sample(GRID, "aten.select_backward.default", (spec,),
                       {"input_sizes": list(whole), "dim": dim, "index": index}, "fp32", stream_us(spec, made))]
    step = 2 if draw.chance(0.3) else 1
    end = max(1, int(whole[dim] * draw.pick((0.25, 0.5, 0.75, 1))))
    spec = TensorSpec(dtype, whole[:dim] + (-(-end // step),) + whole[dim + 1:])
    return [Sample(GRID, "aten.slice_backward.default", (spec,),
                   {"input_sizes": list(whole), "dim": dim, "start": 0, "end": end, "step": step}, "fp32",
                   stream_us(spec, made))]


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _max_pool: 0.27, _average_pool: 0.15, _adaptive: 0.09, _upsample: 0.11, _pad: 0.13, _roll: 0.13,
    _slice_backward: 0.12,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
