"""Samplers of image families: args around and beyond the published models, with an input to match.

A sampler takes a random generator and a target ("host-bound", "gpu-bound", "near-limit") and gives args, which mean
what `forerun zoo FAMILY` says, and an input without its batch.
"""

from __future__ import annotations

import random
from typing import Any, Dict, List, Tuple

from . import nas_cells
from .drawing import log_integer, log_multiple, real, stages, weighted
from .inputs import Extents, channels, image, image_size, pixels, small_image

Sample = Tuple[Dict[str, Any], Extents]

_RESNETS = ((2, 2, 2, 2), (3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3))
_CONVNEXTS = ((3, 3, 9, 3), (3, 3, 27, 3), (2, 2, 6, 2))
_DENSENETS = ((6, 12, 24, 16), (6, 12, 36, 24), (6, 12, 32, 32), (6, 12, 48, 32))
_REGNETS = ((16, 48, 27.89, 2.09, 8), (14, 56, 38.84, 2.4, 16), (27, 48, 20.71, 2.65, 24), (21, 80, 42.63, 2.66, 24),
            (17, 192, 76.82, 2.19, 56), (18, 200, 106.23, 2.48, 112), (22, 24, 24.48, 2.54, 16),
            (16, 56, 35.73, 2.28, 16), (18, 80, 34.01, 2.25, 24), (25, 88, 26.31, 2.25, 48), (23, 80, 49.56, 2.88, 120),
            (22, 216, 55.59, 2.1, 128))


