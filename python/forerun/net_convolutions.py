"""Lists the convolutions of published image networks, to be timed one by one.

    python -m forerun.net_convolutions --count 15000 --without regnet,vgg -o list.jsonl
    python -m forerun.microbench --closed-list list.jsonl --out DIR

Which kernel cuDNN takes for a convolution jumps from shape to shape, and the shapes that networks have are few:
channels in steps of 8, images of 7, 14, 28, ... pixels. The networks are timm's, some of every file of its models,
built on no device and fed images of no data; some keep larger images by holes in their filters, as those for
segmentation do. Batches, types and layouts are drawn. `--without` leaves out networks by parts of their names: what is
judged is not learned from.
"""
from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, TextIO, Tuple

from forerun.grids.conv import Convolution, conv_samples
from forerun.grids.sampling import MAX_BYTES, MAX_US, Draw, Limits, Sample, draw_many

GRID = "net_convolutions"

_IMAGES = (128, 160, 192, 224, 224, 224, 256, 256, 288, 320, 384)
_BATCHES = (4, 8, 8, 12, 16, 16, 24, 32, 32, 32, 48, 64, 64, 64, 96, 128, 128, 192, 256)
_TYPES: Mapping[str, float] = {"float32": 0.3, "bfloat16": 0.4, "float16": 0.3}
_HOLES = 0.3  # of the networks that can have them
_KINDS: Mapping[str, float] = {"dense": 0.4, "grouped": 0.25, "depthwise": 0.23, "with holes": 0.12}
_LIMITS = Limits(max_us=3 * MAX_US, max_bytes=2 * MAX_BYTES)
_NETWORKS_A_FILE = 6


@dataclass(frozen=True)
class Network:
    name: str
    image: int
    output_stride: int  # 32: as published


def convolutions(network: Network) -> List[Convolution]:
    """The distinct two-dimensional convolutions of a forward pass, for one image. Raises what timm or torch do."""
    import torch

    found: Dict[Convolution, None] = {}

    def note(module: Any, inputs: Tuple[Any, ...]) -> None:
        if inputs[0].dim() == 4 and len(set(module.stride)) == len(set(module.dilation)) == 1:
            found.setdefault(_convolution(module, tuple(inputs[0].shape)))

    with torch.device("meta"), torch.no_grad():
        model = _built(network)
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d) and not isinstance(module.padding, str):
                module.register_forward_pre_hook(note)
        model(torch.empty(1, 3, network.image, network.image))
    return list(found)


def _built(network: Network) -> Any:
    import timm

    if network.output_stride < 32:
        try:
            return timm.create_model(network.name, output_stride=network.output_stride).eval()
        except (TypeError, AssertionError, NotImplementedError, RuntimeError):  # it cannot have holes
            pass
    return timm.create_model(network.name).eval()


def _convolution(module: Any, shape: Sequence[int]) -> Convolution:
    height, width = module.kernel_size
    above, left = module.padding
    return Convolution(1, shape[1], (shape[2], shape[3]), module.out_channels, (height, width), module.stride[0],
                       (above, left), module.dilation[0], module.groups)


def networks(draw: Draw, without: Sequence[str]) -> List[Network]:
    """Some of every file of timm's models, without those whose names have one of the words."""
    import timm

    chosen: List[Network] = []
    for file in sorted(timm.list_modules()):
        names = [name for name in timm.list_models(module=file) if not any(word in name for word in without)]
        draw.random.shuffle(names)
        for name in names[:_NETWORKS_A_FILE]:
            chosen.append(Network(name, draw.pick(_IMAGES), draw.pick((8, 16)) if draw.chance(_HOLES) else 32))
    return chosen


def by_file(draw: Draw, without: Sequence[str], log: TextIO) -> List[List[Convolution]]:
    """The convolutions of each file's networks; what cannot be built is named in the log and left out."""
    import timm

    found: Dict[str, Set[Convolution]] = {}
    for network in networks(draw, without):
        try:
            listed = convolutions(network)
        except Exception as error:  # no holes, an image of one size only, or values that no device has
            print(f"{network.name}, image {network.image}, stride {network.output_stride}: left out: "
                  f"{str(error).splitlines()[0] if str(error) else type(error).__name__}", file=log)
            continue
        found.setdefault(timm.model_entrypoint(network.name).__module__, set()).update(listed)
    return [sorted(convs, key=repr) for _, convs in sorted(found.items()) if convs]


def kind(conv: Convolution) -> str:
    if conv.dilation > 1:
        return "with holes"
    return "dense" if conv.groups == 1 else "depthwise" if conv.groups == conv.channels else "grouped"


def samples(draw: Draw, files: Sequence[Sequence[Convolution]], count: int) -> List[Sample]:
    """All passes of drawn convolutions: of every kind its share, of files that have many more than of others."""
    pools: Dict[str, List[Sequence[Convolution]]] = {name: [] for name in _KINDS}
    for convs in files:
        for name, pool in pools.items():
            of_kind = [conv for conv in convs if kind(conv) == name]
            if of_kind:
                pool.append(of_kind)
    kinds = {name: share for name, share in _KINDS.items() if pools[name]}

    def one(source: Draw) -> List[Sample]:
        pool = pools[source.weighted(kinds)]
        conv = source.pick(source.random.choices(pool, weights=[math.sqrt(len(convs)) for convs in pool])[0])
        first = conv.channels <= 4  # images have no gradient
        return conv_samples(source, replace(conv, batch=source.pick(_BATCHES)), not first, 0.1, _TYPES, 0.5)

    return [replace(sample, grid=GRID) for sample in draw_many(draw, count, one, _LIMITS)]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.net_convolutions", description=__doc__.split("\n")[0],
                                     epilog="The list is for python -m forerun.microbench --closed-list. Needs timm.")
    parser.add_argument("--count", type=int, default=15000, help="passes of convolutions; default: 15000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="", help="parts of names of networks that are left out, by commas")
    parser.add_argument("-o", "--output", type=argparse.FileType("w"), default=sys.stdout, help="default: print")
    options = parser.parse_args(arguments)
    if options.count < 1:
        parser.error("--count: give at least 1")
    try:
        import timm  # noqa: F401
    except ImportError as error:
        print(f"forerun.net_convolutions: timm is needed: pip install timm ({error})", file=sys.stderr)
        return 1
    draw = Draw(f"{GRID}:{options.seed}")
    files = by_file(draw, [word for word in options.without.split(",") if word], sys.stderr)
    if not files:
        print("forerun.net_convolutions: --without leaves no network", file=sys.stderr)
        return 1
    for sample in samples(draw, files, options.count):
        options.output.write(json.dumps(sample.describe()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
