"""What ran on the GPU, kernel by kernel: when it did, and how many bytes of the GPU's memory it moved. No torch.

A profiler (kernel_watch.py) tells begin and end of every kernel and copy of a worker. Bytes of a kernel are those of
the op that launches it: one iteration's ops are recorded beforehand, each with the bytes of its operands and a mark
around it, and a kernel that is measured takes the bytes of its counterpart there. An op with several kernels shares its
bytes among them by their time; kernels without a counterpart move as many bytes a second as the others do. So bytes say
how traffic is spread over time; how much there is, hardware counters say.
"""

from __future__ import annotations

import bisect
from typing import Dict, Iterable, List, Sequence, Tuple

from ..kernels import Event, OpMarks, kernels_of, match

Activity = Tuple[int, int, float]  # begin and end on time.monotonic_ns()'s clock, bytes moved
DeviceEvent = Tuple[int, int, str]  # begin, end, name
RecordedKernel = Tuple[str, float]  # name, bytes; below zero: unknown

_TO_AND_FROM_HOST = ("Memcpy DtoH", "Memcpy HtoD")
_NO_GAP_NS, _STRETCH_NS = 2_000, 100_000  # kernels no further apart are told as one, up to this length
_CLOCKS_APART_NS = 50_000_000  # beyond it the profiler's clock cannot be the one that it says


def recorded_kernels(events: Sequence[Event], op_bytes: Sequence[int]) -> List[RecordedKernel]:
    """Kernels in the order in which they ran, with their parts of the bytes of their ops."""
    marks = OpMarks(events)
    kernels = sorted(kernels_of(events), key=lambda kernel: kernel.start)
    ops = [marks.op_at(kernel.launch.start) for kernel in kernels]
    lasted: Dict[int, int] = {}
    for kernel, op in zip(kernels, ops):
        lasted[op] = lasted.get(op, 0) + kernel.duration
    return [(kernel.name, op_bytes[op] * kernel.duration / max(1, lasted[op]) if op >= 0 else -1.0)
            for kernel, op in zip(kernels, ops)]


def on_clock(events: List[DeviceEvent], end: int) -> List[DeviceEvent]:
    """The events, the last of which ends with training: moved there where the profiler's clock was another."""
    apart = end - max((event[1] for event in events), default=end)
    if abs(apart) <= _CLOCKS_APART_NS:
        return events
    return [(begin + apart, until + apart, name) for begin, until, name in events]


def activities(events: Sequence[DeviceEvent], begins: Sequence[int], recorded: Sequence[RecordedKernel],
               host_bytes: int) -> List[Activity]:
    """Events, in order, of iterations that begin at these times, each with the bytes of its counterpart in `recorded`;
    copies from and to the host have `host_bytes`."""
    found: List[Activity] = []
    names = [name for name, _ in recorded]
    first = [bisect.bisect_left(events, (begin,)) for begin in begins] + [len(events)]
    for from_event, to_event in zip(first, first[1:]):
        inside = events[from_event:to_event]
        counterparts, _ = match([event[2] for event in inside], names, range(len(names)))
        for (begin, end, name), counterpart in zip(inside, counterparts):
            moved = recorded[counterpart][1] if counterpart >= 0 else -1.0
            found.append((begin, end, host_bytes if name.startswith(_TO_AND_FROM_HOST) else moved))
    known = [one for one in found if one[2] >= 0]
    rate = sum(one[2] for one in known) / max(1, sum(one[1] - one[0] for one in known)) if known else 1.0
    return [(begin, end, moved if moved >= 0 else rate * (end - begin)) for begin, end, moved in found]


def merged(activity: Sequence[Activity]) -> List[Activity]:
    """Kernels that follow each other at once, put together to short stretches."""
    stretches: List[Activity] = []
    for begin, end, moved in sorted(activity):
        first, last, before = stretches[-1] if stretches else (0, 0, 0.0)
        if stretches and begin - last <= _NO_GAP_NS and end - first <= _STRETCH_NS:
            stretches[-1] = (first, max(last, end), before + moved)
        else:
            stretches.append((begin, end, moved))
    return stretches


def spread(kernels: Iterable[Activity], begin: int, end: int, period: int) -> List[float]:
    """Bytes that kernels move in each step, even over a kernel's time."""
    steps = [0.0] * max(0, (end - begin) // period)
    for first, last, moved in kernels:
        for step in range(max(0, (first - begin) // period), min(len(steps), (last - begin) // period + 1)):
            inside = min(last, begin + (step + 1) * period) - max(first, begin + step * period)
            steps[step] += moved * inside / max(1, last - first)
    return steps
