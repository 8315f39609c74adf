"""Inputs of sampled configurations, without their batch: images, pixels to label, tokens."""

from __future__ import annotations

import random
from typing import Any, Tuple

from .drawing import log_integer, weighted

Extents = Tuple[Any, ...]  # an input without its batch: ("image", channels, size, classes)

HOST_BOUND, GPU_BOUND, NEAR_LIMIT = "host-bound", "gpu-bound", "near-limit"
TARGETS = (HOST_BOUND, GPU_BOUND, NEAR_LIMIT)

_SIZES = {HOST_BOUND: (64, 224), GPU_BOUND: (96, 320), NEAR_LIMIT: (160, 320)}
_SMALL_SIZES = {HOST_BOUND: (24, 64), GPU_BOUND: (24, 128), NEAR_LIMIT: (32, 128)}
_LENGTHS = {HOST_BOUND: (32, 256), GPU_BOUND: (64, 1024), NEAR_LIMIT: (128, 1024)}


def channels(rng: random.Random) -> int:
    return weighted(rng, ((3, 0.8), (1, 0.08), (4, 0.07), (8, 0.05)))


def image_size(rng: random.Random, target: str, least: int = 64, most: int = 320) -> int:
    """A side, mostly a multiple of 16: 224 in one of five draws, any number in one of ten."""
    low, high = _SIZES[target]
    low, high = max(low, least), min(max(high, least), most)
    kind = rng.random()
    if kind < 0.2 and low <= 224 <= high:
        return 224
    if kind < 0.3:
        return rng.randint(low, high)
    return 16 * rng.randint(-(-low // 16), high // 16)


def image(rng: random.Random, target: str, least: int = 64) -> Extents:
    classes = weighted(rng, ((1000, 0.6), (100, 0.15), (10, 0.15), (365, 0.1)))
    return "image", channels(rng), image_size(rng, target, least), classes


def small_image(rng: random.Random, target: str) -> Extents:
    """As CIFAR and ImageNet16-120 have them, or larger: a side of 32 in one of five draws, else a multiple of 4."""
    low, high = _SMALL_SIZES[target]
    size = 32 if rng.random() < 0.2 else 4 * rng.randint(low // 4, high // 4)
    return "image", channels(rng), size, weighted(rng, ((10, 0.4), (100, 0.3), (120, 0.3)))


def pixels(rng: random.Random, target: str) -> Extents:
    classes = weighted(rng, ((2, 0.5), (21, 0.2), (19, 0.1), (6, 0.2)))
    return "dense", weighted(rng, ((3, 0.7), (1, 0.3))), image_size(rng, target), classes


def tokens(rng: random.Random, target: str, vocab: int, flavour: str, most: int = 1024) -> Extents:
    low, high = _LENGTHS[target]
    length = log_integer(rng, min(low, most), min(high, most))
    if rng.random() < 0.7:
        length = max(8, length - length % 8)
    return "tokens", length, vocab, flavour


def vocabulary(rng: random.Random, usual: int) -> int:
    """The usual one in half of the draws, else 1,000 to 64,000 words."""
    if rng.random() < 0.5:
        return usual
    words = log_integer(rng, 1000, 64000)
    return words - words % 8 if rng.random() < 0.6 else words