def resnet(rng: random.Random, target: str) -> Sample:
    kind = weighted(rng, (("basic", 0.35), ("bottleneck", 0.4), ("grouped", 0.25)))
    args: Dict[str, Any] = {"block": "basic" if kind == "basic" else "bottleneck",
                            "layers": stages(rng, _RESNETS, (8, 8, 24, 6)), "width": 64}
    if kind == "bottleneck" and rng.random() < 0.5:
        args["width"] = log_multiple(rng, 32, 160, 8)
    if kind == "grouped":
        args["groups"] = rng.choice((2, 4, 8, 16, 32, 64))
        args["width"] = max(1, rng.choice((64, 128, 192, 256)) // args["groups"])
    return args, image(rng, target)


def wide_resnet(rng: random.Random, target: str) -> Sample:
    return {"layers": stages(rng, _RESNETS[1:3], (6, 8, 20, 5)), "width": log_multiple(rng, 96, 320, 16)}, \
        image(rng, target)


def alexnet(rng: random.Random, target: str) -> Sample:
    units = log_multiple(rng, 512, 8192, 256) if rng.random() < 0.8 else log_integer(rng, 400, 6000)
    return {"mult": rng.choice((1.0, real(rng, 0.25, 2.5))), "fc": units}, image(rng, target)


def vgg(rng: random.Random, target: str) -> Sample:
    args = {"cfg": rng.choice("ABDE"), "bn": rng.random() < 0.5}
    if rng.random() < 0.5:
        args["fc"] = log_multiple(rng, 512, 4096, 128)
    return args, image(rng, target)


def googlenet(rng: random.Random, target: str) -> Sample:
    return {}, image(rng, target)


def inception_v3(rng: random.Random, target: str) -> Sample:
    return {}, image(rng, target, least=96)


def squeezenet(rng: random.Random, target: str) -> Sample:
    return {"version": rng.choice(("1_0", "1_1"))}, image(rng, target)


def densenet(rng: random.Random, target: str) -> Sample:
    growth = log_multiple(rng, 8, 64, 4)
    layers = stages(rng, _DENSENETS, rng.choice(((12, 16, 32, 24), (16, 24, 24), (8, 12, 16, 12, 8))))
    args = {"layers": layers, "growth": growth, "init": rng.choice((2 * growth, log_multiple(rng, 16, 128, 8))),
            "bn_size": rng.choice((4, 4, 4, 2, 3))}
    return args, image(rng, target)


def shufflenet(rng: random.Random, target: str) -> Sample:
    first = rng.choice((48, 116, 176, 244, log_multiple(rng, 32, 320, 2)))
    repeats = [4, 8, 4] if rng.random() < 0.4 else [rng.randint(2, 8), rng.randint(2, 16), rng.randint(2, 8)]
    stem, last = log_multiple(rng, 16, 48, 8), log_multiple(rng, 512, 2048, 64)
    return {"rep": repeats, "out": [stem, first, 2 * first, 4 * first, last]}, image(rng, target)


def mnasnet(rng: random.Random, target: str) -> Sample:
    return {"alpha": rng.choice((0.5, 0.75, 1.0, 1.3, real(rng, 0.35, 2.5)))}, image(rng, target)


def efficientnet(rng: random.Random, target: str) -> Sample:
    published = ((1.0, 1.0), (1.0, 1.1), (1.1, 1.2), (1.2, 1.4), (1.4, 1.8), (1.6, 2.2), (1.8, 2.6), (2.0, 3.1))
    width, depth = rng.choice(published) if rng.random() < 0.4 else (real(rng, 0.5, 2.2), real(rng, 0.4, 3.2, 1))
    return {"w": width, "d": depth}, image(rng, target)


def regnet(rng: random.Random, target: str) -> Sample:
    depth, first, growth, ratio, group = rng.choice(_REGNETS)
    if rng.random() < 0.6:
        depth = max(6, depth + rng.randint(-6, 6))
        first = max(24, first + 8 * rng.randint(-2, 4))
        growth = round(growth * rng.uniform(0.7, 1.3), 2)
        ratio = real(rng, 2.0, 3.0)
        group = rng.choice((group, 8, 16, 24, 40, 48, 64))
    squeeze = rng.choice((0.25, None))
    return {"se": squeeze, "depth": depth, "w_0": first, "w_a": growth, "w_m": ratio, "group_width": group}, \
        image(rng, target)


def convnext(rng: random.Random, target: str) -> Sample:
    width = rng.choice((96, 96, 128, 192, log_multiple(rng, 24, 256, 8)))
    return {"dim": width, "layers": stages(rng, _CONVNEXTS, (4, 5, 27, 4))}, image(rng, target)


def mobilenet_v2(rng: random.Random, target: str) -> Sample:
    return {"width_mult": rng.choice((1.0, 0.5, 1.4, real(rng, 0.35, 2.5)))}, image(rng, target)


def mobilenet_v3(rng: random.Random, target: str) -> Sample:
    args = {"size": rng.choice(("large", "small")), "width_mult": rng.choice((1.0, 0.75, real(rng, 0.5, 2.5)))}
    return args, image(rng, target)


def randwire(rng: random.Random, target: str) -> Sample:
    width = rng.choice((78, 109, log_integer(rng, 16, 128), log_multiple(rng, 16, 128, 8)))
    args = {"kind": rng.choice(("ws", "er", "ba")), "nodes": rng.randint(8, 40), "ch": width,
            "stages": weighted(rng, ((3, 0.35), (4, 0.45), (5, 0.2))), "seed": rng.randrange(1_000_000)}
    return args, image(rng, target)


def nas_cell(rng: random.Random, target: str) -> Sample:
    width = rng.choice((16, log_integer(rng, 16, 128), log_multiple(rng, 16, 128, 8)))
    return {"cell": nas_cells.draw(rng), "ch": width, "cells": rng.choice((5, rng.randint(1, 8)))}, \
        small_image(rng, target)


def unet(rng: random.Random, target: str) -> Sample:
    width = rng.choice((64, 32, 16, log_multiple(rng, 16, 96, 8)))
    return {"width": width, "depth": weighted(rng, ((4, 0.5), (3, 0.25), (5, 0.15), (2, 0.1)))}, pixels(rng, target)


def swin(rng: random.Random, target: str) -> Sample:
    depths = [2, 2, rng.choice((2, 6, 18)), 2] if rng.random() < 0.7 else [2 * rng.randint(1, 3) for _ in range(4)]
    args: Dict[str, Any] = {"dim": rng.choice((48, 64, 80, 96, 96, 112, 128, 160, 192)), "depths": depths,
                            "window": weighted(rng, ((7, 0.6), (4, 0.15), (8, 0.15), (12, 0.1)))}
    if rng.random() < 0.2:
        args["mlp_ratio"] = rng.choice((2, 3))
    return args, image(rng, target)


def vit(rng: random.Random, target: str) -> Sample:
    published = ((3, 64), (6, 64), (12, 64), (16, 64), (16, 80))
    heads, head = rng.choice(published) if rng.random() < 0.5 else (rng.randint(2, 16), rng.choice((32, 48, 64, 96)))
    patch = weighted(rng, ((16, 0.55), (32, 0.15), (14, 0.15), (8, 0.15)))
    size = patch * max(2, round(image_size(rng, target, most=160 if patch == 8 else 320) / patch))
    dim = heads * head
    inner = 4 * dim if rng.random() < 0.7 else log_multiple(rng, 256, 5120, 64)
    args = {"image": size, "patch": patch, "layers": rng.choice((12, log_integer(rng, 4, 28))), "heads": heads,
            "dim": dim, "mlp": inner}
    classes: List[int] = [1000, 1000, 100, 10]
    return args, ("image", channels(rng), size, rng.choice(classes))
