"""Readings of `forerun-testbed sample`, kept while a workload runs, and cut to the window that is measured.

Lines are "n NS sent received ..." (bytes so far, a pair for each node) and "g NS gpu memory" (percent since the "g"
line before). NS is CLOCK_MONOTONIC, as time.monotonic_ns() is.
"""

from __future__ import annotations

import bisect
import contextlib
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

Reading = Tuple[int, Tuple[float, ...]]  # a time in nanoseconds, and values


def parse_line(line: str) -> Optional[Tuple[str, int, Tuple[float, ...]]]:
    """Kind, time and values of a reading; None for another line or half of one."""
    words = line.split()
    if len(words) < 3 or words[0] not in ("n", "g"):
        return None
    try:
        return words[0], int(words[1]), tuple(float(word) for word in words[2:])
    except ValueError:
        return None


def at(readings: Sequence[Reading], ns: int, column: int) -> float:
    """A counter at a time, by linear interpolation; the nearest reading outside."""
    place = bisect.bisect_left(readings, (ns,))
    if place == 0:
        return readings[0][1][column]
    if place == len(readings):
        return readings[-1][1][column]
    (before, a), (after, b) = readings[place - 1], readings[place]
    return a[column] + (b[column] - a[column]) * (ns - before) / (after - before)


def rates(readings: Sequence[Reading], column: int, begin: int, end: int, period: int) -> List[float]:
    """A counter's increase per second, in steps of `period` from `begin`."""
    if len(readings) < 2:
        return []
    last = min(end, readings[-1][0])
    marks = [at(readings, ns, column) for ns in range(begin, last + 1, period)]
    return [(after - before) * 1e9 / period for before, after in zip(marks, marks[1:])]


def mean_level(readings: Sequence[Reading], column: int, begin: int, end: int) -> float:
    """The mean of levels that hold from the reading before to their own, of those that lie between two times."""
    total, length = 0.0, 0
    for (before, _), (ns, values) in zip(readings, readings[1:]):
        if begin <= before and ns <= end:
            total += values[column] * (ns - before)
            length += ns - before
    return total / length if length else 0.0


def busy_share(intervals: Iterable[Tuple[int, int]], begin: int, end: int, period: int) -> List[float]:
    """In percent, the part of each step that lies in any of the intervals."""
    steps = max(0, (end - begin) // period)
    covered = [0] * steps
    reach = begin
    for first, last in sorted(intervals):
        first, last = max(first, reach), min(last, begin + steps * period)
        while first < last:
            step = (first - begin) // period
            until = min(last, begin + (step + 1) * period)
            covered[step] += until - first
            first = until
        reach = max(reach, last)
    return [100.0 * nanoseconds / period for nanoseconds in covered]


class Sampler:
    """A running `forerun-testbed sample`."""

    def __init__(self, program: Path, pids: Sequence[int], hz: float, gpu_hz: float) -> None:
        command = [str(program), "sample", "--pids", ",".join(map(str, pids)), "--hz", str(hz), "--gpu-hz", str(gpu_hz)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lock = threading.Lock()
        self._readings: Dict[str, List[Reading]] = {"n": [], "g": []}
        self.source = ""  # of the "g" lines: gpm, samples, rates or none
        self.cpu_share = 0.0  # of one core, known after close
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reading = parse_line(line)
            words = line.split()
            if reading is not None:
                with self._lock:
                    self._readings[reading[0]].append(reading[1:])
            elif len(words) >= 2 and words[0] == "source":
                self.source = words[1]
            elif len(words) == 3 and words[0] == "cpu":
                self.cpu_share = float(words[1]) / max(1e-9, float(words[2]))

    def forget(self) -> None:
        """Drops what was read so far."""
        with self._lock:
            for readings in self._readings.values():
                readings.clear()

    def readings(self, kind: str) -> List[Reading]:
        with self._lock:
            return sorted(self._readings[kind])

    def wait_for(self, ns: int, timeout_s: float = 1.0) -> None:
        """Until readings up to a time have come."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._process.poll() is None:
            with self._lock:
                counters = self._readings["n"]
                if counters and counters[-1][0] >= ns:
                    return
            time.sleep(0.01)

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join(5)

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()
