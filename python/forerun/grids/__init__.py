"""The shape grids of `forerun.microbench`: which ops to time, and on which tensors.

A grid is a module with `samples(draw, count)`; to add one, write it and name it in GRIDS. `plan` mixes the grids so
that whatever part of a plan is done first covers each of them in proportion. Everything is plain data and seeded.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from forerun.grids import (attention, conv, conv_net, gaps, gemm, indexing, norm, optimizer, pointwise, pool, reduction,
                           rnn, set_ups, softmax, vision)
from forerun.grids.sampling import Draw, Sample

Grid = Callable[[Draw, int], List[Sample]]

GRIDS: Mapping[str, Tuple[Grid, int]] = {
    conv.GRID: (conv.samples, 28_000),
    gemm.GRID: (gemm.samples, 11_500),
    norm.GRID: (norm.samples, 6_000),
    attention.GRID: (attention.samples, 5_000),
    pointwise.GRID: (pointwise.samples, 6_000),
    reduction.GRID: (reduction.samples, 2_500),
    pool.GRID: (pool.samples, 4_000),
    softmax.GRID: (softmax.samples, 2_500),
    indexing.GRID: (indexing.samples, 4_000),
    rnn.GRID: (rnn.samples, 3_000),
    optimizer.GRID: (optimizer.samples, 3_000),
    conv.LARGE_GRID: (conv.large_samples, 3_000),
    rnn.LARGE_GRID: (rnn.large_samples, 600),
    conv_net.GRID: (conv_net.samples, 12_000),
    conv_net.GROUP_GRID: (conv_net.group_samples, 8_000),
    conv_net.WINDOW_GRID: (conv_net.window_samples, 9_000),
    gaps.GRID: (gaps.samples, 12_000),
    vision.GRID: (vision.samples, 9_000),
    set_ups.GRID: (set_ups.samples, 9_000),
}


class UnknownGrid(ValueError):
    """A grid was asked for that there is not."""


def plan(seed: int = 0, grids: Optional[Sequence[str]] = None, scale: float = 1.0) -> List[Sample]:
    """All samples of the grids asked for (all by default), mixed; `scale` multiplies how many there are."""
    names = list(GRIDS) if grids is None else list(grids)
    unknown = [name for name in names if name not in GRIDS]
    if unknown:
        raise UnknownGrid(f"no grid {', '.join(unknown)}; there are {', '.join(GRIDS)}")
    placed: List[Tuple[float, Sample]] = []
    seen: Dict[str, None] = {}
    for name in names:
        make, count = GRIDS[name]
        draw = Draw(f"{name}:{seed}")
        samples = [sample for sample in make(draw, max(1, round(count * scale))) if sample.id not in seen]
        seen.update((sample.id, None) for sample in samples)
        placed += [((place + draw.random.random()) / len(samples), sample) for place, sample in enumerate(samples)]
    placed.sort(key=lambda entry: entry[0])
    return [sample for _, sample in placed]
