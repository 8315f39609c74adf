"""Kernels of a profiled iteration, and the ops that launched them.

Two iterations are profiled in one go: a plain one, whose times count, and a recorded one, in which every op carries a
mark. A kernel is joined to its launch by correlation id, the launch to the mark around it. Where both iterations
launched the same kernels in the same order (`aligned`), the plain one's kernels take the ops of their counterparts.
Elsewhere the two sequences are aligned first: libraries choose another kernel where a tensor happens to lie at
another address.
"""
from __future__ import annotations

import bisect
import collections
import dataclasses
import difflib
import re
from typing import Any, Deque, Dict, Iterable, List, Optional, Sequence, Tuple

Json = Dict[str, Any]

OP_MARK = "forerun.op."  # and the number of the op
PHASE_MARK = "forerun.phase."  # and u, f, b, or "end"
RECORDED_MARK = "forerun.recorded"  # the second iteration begins
_PHASES = {"f": "forward", "b": "backward", "u": "update"}
_RUNTIME = re.compile(r"cu(da)?[A-Z]|hip[A-Z]")
_LONGEST_ALIGNMENT = 4000  # kernels; the time it takes grows with the square
_SYNCS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cuCtxSynchronize")


@dataclasses.dataclass(frozen=True)
class Event:
    """What of a profiler's event matters here; times in nanoseconds."""

    name: str
    on_gpu: bool
    start: int
    duration: int
    correlation: int
    thread: int
    stream: int


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    start: int
    duration: int
    stream: int
    launch: Event


def events_of(results: Any) -> List[Event]:
    """The events of a Kineto result that carry marks, launches, kernels or synchronisations."""
    events = []
    for event in results.events():
        name = event.name()
        on_gpu = "CPU" not in str(event.device_type())
        if not on_gpu and not name.startswith("forerun.") and not _RUNTIME.match(name):
            continue
        events.append(
            Event(
                name,
                on_gpu,
                event.start_ns(),
                event.duration_ns(),
                event.correlation_id(),
                event.start_thread_id(),
                event.device_resource_id(),
            )
        )
    return events


def kernels_of(events: Sequence[Event]) -> List[Kernel]:
    """Kernels, copies and fills, each with the call that launched it. Annotations on the GPU's lane have no launch."""
    launches = {event.correlation: event for event in events if not event.on_gpu and _RUNTIME.match(event.name)}
    return [
        Kernel(event.name, event.start, event.duration, event.stream, launches[event.correlation])
        for event in events
        if event.on_gpu and event.correlation in launches and not event.name.startswith(("forerun.", "Optimizer."))
    ]


class OpMarks:
    """Finds the op whose mark covers a moment. Ops run one after another, whatever their thread."""

    def __init__(self, events: Iterable[Event]) -> None:
        marks = sorted(
            (event.start, event.start + event.duration, int(event.name[len(OP_MARK) :]))
            for event in events
            if not event.on_gpu and event.name.startswith(OP_MARK)
        )
        self._marks = marks
        self._starts = [mark[0] for mark in marks]

    def op_at(self, moment: int) -> int:
        index = bisect.bisect_right(self._starts, moment) - 1
        if index < 0 or moment > self._marks[index][1]:
            return -1
        return self._marks[index][2]


