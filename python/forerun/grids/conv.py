"""Convolutions: forward, data gradient and weight gradient apart, where op-level error is largest.

Kinds: dense (1x1 to 7x7, 1x7 and the like), grouped, depthwise, the first layers of networks, transposed, dilated.
float32 (which cuDNN may run in TF32), bfloat16 and a little float16, in both layouts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Callable, List, Mapping, Tuple

from forerun.grids.sampling import (BYTES_PER_US, CONV_RATE, LARGE, LAUNCH_US, Draw, Sample, TensorSpec, draw_many,
                                    image)

GRID = "conv"
LARGE_GRID = "conv_large"
Pair = Tuple[int, int]

_SPATIAL = (4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 17, 19, 20, 24, 28, 32, 35, 38, 40, 48, 56, 64, 75, 80, 96, 112, 128,
            147, 160, 192, 224)
_GROUPS = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 55, 64, 96)
_KERNELS: Mapping[Pair, float] = {
    (1, 1): 40, (3, 3): 29, (5, 5): 8, (7, 7): 4, (1, 7): 4, (7, 1): 4, (1, 3): 3, (3, 1): 3, (2, 2): 3, (4, 4): 2,
}


@dataclass(frozen=True)
class Convolution:
    """A convolution of a batch of images; padding as given, square strides and dilations."""

    batch: int
    channels: int
    size: Pair
    filters: int
    kernel: Pair
    stride: int = 1
    padding: Pair = (0, 0)
    dilation: int = 1
    groups: int = 1
    transposed: bool = False
    output_padding: int = 0

    def output_size(self) -> Pair:
        height, width = (self._extent(i) for i in range(2))
        return height, width

    def _extent(self, i: int) -> int:
        reach = self.dilation * (self.kernel[i] - 1)
        if self.transposed:
            return (self.size[i] - 1) * self.stride - 2 * self.padding[i] + reach + self.output_padding + 1
        return (self.size[i] + 2 * self.padding[i] - reach - 1) // self.stride + 1

    def weight_shape(self) -> Tuple[int, ...]:
        first, second = (self.channels, self.filters) if self.transposed else (self.filters, self.channels)
        return (first, second // self.groups) + self.kernel

    def flops(self) -> float:
        height, width = self.size if self.transposed else self.output_size()
        return 2.0 * self.batch * height * width * math.prod(self.weight_shape())

    def attributes(self) -> Mapping[str, object]:
        return {"stride": [self.stride] * 2, "padding": list(self.padding), "dilation": [self.dilation] * 2,
                "transposed": self.transposed, "output_padding": [self.output_padding] * 2, "groups": self.groups}


_TYPES: Mapping[str, float] = {"float32": 0.53, "bfloat16": 0.42, "float16": 0.05}


def conv_samples(draw: Draw, conv: Convolution, backward_data: bool = True, mixed: float = 0.0,
                 dtypes: Mapping[str, float] = _TYPES, last: float = 0.4) -> List[Sample]:
    """The forward pass and each gradient of one convolution, in a drawn precision and layout.

    `last`: how many run channels-last; `mixed`: how many of those have contiguous weights, as where a model permutes
    images.
    """
    if min(conv.output_size()) < 1:
        return []
    dtype = draw.weighted(dtypes)
    in_last = draw.chance(last)
    shape = (conv.batch, conv.channels) + conv.size
    source = image(dtype, shape, in_last)
    weight = image(dtype, conv.weight_shape(), in_last and not (mixed > 0 and draw.chance(mixed)))
    output = image(dtype, (conv.batch, conv.filters) + conv.output_size(), in_last)
    bias = TensorSpec(dtype, (conv.filters,)) if draw.chance(0.25) else None
    moved = (source.bytes() + output.bytes() + weight.bytes()) / BYTES_PER_US
    # Grouped convolutions are far from what the tensor cores can do, the more so the narrower a group is.
    width = min(conv.channels, conv.filters) // conv.groups
    rate = CONV_RATE[dtype] * (1.0 if conv.groups == 1 else min(1.0, 0.02 + width / 128))
    cost = LAUNCH_US + 3 * moved + conv.flops() / rate
    samples = [Sample(GRID, "aten.convolution.default", (source, weight, bias), conv.attributes(), "fp32", cost)]
    masks = [[False, True, bias is not None and draw.chance(0.4)]]
    if backward_data:
        masks.append([True, False, False])
    for mask in masks:
        attributes = {"bias_sizes": [0 if bias is None else conv.filters], **conv.attributes(), "output_mask": mask}
        samples.append(Sample(GRID, "aten.convolution_backward.default", (output, source, weight), attributes, "fp32",
                              cost))
    return samples


def _batch(draw: Draw) -> int:
    return draw.size(1, 512, even=0.4)


def _size(draw: Draw) -> Pair:
    height = draw.pick(_SPATIAL) if draw.chance(0.8) else draw.log_int(4, 224)
    return height, (draw.pick(_SPATIAL) if draw.chance(0.04) else height)


def _filters(draw: Draw, channels: int) -> int:
    if draw.chance(0.5):
        return max(4, round(channels * draw.pick((0.25, 0.5, 1, 1, 1, 2, 4))))
    return draw.size(8, 2048)


def _dense(draw: Draw) -> List[Sample]:
    kernel = draw.weighted(_KERNELS)
    stride = kernel[0] if kernel in ((2, 2), (4, 4)) else draw.weighted({1: 0.8, 2: 0.2})
    padding = (0, 0) if kernel in ((2, 2), (4, 4)) or draw.chance(0.12) else (kernel[0] // 2, kernel[1] // 2)
    channels = draw.size(8, 2048) if draw.chance(0.65) else draw.size(8, 64, even=0.5)
    return conv_samples(draw, Convolution(_batch(draw), channels, _size(draw), _filters(draw, channels), kernel, stride,
                                          padding))


def _grouped(draw: Draw) -> List[Sample]:
    groups = draw.pick(_GROUPS) if draw.chance(0.7) else draw.log_int(2, 96)
    width = draw.pick((4, 8, 12, 16, 24, 32, 40, 48, 56, 64)) if draw.chance(0.8) else draw.log_int(4, 64)
    kernel = draw.weighted({3: 0.75, 1: 0.15, 5: 0.1})
    filters = groups * (width if draw.chance(0.85) else draw.log_int(4, 64))
    return conv_samples(draw, Convolution(_batch(draw), groups * width, _size(draw), filters, (kernel, kernel),
                                          draw.weighted({1: 0.7, 2: 0.3}), (kernel // 2, kernel // 2), groups=groups))


def _depthwise(draw: Draw) -> List[Sample]:
    channels = draw.size(8, 2048)
    kernel = draw.weighted({3: 0.55, 5: 0.25, 7: 0.2})
    filters = channels * (2 if draw.chance(0.04) else 1)
    return conv_samples(draw, Convolution(_batch(draw), channels, _size(draw), filters, (kernel, kernel),
                                          draw.weighted({1: 0.7, 2: 0.3}), (kernel // 2, kernel // 2), groups=channels))


def _first(draw: Draw) -> List[Sample]:
    kernel, stride, padding = draw.pick(((7, 2, 3), (3, 2, 1), (3, 1, 1), (11, 4, 2), (4, 4, 0), (8, 8, 0), (14, 14, 0),
                                         (16, 16, 0), (32, 32, 0), (3, 2, 0)))
    channels = draw.weighted({1: 0.2, 3: 0.5, 4: 0.15, 8: 0.15})
    size = draw.pick((28, 32, 64, 75, 96, 112, 128, 160, 192, 208, 224, 256, 299, 320))
    filters = draw.size(16, 128) if kernel < 8 or kernel == 11 else draw.size(128, 1280)
    return conv_samples(draw, Convolution(_batch(draw), channels, (size, size), filters, (kernel, kernel), stride,
                                          (padding, padding)), backward_data=False)


def _transposed(draw: Draw) -> List[Sample]:
    kernel, stride, padding, extra = draw.pick(((2, 2, 0, 0), (4, 2, 1, 0), (3, 2, 1, 1), (4, 1, 0, 0), (5, 2, 2, 1)))
    channels = draw.size(16, 1024)
    size = draw.pick((4, 7, 8, 14, 16, 28, 32, 56, 64))
    filters = max(8, channels // draw.pick((1, 2, 4)))
    return conv_samples(draw, Convolution(_batch(draw), channels, (size, size), filters, (kernel, kernel), stride,
                                          (padding, padding), transposed=True, output_padding=extra))


def _dilated(draw: Draw) -> List[Sample]:
    dilation = draw.pick((2, 3, 4, 6, 12, 18))
    channels = draw.size(16, 2048)
    size = draw.pick((14, 17, 28, 32, 33, 40, 56, 65))
    return conv_samples(draw, Convolution(_batch(draw), channels, (size, size), _filters(draw, channels), (3, 3), 1,
                                          (dilation, dilation), dilation))


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _dense: 0.62, _grouped: 0.16, _depthwise: 0.12, _first: 0.04, _transposed: 0.03, _dilated: 0.03,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))


def large_samples(draw: Draw, count: int) -> List[Sample]:
    """The convolutions of large batches and images, which are few and take most of a training run's time."""
    drawn = draw_many(draw, count, lambda source: source.weighted(_KINDS)(source), LARGE)
    return [replace(sample, grid=LARGE_GRID) for sample in drawn]
