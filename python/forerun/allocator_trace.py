"""The events of PyTorch's caching allocator, as columns of a run/2 record."""
from __future__ import annotations

import bisect
import contextlib
import time
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

Json = Dict[str, Any]

_LETTERS = {
    "alloc": "a",
    "free_requested": "r",
    "free_completed": "f",
    "segment_alloc": "S",
    "segment_free": "X",
    "segment_map": "M",
    "segment_unmap": "U",
    "oom": "O",
}
_UNIT = 512  # bytes: the allocator's smallest block, so every address is a multiple


class AllocatorTrace:
    """Follows the allocator while `recording()`; phases are marked by the host's clock, which the allocator's events
    carry too."""

    def __init__(self) -> None:
        self._marks: List[Tuple[int, str]] = []

    @contextlib.contextmanager
    def recording(self, enabled: bool) -> Iterator[None]:
        import torch

        if not enabled:
            yield
            return
        torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=2_000_000)
        try:
            yield
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)

    def mark(self, name: str) -> None:
        self._marks.append((time.time_ns() // 1000, name))

    def columns(self) -> Json:
        import torch

        return trace_columns(torch.cuda.memory._snapshot()["device_traces"][0], self._marks)


def trace_columns(events: Sequence[Mapping[str, Any]], marks: Sequence[Tuple[int, str]]) -> Json:
    """Allocator events, as `torch.cuda.memory._snapshot` lists them, in columns."""
    known = [event for event in events if event["action"] in _LETTERS]
    addresses = [event.get("addr", event.get("device_free", 0)) if event["action"] != "oom" else 0 for event in known]
    streams: Dict[int, int] = {}
    base = min((address for address in addresses if address), default=0)
    times = [event.get("time_us", 0) for event in known]
    return {
        "action": "".join(_LETTERS[event["action"]] for event in known),
        "address_base": base,
        "address": [(address - base) // _UNIT if address else -1 for address in addresses],
        "size": [event["size"] for event in known],
        "stream": [streams.setdefault(event["stream"], len(streams)) for event in known],
        "marks": [[bisect.bisect_left(times, moment), name] for moment, name in marks],
    }