def match(plain: Sequence[str], recorded: Sequence[str], ops: Sequence[int]) -> Tuple[List[int], bool]:
    """The op of each plain kernel, given the recorded ones with theirs, all by name in order of launch; and whether
    both are the same."""
    if list(plain) == list(recorded):
        return list(ops), True
    head = _common(plain, recorded)
    tail = min(_common(plain[::-1], recorded[::-1]), len(plain) - head, len(recorded) - head)
    middle = slice(head, len(plain) - tail), slice(head, len(recorded) - tail)
    found = _align(plain[middle[0]], recorded[middle[1]], ops[middle[1]])
    return [*ops[:head], *found, *ops[len(ops) - tail :]], False


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many names both begin with."""
    return next(
        (index for index, (one, other) in enumerate(zip(first, second)) if one != other), min(len(first), len(second))
    )


def _align(plain: Sequence[str], recorded: Sequence[str], ops: Sequence[int]) -> List[int]:
    """Ops by the longest runs both have in common; between them by position where as many kernels stand, else by
    name."""
    if max(len(plain), len(recorded)) > _LONGEST_ALIGNMENT:
        return _by_name(plain, recorded, ops)
    found: List[int] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, plain, recorded, autojunk=False).get_opcodes():
        if kind == "equal" or b - a == d - c:
            found.extend(ops[c:d])
        else:
            found.extend(_by_name(plain[a:b], recorded[c:d], ops[c:d]))
    return found


def _by_name(plain: Sequence[str], recorded: Sequence[str], ops: Sequence[int]) -> List[int]:
    waiting: Dict[str, Deque[int]] = collections.defaultdict(collections.deque)
    for name, op in zip(recorded, ops):
        waiting[name].append(op)
    return [waiting[name].popleft() if waiting[name] else -1 for name in plain]


def profile_fields(events: Sequence[Event]) -> Json:
    """The fields kernel_names, kernels and profile of a run/2 record, from a plain and a recorded iteration."""
    boundary = next(event.start for event in events if event.name == RECORDED_MARK and not event.on_gpu)
    launched = sorted(kernels_of(events), key=lambda kernel: (kernel.launch.start, kernel.start))
    plain = [kernel for kernel in launched if kernel.launch.start < boundary]
    recorded = [kernel for kernel in launched if kernel.launch.start >= boundary]
    marks = OpMarks(events)
    ops, aligned = match(
        [kernel.name for kernel in plain],
        [kernel.name for kernel in recorded],
        [marks.op_at(kernel.launch.start) for kernel in recorded],
    )
    in_time = sorted(zip(plain, ops), key=lambda pair: pair[0].start)
    phases = _phases(events, boundary)
    origin = phases["forward"][0] if "forward" in phases else boundary
    syncs = [
        [event.name, _us(event.start - origin), _us(event.duration)]
        for event in events
        if not event.on_gpu and event.start < boundary and event.name.startswith(_SYNCS) and event.start >= origin
    ]
    return {
        **_kernel_columns([kernel for kernel, _ in in_time], [op for _, op in in_time], origin),
        "profile": {
            "phases": {name: [_us(start - origin), _us(end - origin)] for name, (start, end) in phases.items()},
            "sync": syncs,
            "aligned": aligned,
        },
    }


def _us(nanoseconds: int) -> float:
    return round(nanoseconds / 1000, 2)


def _phases(events: Sequence[Event], boundary: int) -> Dict[str, Tuple[int, int]]:
    """Begin and end of each phase of the plain iteration; the update is the last one (the first clears gradients)."""
    marks = sorted(
        (event.start, event.name[len(PHASE_MARK) :])
        for event in events
        if not event.on_gpu and event.name.startswith(PHASE_MARK) and event.start < boundary
    )
    phases: Dict[str, Tuple[int, int]] = {}
    for (start, letter), (end, _) in zip(marks, marks[1:]):
        name = _PHASES.get(letter)
        if name == "update" or (name is not None and name not in phases):
            phases[name] = (start, end)
        elif name is not None:
            phases[name] = (phases[name][0], end)
    return phases


def _kernel_columns(kernels: Sequence[Kernel], ops: Sequence[int], origin: int) -> Json:
    names: Dict[str, int] = {}
    threads: Dict[int, int] = {}
    columns: Dict[str, List[int]] = {
        key: [] for key in ("name", "start", "ns", "stream", "launch", "launch_ns", "thread", "op")
    }
    start, launch = origin, origin
    for kernel, op in zip(kernels, ops):
        columns["name"].append(names.setdefault(kernel.name, len(names)))
        columns["start"].append(kernel.start - start)
        columns["ns"].append(kernel.duration)
        columns["stream"].append(kernel.stream)
        columns["launch"].append(kernel.launch.start - launch)
        columns["launch_ns"].append(kernel.launch.duration)
        columns["thread"].append(threads.setdefault(kernel.launch.thread, len(threads)))
        columns["op"].append(op)
        start, launch = kernel.start, kernel.launch.start
    return {"kernel_names": list(names), "kernels": columns}


def unmatched(columns: Json) -> Optional[float]:
    """Share of the kernel time that belongs to no op."""
    total = sum(columns["kernels"]["ns"])
    lost = sum(ns for ns, op in zip(columns["kernels"]["ns"], columns["kernels"]["op"]) if op < 0)
    return lost / total if total else None
