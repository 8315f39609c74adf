"""Times the samples of a plan in batches and writes their records.

A batch is timed op by op, then profiled once as a whole, then written, so a kill loses at most one batch: no more than
BATCH_SAMPLES samples and about BATCH_S seconds. A journal names the sample in flight; if the process dies of it,
whoever watches over the process (`forerun.microbench`) reads there which sample to leave out.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from forerun.grids.sampling import Sample
from forerun.op_measurement import DeviceOutOfMemory, Kernels, Measurement, OpTimer
from forerun.progress import Progress
from forerun.shards import ShardWriter, finished_ids

PREFIX = "ops"
BATCH_SAMPLES = 256
BATCH_S = 4.0
JOURNAL = "microbench.attempt"
_ERROR_CHARACTERS = 300


class DeviceLost(Exception):
    """The device is of no more use to this process: a new one has to go on."""


@dataclass(frozen=True)
class Attempt:
    """What a worker was at: timing a sample, or profiling a batch."""

    phase: str
    id: str


class Journal:
    """A small file that always names what is in flight; rewritten in place, so that it costs next to nothing."""

    _SIZE = 96

    def __init__(self, directory: Path) -> None:
        self.path = directory / JOURNAL
        self._file: Optional[int] = None

    def write(self, attempt: Attempt) -> None:
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        line = json.dumps([attempt.phase, attempt.id])
        os.pwrite(self._file, line.ljust(self._SIZE).encode(), 0)

    def read(self) -> Optional[Attempt]:
        try:
            phase, id_ = json.loads(self.path.read_text())
            return Attempt(phase, id_)
        except (OSError, ValueError):
            return None

    def age_s(self) -> Optional[float]:
        """Since the last write; None if there was none."""
        try:
            return time.time() - self.path.stat().st_mtime
        except OSError:
            return None

    def clear(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self.path.unlink(missing_ok=True)


@dataclass
class Summary:
    """How many samples ended how, and how long those of each grid took to time; what profiles took stands apart."""

    statuses: Dict[str, int] = field(default_factory=dict)
    seconds: Dict[str, float] = field(default_factory=dict)
    profile_s: float = 0.0

    def count(self, status: str) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def text(self) -> str:
        if not self.statuses:
            return "all is done"
        counted = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        took = ", ".join(f"{grid} {seconds:.1f}" for grid, seconds in sorted(self.seconds.items()))
        return f"timed {counted}; seconds: {took}, profiles {self.profile_s:.1f}"


@dataclass
class _Entry:
    """A sample of the batch at hand, and its record so far."""

    record: Dict[str, object]
    measurement: Optional[Measurement] = None


def record_of(sample: Sample) -> Dict[str, object]:
    """An op/1 record with what was asked for."""
    return {"schema": "op/1", "id": sample.id, "status": "ok", "grid": sample.grid, **sample.describe(), "outputs": []}


def failed_record(sample: Sample, error: str) -> Dict[str, object]:
    return {**record_of(sample), "status": "failed", "error": error[:_ERROR_CHARACTERS]}


class OpWorker:
    """Measures what of a plan is not yet in a folder's shards."""

    def __init__(self, directory: Path, timer: OpTimer, profile_first: bool = True,
                 clock: Callable[[], float] = time.monotonic, orphaned: Callable[[], bool] = lambda: False) -> None:
        """`orphaned` tells that nobody watches any more; without `profile_first` the first batch gets no kernels."""
        self._directory = directory
        self._timer = timer
        self._profile_next = profile_first
        self._clock = clock
        self._orphaned = orphaned
        self._journal = Journal(directory)
        self._summary = Summary()

    def run(self, plan: Sequence[Sample], deadline: Optional[float] = None,
            died: Optional[Mapping[str, str]] = None) -> Summary:
        """Goes through the plan until its end or the deadline, a time of the clock. Raises DeviceLost.

        :param died: samples that have ended a process before, by id, with how: they are written as failed
        """
        done = finished_ids(self._directory, PREFIX)
        left = [sample for sample in plan if sample.id not in done]
        if not left:
            return self._summary
        with ShardWriter(self._directory, PREFIX) as writer, \
                Progress(len(plan), "ops", done=len(plan) - len(left), deadline=deadline,
                         clock=self._clock) as progress:
            writer.append({"schema": "env/1", **self._timer.environment()})
            left = self._write_died(left, died or {}, writer, progress)
            place = 0
            while place < len(left) and not self._over(deadline) and not self._orphaned():
                entries = self._batch(left, place, deadline)
                self._write(entries, writer)
                place += len(entries)
                progress.advance(len(entries), self._note())
        self._journal.clear()
        return self._summary

    def _write_died(self, left: List[Sample], died: Mapping[str, str], writer: ShardWriter,
                    progress: Progress) -> List[Sample]:
        dead = [sample for sample in left if sample.id in died]
        for sample in dead:
            writer.append(failed_record(sample, died[sample.id]))
            self._summary.count("failed")
        progress.advance(len(dead))
        return [sample for sample in left if sample.id not in died]

    def _over(self, deadline: Optional[float]) -> bool:
        return deadline is not None and self._clock() >= deadline

    def _batch(self, left: Sequence[Sample], place: int, deadline: Optional[float]) -> List[_Entry]:
        """Times samples from `place` on, until the batch is full, has kept much memory or taken its time."""
        self._timer.begin_batch()
        entries: List[_Entry] = []
        kept = 0
        end = self._clock() + BATCH_S
        if deadline is not None:
            end = min(end, deadline)
        for sample in left[place:place + BATCH_SAMPLES]:
            self._journal.write(Attempt("time", sample.id))
            begin = self._clock()
            entry = self._time(sample)
            self._summary.seconds[sample.grid] = self._summary.seconds.get(sample.grid, 0.0) + self._clock() - begin
            entries.append(entry)
            kept += entry.measurement.kept_bytes if entry.measurement is not None else 0
            if kept > self._timer.keep_limit_bytes or self._clock() >= end:
                break
        return entries

    def _time(self, sample: Sample) -> _Entry:
        record = record_of(sample)
        try:
            measurement = self._timer.measure(sample)
        except DeviceOutOfMemory:
            record["status"] = "oom"
        except Exception as error:
            record = failed_record(sample, f"{type(error).__name__}: {_first_line(str(error))}")
        else:
            record.update(us=measurement.us, spread=measurement.spread, workspace=measurement.workspace,
                          inputs=measurement.inputs, outputs=measurement.outputs, kernels=[])
            return _Entry(record, measurement)
        # Outside the handlers: what they caught holds the frames of the call, and those its tensors.
        if not self._timer.recover():
            raise DeviceLost(f"the device was lost at {sample.op} ({record.get('error', 'out of memory')})")
        return _Entry(record)

    def _write(self, entries: Sequence[_Entry], writer: ShardWriter) -> None:
        timed = [entry for entry in entries if entry.measurement is not None]
        begin = self._clock()
        for entry, kernels in zip(timed, self._kernels(timed)):
            entry.record["kernels"] = kernels or []
        self._summary.profile_s += self._clock() - begin
        for entry in entries:
            entry.measurement = None
            writer.append(entry.record)
            self._summary.count(str(entry.record["status"]))

    def _kernels(self, timed: Sequence[_Entry]) -> Sequence[Optional[Kernels]]:
        profile, self._profile_next = self._profile_next, True
        if not timed or not profile:
            return [None] * len(timed)
        self._journal.write(Attempt("profile", str(timed[0].record["id"])))
        try:
            return self._timer.profile([entry.measurement.replay for entry in timed if entry.measurement is not None])
        except Exception as error:
            lost = _first_line(str(error))
        if not self._timer.recover():
            raise DeviceLost(f"the device was lost while a batch was profiled ({lost})")
        return [None] * len(timed)

    def _note(self) -> str:
        return ", ".join(f"{count} {status}" for status, count in sorted(self._summary.statuses.items())
                         if status != "ok")


def _first_line(text: str) -> str:
    lines: Tuple[str, ...] = tuple(text.strip().splitlines()) or ("",)
    return lines[0]
