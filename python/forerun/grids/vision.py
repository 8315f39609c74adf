"""What image networks run around their convolutions, and the convolutions that the other grids have few of.

Found, as `gaps` was, where predictions of whole set-ups missed: batch norms of large images with few channels, halves
of images put together, pooling in half precision, upsampling to labels and log-softmax over pixels (segmentation),
softmax over a window's few keys, filters with holes in channels-last layout, layers of odd widths, and the first
convolutions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Mapping, Tuple

from forerun.grids.conv import Convolution, conv_samples
from forerun.grids.norm import batch_norm
from forerun.grids.pool import max_pool, upsample
from forerun.grids.sampling import MAX_US, Draw, Limits, Sample, TensorSpec, draw_many, image, stream_us
from forerun.grids.softmax import both_passes

GRID = "vision"

_IMAGES = (128, 160, 192, 224, 224, 256, 288, 320, 384, 448, 512)
_TYPES: Mapping[str, float] = {"float32": 0.25, "bfloat16": 0.35, "float16": 0.4}
_CLASSES = (2, 19, 21, 21, 150)
_LIMITS = Limits(max_us=5 * MAX_US)


def _shape(draw: Draw) -> Tuple[int, int, int, int]:
    """Images as they are after some halvings, with more channels the smaller they are."""
    halvings = draw.pick((0, 1, 1, 2, 2, 3, 4, 5))
    size = max(4, draw.pick(_IMAGES) >> halvings)
    channels = draw.size(8, 96) << max(0, halvings - 1)
    return draw.log_int(2, 256), min(2048, channels), size, size


def _batch_norm(draw: Draw) -> List[Sample]:
    return batch_norm(draw, _TYPES, 0.35, _shape(draw))


def _max_pool(draw: Draw) -> List[Sample]:
    window = draw.pick(((3, 2, 1), (3, 2, 0), (2, 2, 0), (3, 1, 1), (5, 1, 2)))
    return max_pool(_shape(draw), window, draw.chance(0.2), draw.chance(0.6), draw.weighted(_TYPES))


def _upsample(draw: Draw) -> List[Sample]:
    size, factor = draw.pick((7, 14, 16, 28, 32, 40, 56, 60, 64, 80, 128)), draw.pick((2, 4, 8, 8, 16))
    channels = draw.pick(_CLASSES) if draw.chance(0.6) else draw.size(16, 512)
    shape = (draw.log_int(1, 48), channels, size, size)
    return upsample("bilinear2d", shape, factor, draw.chance(0.5), draw.weighted({"float32": 0.8, "float16": 0.2}))


def _pixels(draw: Draw) -> List[Sample]:
    size = draw.pick((224, 256, 320, 384, 448, 480, 512))
    shape = (draw.log_int(1, 48), draw.pick(_CLASSES), size, size)
    return both_passes("_log_softmax", image("float32", shape, draw.chance(0.6)), 1)


def _window_softmax(draw: Draw) -> List[Sample]:
    keys = draw.pick((4, 9, 16, 25, 36, 49, 64, 81, 100, 144, 196, 256))
    lead = (draw.log_int(1, 8192), draw.pick((keys, keys, 1, 4 * keys)))
    shape = lead if draw.chance(0.3) else lead + (keys,)
    return both_passes("_softmax", TensorSpec(draw.weighted({"float32": 0.7, "bfloat16": 0.3}), shape), -1)


def _halves(draw: Draw) -> List[Sample]:
    """Parts put together along the channels, some of which are parts of wider images themselves."""
    batch, channels, size, _ = _shape(draw)
    dtype, last = draw.weighted(_TYPES), draw.chance(0.6)
    parts = []
    for _ in range(draw.pick((2, 2, 2, 3, 4))):
        wide = channels * 2 if draw.chance(0.4) else channels
        strides = (wide * size * size, 1, size * wide, wide) if last else (wide * size * size, size * size, size, 1)
        whole = wide == channels and not last
        parts.append(TensorSpec(dtype, (batch, channels, size, size), None if whole else strides))
        channels = channels if draw.chance(0.7) else max(4, channels // 2)
    return [Sample(GRID, "aten.cat.default", tuple(parts), {"dim": 1}, "fp32", 2 * stream_us(*parts))]


def _with_holes(draw: Draw) -> List[Sample]:
    size = draw.pick((14, 20, 24, 28, 30, 32, 40, 48, 56, 60, 64))
    dilation = draw.pick((2, 2, 4, 6, 12, 18, 24, 36))
    channels = draw.pick((256, 512, 512, 1024, 2048, draw.size(64, 1024)))
    conv = Convolution(draw.log_int(1, 32), channels, (size, size), draw.pick((256, 256, 512, channels)), (3, 3), 1,
                       (dilation, dilation), dilation)
    if draw.chance(0.4):
        kernel, dilation = draw.pick((3, 5, 5, 7)), draw.pick((2, 2, 3, 4, 6))
        reach = dilation * (kernel // 2)
        conv = replace(conv, filters=channels, kernel=(kernel, kernel), padding=(reach, reach), dilation=dilation,
                       groups=channels)
    return conv_samples(draw, conv, dtypes=_TYPES, last=0.65)


def _odd_width(draw: Draw) -> List[Sample]:
    """Filters for classes, and layers whose widths are no multiples of eight."""
    batch, channels, size, _ = _shape(draw)
    channels = channels + draw.pick((-6, -4, -2, 1, 2, 4, 6)) if draw.chance(0.6) else channels
    filters = draw.pick(_CLASSES) if draw.chance(0.5) else max(4, channels)
    kernel = draw.weighted({1: 0.7, 3: 0.3})
    conv = Convolution(batch, max(4, channels), (size, size), filters, (kernel, kernel), 1, (kernel // 2, kernel // 2))
    return conv_samples(draw, conv, dtypes=_TYPES, last=0.6)


def _first(draw: Draw) -> List[Sample]:
    kernel, stride, padding = draw.pick(((7, 2, 3), (3, 2, 1), (3, 1, 1), (6, 2, 2), (4, 4, 0), (3, 2, 0)))
    size = draw.pick(_IMAGES)
    filters = draw.pick((16, 24, 32, 32, 40, 48, 64, 64, 96))
    conv = Convolution(draw.log_int(4, 256), 3, (size, size), filters, (kernel, kernel), stride, (padding, padding))
    return conv_samples(draw, conv, backward_data=False, dtypes=_TYPES, last=0.6)


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _batch_norm: 0.2, _max_pool: 0.1, _upsample: 0.08, _pixels: 0.04, _window_softmax: 0.08, _halves: 0.16,
    _with_holes: 0.14, _odd_width: 0.1, _first: 0.1,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    drawn = draw_many(draw, count, lambda source: source.weighted(_KINDS)(source), _LIMITS)
    return [replace(sample, grid=GRID) for sample in drawn]
