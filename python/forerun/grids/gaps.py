"""What the other grids leave out, found where predictions of whole training set-ups missed by most.

Convolutions of sequences (speech: short windows with strides, long ones with groups) and with holes; batch norm in
float16, which goes to cuDNN; images of both layouts in one op; products and convolutions in float16; vocabularies
beyond 50,000; upsampling from a few pixels; attention to few keys; sums over the experts of a token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Mapping, Tuple

from forerun.grids.conv import Convolution, conv_samples
from forerun.grids.gemm import linear
from forerun.grids.norm import batch_norm, layer_norm
from forerun.grids.pool import upsample
from forerun.grids.sampling import (BYTES_PER_US, LAUNCH_US, Draw, Sample, Shape, TensorSpec, channels_last,
                                    draw_many, stream_us)
from forerun.grids.softmax import both_passes

GRID = "gaps"

_HALF = {"bfloat16": 0.5, "float16": 0.5}


# -- convolutions ------------------------------------------------------------------------------------------------------


def _sequence(draw: Draw, batch: int, channels: Tuple[int, int], length: int, window: Tuple[int, int, int],
              groups: int = 1) -> List[Sample]:
    """All passes of a convolution over time, [batch, channels, length]; `window`: size, stride, padding."""
    size, stride, padding = window
    output_length = (length + 2 * padding - size) // stride + 1
    if output_length < 1:
        return []
    dtype = draw.weighted({"float32": 0.35, "bfloat16": 0.4, "float16": 0.25})
    source = TensorSpec(dtype, (batch, channels[0], length))
    weight = TensorSpec(dtype, (channels[1], channels[0] // groups, size))
    output = TensorSpec(dtype, (batch, channels[1], output_length))
    bias = TensorSpec(dtype, channels[1:]) if draw.chance(0.5) else None
    flops = 2.0 * batch * output_length * channels[1] * channels[0] / groups * size
    cost = LAUNCH_US + 4 * (source.bytes() + output.bytes()) / BYTES_PER_US + flops / (8e6 if groups > 1 else 80e6)
    attributes: Dict[str, object] = {"stride": [stride], "padding": [padding], "dilation": [1], "transposed": False,
                                     "output_padding": [0], "groups": groups}
    samples = [Sample(GRID, "aten.convolution.default", (source, weight, bias), attributes, "fp32", cost)]
    for mask in ([False, True, False], [True, False, False]):
        asked = {"bias_sizes": [0 if bias is None else channels[1]], **attributes, "output_mask": mask}
        samples.append(Sample(GRID, "aten.convolution_backward.default", (output, source, weight), asked, "fp32", cost))
    return samples


def _speech(draw: Draw) -> List[Sample]:
    window = draw.pick(((10, 5, 0), (3, 2, 0), (3, 2, 0), (2, 2, 0), (3, 1, 1), (3, 2, 1), (1, 1, 0), (5, 1, 2),
                        (7, 1, 3)))
    first = draw.chance(0.15)
    channels = draw.pick((1, 40, 80, 128)) if first else draw.size(64, 1280)
    length = draw.log_int(8000, 200000) if first and channels == 1 else draw.log_int(20, 20000)
    filters = draw.size(64, 1024) if draw.chance(0.5) else channels
    return _sequence(draw, draw.log_int(1, 64), (channels, max(16, filters)), length, window)


def _long_window(draw: Draw) -> List[Sample]:
    """Grouped over many steps, as relative positions are learned; and depthwise ones."""
    if draw.chance(0.5):
        size, groups, width = draw.pick((15, 19, 31, 63, 95, 127, 128)), draw.pick((2, 4, 8, 16, 32)), draw.size(8, 128)
    else:
        size, groups, width = draw.pick((3, 4, 5, 7, 9, 15, 31)), draw.size(64, 2048), 1
    channels = groups * width
    return _sequence(draw, draw.log_int(1, 64), (channels, channels), draw.log_int(30, 3000), (size, 1, size // 2),
                     groups)


def _with_holes(draw: Draw) -> List[Sample]:
    dilation = draw.pick((2, 2, 3, 4, 4, 6, 8, 12, 18, 24, 36))
    size = draw.pick((12, 14, 16, 20, 24, 28, 32, 33, 40, 48, 56, 60, 64, 65, 80, 96))
    channels = draw.size(32, 2048)
    filters = draw.pick((channels, channels, 256, 512, max(16, channels // 4)))
    groups = 1
    if draw.chance(0.15):
        groups, filters = channels, channels
    return conv_samples(draw, Convolution(draw.log_int(1, 48), channels, (size, size), filters, (3, 3), 1,
                                          (dilation, dilation), dilation, groups))


def _half_convolution(draw: Draw) -> List[Sample]:
    """As networks have them, in half precision: dense, grouped and depthwise, mostly channels-last."""
    halvings = draw.pick((1, 2, 2, 3, 3, 4, 4, 5))
    size = max(4, draw.pick((160, 192, 224, 224, 256, 288, 320, 384)) >> halvings)
    width = max(16, draw.size(16, 96) << max(0, halvings - 1))
    kernel = draw.weighted({1: 0.35, 3: 0.4, 5: 0.12, 7: 0.13})
    kind = draw.weighted({"dense": 0.4, "grouped": 0.25, "depthwise": 0.35})
    stride = draw.weighted({1: 0.8, 2: 0.2})
    conv = Convolution(draw.log_int(4, 256), width, (size, size), width, (kernel, kernel), stride,
                       (kernel // 2, kernel // 2))
    if kind == "depthwise":
        conv = replace(conv, groups=width, kernel=(max(3, kernel),) * 2, padding=(max(3, kernel) // 2,) * 2)
    elif kind == "grouped":
        group = draw.pick((8, 16, 24, 32, 56, 64, 112, 120, 128))
        channels = group * max(2, round(width / group))
        conv = replace(conv, channels=channels, filters=channels, groups=channels // group, kernel=(3, 3),
                       padding=(1, 1))
    else:
        conv = replace(conv, filters=max(16, round(width * draw.pick((0.25, 0.5, 1, 1, 2, 4, 6)))))
    return conv_samples(draw, conv, mixed=0.1, dtypes=_HALF, last=0.7)


# -- everything else ---------------------------------------------------------------------------------------------------


def _half_batch_norm(draw: Draw) -> List[Sample]:
    return batch_norm(draw, _HALF, 0.6)


def _layer_norm(draw: Draw) -> List[Sample]:
    """Narrow rows, of which there are many, and half precision."""
    return layer_norm(draw, draw.size(32, 1024, even=0.9), draw.dtype())


def _both_layouts(draw: Draw) -> List[Sample]:
    """Two images that lie differently, where one branch of a model is permuted, or normalised in the other layout."""
    size = draw.log_int(4, 128)
    shape: Shape = (draw.log_int(1, 256), draw.size(8, 2048), size, size)
    dtype = draw.dtype()
    last, plain = TensorSpec(dtype, shape, channels_last(shape)), TensorSpec(dtype, shape)
    cost = 3 * stream_us(last, last, last)
    pair = (last, plain) if draw.chance(0.7) else (plain, last)
    op = draw.pick(("add.Tensor", "add.Tensor", "add_.Tensor", "mul.Tensor", "silu_backward.default",
                    "gelu_backward.default", "copy_.default", "threshold_backward.default", "clone.default"))
    attributes: Mapping[str, object] = {"threshold": 0} if op == "threshold_backward.default" else {}
    if op == "clone.default":
        return [Sample(GRID, "aten.clone.default", (last,), {"memory_format": "contiguous_format"}, "fp32", cost)]
    if op == "mul.Tensor" and draw.chance(0.5):  # a weight for each channel, beside which the image is wider
        pair = (last, TensorSpec("float32", (shape[0], shape[1], 1, 1)))
    return [Sample(GRID, f"aten.{op}", pair, attributes, "fp32", cost)]


def _vocabulary(draw: Draw) -> List[Sample]:
    words = draw.pick((64000, 100000, 100352, 128000, 128256, 151936, 152064, 200064, 256000, 262144))
    rows = draw.pick((256, 512, 1024, 2048, 4096, 8192))
    spec = TensorSpec(draw.weighted({"float32": 0.7, "bfloat16": 0.3}), (rows, words))
    return both_passes("_log_softmax", spec, 1)


def _pixels(draw: Draw) -> List[Sample]:
    size = draw.pick((256, 320, 384, 512))
    spec = TensorSpec("float32", (draw.log_int(1, 16), draw.pick((2, 19, 21, 150)), size, size))
    return both_passes("_log_softmax", spec, 1)


def _product(draw: Draw) -> List[Sample]:
    """Linear layers in half precision; a quarter are the last of a language model."""
    words = draw.pick((30522, 32000, 50257, 50304, 64000, 100000, 128256, 151936)) if draw.chance(0.25) else 0
    return linear(draw, draw.weighted({"float16": 0.6, "bfloat16": 0.4}), words)


def _upsample(draw: Draw) -> List[Sample]:
    size, factor = draw.pick(((1, 48), (1, 32), (1, 64), (1, 28), (2, 32), (7, 8), (8, 16), (16, 8), (16, 4), (32, 4),
                              (48, 8), (64, 4), (64, 8), (28, 8), (32, 2), (64, 2), (14, 2)))
    channels = draw.pick((19, 21, 150)) if size * factor > 200 else draw.size(32, 1024)
    last, dtype = draw.chance(0.4), draw.weighted({"float32": 0.7, "bfloat16": 0.15, "float16": 0.15})
    shape = (draw.log_int(1, 64), channels, size, size)
    return upsample(draw.weighted({"bilinear2d": 0.8, "nearest2d": 0.2}), shape, factor, last, dtype)


def _experts(draw: Draw) -> List[Sample]:
    """Sums over the experts of each token, and the tokens' rows by mask."""
    tokens, width = draw.pick((1024, 2048, 4096, 8192, 16384)), draw.size(256, 4096, even=0.95)
    dtype = draw.weighted({"float32": 0.4, "bfloat16": 0.6})
    if draw.chance(0.5):
        spec = TensorSpec(dtype, (tokens, draw.pick((2, 4, 6, 8)), width))
        return [Sample(GRID, "aten.sum.dim_IntList", (spec,), {"dim": [1]}, "fp32", stream_us(spec))]
    spec = TensorSpec(dtype, (tokens, width))
    return [Sample(GRID, "aten.masked_fill.Scalar", (spec, TensorSpec("bool", (tokens, 1))), {"value": 0.0}, "fp32",
                   stream_us(spec, spec, spec))]


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _speech: 0.07, _long_window: 0.07, _with_holes: 0.1, _half_convolution: 0.24, _half_batch_norm: 0.12,
    _layer_norm: 0.04, _both_layouts: 0.13, _vocabulary: 0.02, _pixels: 0.01, _product: 0.14, _upsample: 0.06,
    _experts: 0.04,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    drawn = draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
    return [replace(sample, grid=GRID) for sample in drawn]
