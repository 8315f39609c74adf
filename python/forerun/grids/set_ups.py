"""What set-ups of many families showed to be missing: transformers, speech, video and graphs, as people write them.

Long products, whose clocks differ from those of short ones, and such with odd numbers of tokens or words; norms without
weights, over channels of their own, of transposed tokens; weights that are normalized; tokens that are scaled and
shifted in mixed types; messages along edges; convolutions of clips, and of patches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from forerun.grids.conv import Convolution, conv_samples
from forerun.grids.gemm import matrix
from forerun.grids.norm import batch_norm
from forerun.grids.sampling import (BYTES_PER_US, LAUNCH_US, MATMUL_RATE, Draw, Limits, Sample, TensorSpec, draw_many,
                                    permuted, stream_us)

GRID = "set_ups"

_LIMITS = Limits(max_us=40_000, max_bytes=8 << 30)
_TYPES: Mapping[str, float] = {"float32": 0.3, "bfloat16": 0.4, "float16": 0.3}
_WORDS = (30522, 32000, 32128, 49408, 50257, 50265, 50304, 51865, 65024, 100352, 128100, 128256, 151936, 250880, 256000,
          262144)


def _one(op: str, inputs: Tuple[Optional[TensorSpec], ...], attributes: Mapping[str, object], cost: float,
         precision: str = "fp32") -> Sample:
    return Sample(GRID, f"aten.{op}", inputs, attributes, precision, cost)


# -- products ----------------------------------------------------------------------------------------------------------


def _passes(draw: Draw, rows: int, inner: int, columns: int) -> List[Sample]:
    """All products of a linear layer."""
    kinds = {("float32", "fp32"): 0.3, ("float32", "tf32"): 0.15, ("bfloat16", "fp32"): 0.3, ("float16", "fp32"): 0.25}
    dtype, precision = draw.weighted(kinds)
    cost = 2.0 * rows * inner * columns / MATMUL_RATE[precision if dtype == "float32" else "half"]
    source, weight = matrix(dtype, (), rows, inner, False), matrix(dtype, (), inner, columns, True)
    gradient = matrix(dtype, (), rows, columns, False)
    bias = (TensorSpec(dtype, (columns,)),) if draw.chance(0.3) else ()
    return [_one("addmm.default" if bias else "mm.default", (*bias, source, weight), {}, cost, precision),
            _one("mm.default", (gradient, matrix(dtype, (), columns, inner, False)), {}, cost, precision),
            _one("mm.default", (matrix(dtype, (), columns, rows, True), source), {}, cost, precision)]


def _tokens(draw: Draw) -> int:
    return draw.log_int(2, 64) * draw.pick((128, 197, 256, 384, 512, 1000, 1024)) if draw.chance(0.7) \
        else draw.log_int(1024, 32768)


def _long_product(draw: Draw) -> List[Sample]:
    return _passes(draw, _tokens(draw), draw.pick((1024, 2048, 2560, 3072, 4096, 5120, 8192)), draw.size(1024, 16384))


def _words(draw: Draw) -> List[Sample]:
    return _passes(draw, _tokens(draw), draw.pick((384, 512, 768, 896, 1024, 1152, 1536, 2048, 3072)),
                   draw.pick(_WORDS))


# -- norms -------------------------------------------------------------------------------------------------------------


def _layer_norm(draw: Draw) -> List[Sample]:
    """Without weights, or of tokens that lie transposed."""
    width, dtype = draw.size(64, 4096, even=0.95), draw.weighted({"float32": 0.6, "bfloat16": 0.3, "float16": 0.1})
    shape = (draw.log_int(1, 64), draw.log_int(49, 32000), width)
    plain = draw.chance(0.6)
    source = TensorSpec(dtype, shape) if plain else permuted(dtype, (shape[0], width, shape[1]), (0, 2, 1))
    parameter = None if plain else TensorSpec(dtype, (width,))
    statistic = TensorSpec("float32", shape[:2] + (1,))
    cost = stream_us(source, source, source)
    return [_one("native_layer_norm.default", (source, parameter, parameter),
                 {"normalized_shape": [width], "eps": 1e-05}, cost),
            _one("native_layer_norm_backward.default",
                 (TensorSpec(dtype, shape), source, statistic, statistic, parameter, parameter),
                 {"normalized_shape": [width], "output_mask": [True, not plain, not plain]}, 2 * cost)]


def _channel_norm(draw: Draw) -> List[Sample]:
    """Group norms of sequences with a group for each channel, and of images with few."""
    dtype, channels = draw.weighted(_TYPES), draw.pick((64, 128, 192, 256, 320, 512, 512, 640))
    sequence = draw.chance(0.5)
    extent = (draw.log_int(500, 32000),) if sequence else (draw.pick((8, 16, 24, 32, 48, 64, 96, 128)),) * 2
    batch, groups = draw.log_int(1, 48), channels if sequence else 32
    source = TensorSpec(dtype, (batch, channels, *extent))
    parameter, statistic = TensorSpec(dtype, (channels,)), TensorSpec(dtype, (batch, groups))
    sizes: Dict[str, object] = {"N": batch, "C": channels, "HxW": source.bytes() // TensorSpec(
        dtype, (batch, channels)).bytes(), "group": groups}
    cost = stream_us(source, source, source)
    return [_one("native_group_norm.default", (source, parameter, parameter), {**sizes, "eps": 1e-05}, cost),
            _one("native_group_norm_backward.default", (source, source, statistic, statistic, parameter),
                 {**sizes, "output_mask": [True, True, True]}, 2 * cost)]


def _weight_norm(draw: Draw) -> List[Sample]:
    shape = (draw.pick((256, 512, 768, 1024)), draw.pick((16, 32, 48, 64, 512)), draw.pick((3, 7, 32, 128)))
    dim, dtype = draw.pick((0, 2, 2)), draw.weighted({"float32": 0.7, "bfloat16": 0.3})
    kept = tuple(size if place == dim else 1 for place, size in enumerate(shape))
    weight, size, norm = TensorSpec(dtype, shape), TensorSpec(dtype, kept), TensorSpec("float32", kept)
    return [_one("_weight_norm_interface.default", (weight, size), {"dim": dim}, 20 * stream_us(weight, weight)),
            _one("_weight_norm_interface_backward.default", (weight, weight, size, norm), {"dim": dim},
                 20 * stream_us(weight, weight, weight))]


def _half_batch_norm(draw: Draw) -> List[Sample]:
    halvings = draw.pick((1, 1, 2, 2, 3, 4))
    size = max(4, draw.pick((128, 160, 192, 224, 256, 288, 320)) >> halvings)
    return batch_norm(draw, {"float16": 0.7, "bfloat16": 0.3}, 0.3,
                      (draw.log_int(4, 128), draw.size(16, 64) << max(0, halvings - 1), size, size))


# -- element by element, row by row ------------------------------------------------------------------------------------


def _modulated(draw: Draw) -> List[Sample]:
    """Tokens times, or plus, what is the same for all tokens of a sample, or all samples."""
    shape = (draw.log_int(1, 256), draw.pick((49, 64, 196, 197, 256, 512, 1024, 1568, 4096)), draw.size(64, 2048))
    other = draw.pick(((shape[0], 1, shape[2]), (1, shape[1], shape[2]), (shape[0], shape[1], 1), (shape[2],)))
    first = draw.weighted({"float32": 0.5, "bfloat16": 0.3, "float16": 0.2})
    second = first if draw.chance(0.4) else draw.weighted(_TYPES)
    inputs = (TensorSpec(first, shape), TensorSpec(second, other))
    return [_one(draw.pick(("mul.Tensor", "add.Tensor")), inputs, {}, 2 * stream_us(*inputs))]


def _messages(draw: Draw) -> List[Sample]:
    dtype, width, rows = draw.weighted(_TYPES), draw.pick((16, 32, 64, 128, 256, 512)), draw.log_int(1000, 200_000)
    table, index = TensorSpec(dtype, (rows, width)), TensorSpec("int64", (draw.log_int(10_000, 1_000_000),))
    values = TensorSpec(dtype, index.shape + (width,))
    cost = stream_us(table, values, values)
    return [_one("index.Tensor", (table, index), {}, cost),
            _one("index_select.default", (table, index), {"dim": 0}, cost),
            _one("index_add.default", (table, index, values), {"dim": 0}, 4 * cost),
            _one("index_put.default", (table, index, values), {"accumulate": True}, 60 + 4 * cost)]


# -- convolutions ------------------------------------------------------------------------------------------------------


def _clip(draw: Draw) -> List[Sample]:
    """A convolution over time and space, or of patches of both."""
    patches = draw.chance(0.3)
    if patches:
        patch = draw.pick((8, 14, 16))
        kernel = stride = (2, patch, patch)
        channels, filters, padding = 3, draw.pick((192, 384, 768, 1024)), (0, 0, 0)
        extent = (draw.pick((8, 16, 32)), 224, 224)
    else:
        kernel = draw.pick(((3, 3, 3), (1, 3, 3), (3, 1, 1), (1, 1, 1)))
        stride = draw.pick(((1, 1, 1), (1, 1, 1), (2, 2, 2), (1, 2, 2)))
        padding = (kernel[0] // 2, kernel[1] // 2, kernel[2] // 2)
        channels, filters = draw.size(16, 512), draw.size(16, 512)
        size = draw.pick((7, 14, 28, 56, 56, 112))
        extent = (draw.pick((2, 4, 8, 16)), size, size)
    after = tuple((e + 2 * p - k) // s + 1 for e, p, k, s in zip(extent, padding, kernel, stride))
    batch, dtype = draw.log_int(1, 32), draw.weighted(_TYPES)
    source, output = TensorSpec(dtype, (batch, channels, *extent)), TensorSpec(dtype, (batch, filters, *after))
    weight, bias = TensorSpec(dtype, (filters, channels, *kernel)), TensorSpec(dtype, (filters,))
    flops = 2.0 * output.bytes() / 2 * channels * kernel[0] * kernel[1] * kernel[2]
    cost = LAUNCH_US + 4 * (source.bytes() + output.bytes()) / BYTES_PER_US + flops / 30e6
    attributes: Dict[str, object] = {"stride": list(stride), "padding": list(padding), "dilation": [1, 1, 1],
                                     "transposed": False, "output_padding": [0, 0, 0], "groups": 1}
    samples = [_one("convolution.default", (source, weight, bias if patches else None), attributes, cost)]
    for mask in ([False, True, False],) + (() if patches else ([True, False, False],)):
        asked = {"bias_sizes": [filters if patches else 0], **attributes, "output_mask": mask}
        samples.append(_one("convolution_backward.default", (output, source, weight), asked, cost))
    return samples


def _half_convolution(draw: Draw) -> List[Sample]:
    """As networks have them, in half precision and mostly channels first."""
    halvings = draw.pick((1, 2, 2, 3, 3, 4, 4, 5))
    size = max(4, draw.pick((160, 192, 224, 224, 256, 288, 320, 384)) >> halvings)
    width = max(16, draw.size(16, 96) << max(0, halvings - 1))
    kernel, groups = draw.weighted({1: 0.45, 3: 0.45, 5: 0.1}), 1
    other = draw.pick((width, width, 2 * width, 4 * width, max(16, width // 2), max(16, width // 4)))
    if kernel > 1 and draw.chance(0.4):
        groups = draw.pick([many for many in (2, 4, 8, 16, 32) if width % many == 0] or [1])
        other = width
    conv = Convolution(draw.log_int(4, 128), width, (size, size), other, (kernel, kernel),
                       draw.weighted({1: 0.8, 2: 0.2}), (kernel // 2, kernel // 2), groups=groups)
    return conv_samples(draw, conv, dtypes={"bfloat16": 0.5, "float16": 0.5}, last=0.25)


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _long_product: 0.1, _words: 0.09, _layer_norm: 0.09, _channel_norm: 0.06, _weight_norm: 0.02,
    _half_batch_norm: 0.12, _modulated: 0.12, _messages: 0.04, _clip: 0.06, _half_convolution: 0.3,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    drawn = draw_many(draw, count, lambda source: source.weighted(_KINDS)(source), _LIMITS)
    return [replace(sample, grid=GRID) for sample in drawn]
