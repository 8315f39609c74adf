"""Random values that samplers are made of: sizes on a logarithmic scale, choices with weights."""

from __future__ import annotations

import math
import random
from typing import List, Sequence, Tuple, TypeVar

T = TypeVar("T")


def log_integer(rng: random.Random, low: int, high: int) -> int:
    """A whole number from `low` to `high`, each doubling as likely as the next."""
    return min(high, max(low, round(math.exp(rng.uniform(math.log(low), math.log(high))))))


def log_multiple(rng: random.Random, low: int, high: int, step: int) -> int:
    """The same, a multiple of `step`; `low` and `high` are multiples too."""
    return step * log_integer(rng, low // step, high // step)


def weighted(rng: random.Random, choices: Sequence[Tuple[T, float]]) -> T:
    """One of the choices, by their weights."""
    return rng.choices([choice for choice, _ in choices], [weight for _, weight in choices])[0]


def stages(rng: random.Random, published: Sequence[Sequence[int]], most: Sequence[int]) -> List[int]:
    """Blocks of each stage: in two of five draws those of a published model, else up to `most` of each."""
    if rng.random() < 0.4:
        return list(rng.choice(published))
    return [log_integer(rng, 1, limit) for limit in most]


def real(rng: random.Random, low: float, high: float, digits: int = 2) -> float:
    """A number with few digits."""
    return round(rng.uniform(low, high), digits)
