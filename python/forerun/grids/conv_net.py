"""Convolutions as image networks have them, drawn to learn which memory cuDNN asks for.

Extents follow an image that is halved from stage to stage and widened as it shrinks; batches, widths and ratios are
those of common networks. Weight gradients, whose workspaces vary most, are drawn twice as often as the other passes;
of depthwise convolutions only the channels-last weight gradient has a workspace, and only that is drawn. Grouped and
depthwise ones, for which dense ones tell little, have a grid of their own with all passes, and with layouts mixed, and
another one with windows that few networks have: long and thin, or wide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Mapping

from forerun.grids.conv import Convolution, conv_samples
from forerun.grids.sampling import Draw, Sample, draw_many

GRID = "conv_net"
GROUP_GRID = "conv_groups"
WINDOW_GRID = "conv_windows"

_IMAGES = (24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 104, 112, 120, 128, 131, 144, 160, 176, 192, 208, 224, 240, 256,
           272, 288, 299, 304, 320, 384)
_RATIOS = (0.125, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1, 1, 1, 2, 2, 3, 4, 4, 6)
_HALVINGS: Mapping[int, float] = {0: 0.07, 1: 0.15, 2: 0.22, 3: 0.22, 4: 0.2, 5: 0.14}


def _batch(draw: Draw) -> int:
    return draw.log_int(1, 1024) if draw.chance(0.7) else draw.size(1, 256)


def _image(draw: Draw, halvings: int) -> int:
    """The extent of an image after some layers of stride 2."""
    size = draw.pick(_IMAGES)
    for _ in range(halvings):
        size = (size + 1) // 2 if draw.chance(0.8) else max(1, (size - 1) // 2)
    return size


def _width(draw: Draw, halvings: int) -> int:
    """Channels; more where images are smaller."""
    base = draw.log_int(8, 160)
    width = base << max(0, halvings - draw.pick((1, 1, 2)))
    step = draw.weighted({1: 0.08, 2: 0.07, 4: 0.1, 8: 0.4, 16: 0.15, 32: 0.1, 64: 0.1})
    return min(4096, max(step, round(width / step) * step))


def _other_width(draw: Draw, width: int) -> int:
    other = max(1, round(width * draw.pick(_RATIOS))) if draw.chance(0.8) else draw.size(8, 2048)
    return min(4096, max(4, other if draw.chance(0.5) else round(other / 8) * 8))


def _conv(draw: Draw, kernel: int, stride: int, grouped: bool = False) -> Convolution:
    halvings = draw.weighted(_HALVINGS)
    size, width = _image(draw, halvings), _width(draw, halvings)
    other = width if grouped else _other_width(draw, width)
    return Convolution(_batch(draw), width, (size, size), other, (kernel, kernel), stride, (kernel // 2, kernel // 2),
                       groups=width if grouped else 1)


def _pointwise(draw: Draw) -> List[Sample]:
    return _passes(draw, _conv(draw, 1, draw.weighted({1: 0.85, 2: 0.15})))


def _spatial(draw: Draw) -> List[Sample]:
    kernel = draw.weighted({3: 0.86, 5: 0.1, 7: 0.04})
    return _passes(draw, _conv(draw, kernel, draw.weighted({1: 0.8, 2: 0.2})))


def _first(draw: Draw) -> List[Sample]:
    kernel, stride, padding = draw.pick(((7, 2, 3), (3, 2, 1), (3, 1, 1), (3, 2, 0), (11, 4, 2), (4, 4, 0), (8, 8, 0),
                                         (16, 16, 0)))
    channels = draw.weighted({1: 0.15, 2: 0.03, 3: 0.55, 4: 0.12, 6: 0.03, 8: 0.12})
    size = draw.pick(_IMAGES)
    filters = draw.log_int(8, 160) if draw.chance(0.2) else draw.size(8, 768 if kernel in (4, 8, 16) else 128)
    conv = Convolution(_batch(draw), channels, (size, size), filters, (kernel, kernel), stride, (padding, padding))
    return conv_samples(draw, conv, backward_data=False)


def _depthwise(draw: Draw) -> List[Sample]:
    kernel = draw.weighted({3: 0.55, 5: 0.25, 7: 0.2})
    conv = _conv(draw, kernel, draw.weighted({1: 0.75, 2: 0.25}), grouped=True)
    return [sample for sample in conv_samples(draw, conv) if _of_weight(sample) and _channels_last(sample)]


def _grouped(draw: Draw) -> List[Sample]:
    width = draw.pick((4, 8, 16, 24, 32, 40, 48, 56, 64, 112, 128))
    groups = draw.pick((2, 4, 8, 16, 32)) if draw.chance(0.5) else draw.log_int(2, 24)
    conv = _conv(draw, 3, draw.weighted({1: 0.75, 2: 0.25}))
    return _passes(draw, replace(conv, channels=groups * width, filters=groups * width, groups=groups))


def _passes(draw: Draw, conv: Convolution) -> List[Sample]:
    """The weight gradient, and each of the other passes every second time."""
    return [sample for sample in conv_samples(draw, conv) if _of_weight(sample) or draw.chance(0.5)]


def _of_weight(sample: Sample) -> bool:
    mask = sample.attributes.get("output_mask")
    return isinstance(mask, list) and mask[1] is True


def _channels_last(sample: Sample) -> bool:
    return any(spec is not None and spec.strides is not None for spec in sample.inputs[:2])


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _pointwise: 0.44, _spatial: 0.28, _first: 0.09, _depthwise: 0.12, _grouped: 0.07,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    drawn = draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
    return [replace(sample, grid=GRID) for sample in drawn]


def _grouped_passes(draw: Draw) -> List[Sample]:
    """All passes of a grouped convolution, groups from narrow to as wide as a third of the layer."""
    conv = _conv(draw, draw.weighted({3: 0.85, 1: 0.1, 5: 0.05}), draw.weighted({1: 0.7, 2: 0.3}))
    step = draw.weighted({4: 0.25, 8: 0.6, 1: 0.15})
    width = max(step, round(draw.log_int(4, 384) / step) * step)
    groups = draw.log_int(2, max(2, min(64, 2048 // width)))
    filters = groups * (width if draw.chance(0.9) else max(step, width // 2))
    return conv_samples(draw, replace(conv, channels=groups * width, filters=filters, groups=groups), mixed=0.2)


def _depthwise_passes(draw: Draw) -> List[Sample]:
    kernel = draw.weighted({3: 0.45, 5: 0.25, 7: 0.3})
    return conv_samples(draw, _conv(draw, kernel, draw.weighted({1: 0.8, 2: 0.2}), grouped=True), mixed=0.5)


_GROUP_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {_grouped_passes: 0.55, _depthwise_passes: 0.45}


def group_samples(draw: Draw, count: int) -> List[Sample]:
    drawn = draw_many(draw, count, lambda source: source.weighted(_GROUP_KINDS)(source))
    return [replace(sample, grid=GROUP_GRID) for sample in drawn]


_HALF_TYPES: Mapping[str, float] = {"float32": 0.3, "bfloat16": 0.42, "float16": 0.28}
_THIN = (3, 5, 7, 9, 11, 11, 13, 15, 17, 19, 21, 25, 31, 33, 48, 65)


def _thin(draw: Draw) -> List[Sample]:
    """A depthwise window along one axis, over an image or over tokens by channels."""
    length = draw.pick(_THIN)
    kernel = (length, 1) if draw.chance(0.5) else (1, length)
    conv = _conv(draw, 3, 1, grouped=True)
    if draw.chance(0.3):  # heads as channels, tokens as rows
        heads = draw.pick((2, 4, 6, 8, 12, 16))
        size = (draw.pick((64, 100, 128, 197, 256, 384, 512, 1000, 1024, 2048)), draw.pick((32, 64, 64, 96, 128)))
        conv = replace(conv, channels=heads, filters=heads, groups=heads, size=size, batch=draw.log_int(1, 128))
    conv = replace(conv, kernel=kernel, padding=(kernel[0] // 2, kernel[1] // 2))
    return conv_samples(draw, conv, dtypes=_HALF_TYPES)


def _wide(draw: Draw) -> List[Sample]:
    """A depthwise window of many rows, or one with holes."""
    kernel = draw.pick((2, 4, 5, 6, 7, 7, 9, 9, 11, 13, 15, 17, 21, 27, 31))
    dilation = draw.weighted({1: 0.75, 2: 0.15, 3: 0.1}) if kernel <= 9 else 1
    reach = dilation * (kernel - 1)
    conv = _conv(draw, kernel, draw.weighted({1: 0.8, 2: 0.2}), grouped=True)
    conv = replace(conv, dilation=dilation, padding=(reach // 2, reach // 2), batch=draw.log_int(1, 256))
    return conv_samples(draw, conv, mixed=0.3, dtypes=_HALF_TYPES)


def _grouped_points(draw: Draw) -> List[Sample]:
    """One pixel at a time, or a small window, in groups of any width and number."""
    conv = _conv(draw, draw.weighted({1: 0.6, 3: 0.3, 2: 0.1}), 1)
    width = draw.log_int(2, 256) if draw.chance(0.4) else draw.pick((8, 16, 24, 32, 40, 48, 64, 80, 96))
    groups = draw.log_int(2, max(2, min(128, 3072 // width)))
    filters = groups * (width if draw.chance(0.6) else max(1, round(width * draw.pick((0.25, 0.5, 2, 3, 4)))))
    conv = replace(conv, channels=groups * width, filters=filters, groups=groups, batch=draw.log_int(1, 256))
    return conv_samples(draw, conv, mixed=0.1, dtypes=_HALF_TYPES)


_WINDOW_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {_thin: 0.4, _wide: 0.3, _grouped_points: 0.3}


def window_samples(draw: Draw, count: int) -> List[Sample]:
    drawn = draw_many(draw, count, lambda source: source.weighted(_WINDOW_KINDS)(source))
    return [replace(sample, grid=WINDOW_GRID) for sample in drawn]
