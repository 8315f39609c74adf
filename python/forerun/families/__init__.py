"""Samplers of configurations: for each family of the zoo, args, input and run settings drawn from a seed. No torch.

    sample("resnet", random.Random(1), target="gpu-bound")
    plan(seed=1, counts={"resnet": 40, "randwire": 150})

A family is a sampler and a line in FAMILIES. Samplers cover wide ranges: what would not fit or take too long is for
whoever makes a plan to leave out (`forerun predict` gives time and memory).
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..configuration import Configuration
from . import convolutional, sequences
from .drawing import log_integer, weighted
from .inputs import GPU_BOUND, HOST_BOUND, NEAR_LIMIT, TARGETS, Extents
from .run_settings import run_settings

__all__ = ["FAMILIES", "TARGETS", "USUAL", "Family", "default_counts", "plan", "sample"]

Sampler = Callable[[random.Random, str], Tuple[Dict[str, Any], Extents]]


@dataclasses.dataclass(frozen=True)
class Family:
    """A sampler, and the batches that suit the family."""

    name: str
    sampler: Sampler
    batch: float = 1.0  # factor of the usual batch sizes: above 1 where a sample costs little
    least_batch: int = 1  # 2 where batch norm may see a single value a channel
    usual: bool = True  # drawn where no family is named; one that is not leaves the plans of others as they were


_LIST = (
    Family("resnet", convolutional.resnet, 1, 2),
    Family("wide_resnet", convolutional.wide_resnet, 0.7, 2),
    Family("alexnet", convolutional.alexnet, 4),
    Family("vgg", convolutional.vgg, 0.5, 2),
    Family("googlenet", convolutional.googlenet, 1.5, 2),
    Family("inception_v3", convolutional.inception_v3, 1, 2),
    Family("squeezenet", convolutional.squeezenet, 2),
    Family("densenet", convolutional.densenet, 0.6, 2),
    Family("shufflenet", convolutional.shufflenet, 2, 2),
    Family("mnasnet", convolutional.mnasnet, 1, 2),
    Family("efficientnet", convolutional.efficientnet, 0.6, 2),
    Family("regnet", convolutional.regnet, 1, 2),
    Family("convnext", convolutional.convnext, 0.5),
    Family("randwire", convolutional.randwire, 0.6, 2),
    Family("unet", convolutional.unet, 0.15, 2),
    Family("vit", convolutional.vit, 0.7),
    Family("swin", convolutional.swin, 0.5),
    Family("transformer", sequences.transformer, 0.3),
    Family("bert", sequences.bert, 0.3),
    Family("gpt2", sequences.gpt2, 0.15),
    Family("llama", sequences.llama, 0.1),
    Family("t5", sequences.t5, 0.2),
    Family("dlrm", sequences.dlrm, 16),
    Family("mobilenet_v2", convolutional.mobilenet_v2, 1, 2),
    Family("mobilenet_v3", convolutional.mobilenet_v3, 1.5, 2),
    Family("lstm", sequences.lstm, 1),
    Family("rnn", sequences.rnn, 1),
    Family("gru", sequences.gru, 1),
    Family("nas_cell", convolutional.nas_cell, 1, usual=False),
)
FAMILIES: Dict[str, Family] = {family.name: family for family in _LIST}
USUAL = tuple(family.name for family in _LIST if family.usual)

_BATCHES = {HOST_BOUND: (1, 64), GPU_BOUND: (24, 1024), NEAR_LIMIT: (192, 8192)}
_TARGET_SHARES = ((HOST_BOUND, 0.35), (GPU_BOUND, 0.47), (NEAR_LIMIT, 0.18))
_RANDWIRE_SHARE = 0.16


def sample(family: str, rng: random.Random, target: Optional[str] = None, id: str = "") -> Configuration:
    """One configuration. `target` says where its bottleneck is sought; none: each is drawn by its share."""
    chosen = FAMILIES.get(family)
    if chosen is None:
        raise ValueError(f"no family is called {family!r}; there are {', '.join(FAMILIES)}")
    if target is not None and target not in TARGETS:
        raise ValueError(f"no target is called {target!r}; there are {', '.join(TARGETS)}")
    goal = target or weighted(rng, _TARGET_SHARES)
    args, extents = chosen.sampler(rng, goal)
    input = (extents[0], _batch(rng, chosen, goal)) + extents[1:]
    return Configuration(id, family, args, input, run_settings(rng, str(extents[0])))


def _batch(rng: random.Random, family: Family, target: str) -> int:
    """Log-uniform in the target's range; every second one is rounded to a multiple of 8 or a power of two."""
    low, high = _BATCHES[target]
    least, most = max(1, round(low * min(1.0, family.batch))), max(4, round(high * family.batch))
    batch = log_integer(rng, least, most)
    if rng.random() < 0.5:
        batch = 8 * round(batch / 8) if batch >= 24 else 1 << (batch.bit_length() - 1)
    return max(batch, family.least_batch)


def plan(seed: int, counts: Mapping[str, int], prefix: str = "h200", target: Optional[str] = None
         ) -> List[Configuration]:
    """So many configurations of each family, all different, in mixed order, with ids "<prefix>/<number>-<family>".

    The n-th draw of a family depends on the seed, the family and n alone.
    """
    drawn: List[Configuration] = []
    for family, count in counts.items():
        keys: Set[str] = set()
        for number in range(100 * count):
            if len(keys) == count:
                break
            configuration = sample(family, random.Random(f"{seed}/{family}/{number}"), target)
            if configuration.key not in keys:
                keys.add(configuration.key)
                drawn.append(configuration)
    random.Random(seed).shuffle(drawn)
    return [dataclasses.replace(configuration, id=f"{prefix}/{number:05d}-{configuration.family}")
            for number, configuration in enumerate(drawn)]


def default_counts(total: int, families: Sequence[str] = USUAL) -> Dict[str, int]:
    """`total` spread over families: RandWire has 16 % among the usual ones, the others equal shares."""
    weight = _RANDWIRE_SHARE / (1 - _RANDWIRE_SHARE) * (len(USUAL) - 1)
    weights = {family: weight if family == "randwire" else 1.0 for family in families}
    shares = {family: total * weights[family] / sum(weights.values()) for family in weights}
    counts = {family: int(share) for family, share in shares.items()}
    by_remainder = sorted(shares, key=lambda family: counts[family] - shares[family])
    for family in by_remainder[:total - sum(counts.values())]:
        counts[family] += 1
    return counts
