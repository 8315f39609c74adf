"""Measures a plan of training configurations on this machine's GPU and keeps the records.

    python -m forerun.collect --out data/mine --families resnet,vit --count 50 --seed 7 --minutes 30

    python -m forerun.collect --compile --setups examples/compile_setups.py --out data/mine --minutes 30

With --compile it measures pairs, each set-up as it is and under torch.compile, with Inductor's own list of kernels
(forerun.compile_pairs), into pairs.jsonl.gz of --out.

Records go to shards run-NNNN.jsonl in --out (forerun.shards). The same command again goes on where it stopped, after a
kill at any moment: what is recorded is skipped, at most the configuration in hand is lost. What does not fit in memory
is recorded as `oom`, what raises, crashes or hangs as `failed`, and the rest goes on in a new worker (forerun.worker).
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type

from forerun import families
from forerun.configuration import Configuration
from forerun.progress import Progress
from forerun.records import encode
from forerun.shards import InUse, ShardWriter, exclusive, finished, read_records
from forerun.worker import Answer, Interrupted, Worker, WorkerFailed, failed_record

PREFIX = "run"
LOG = "worker.log"
PAIRS = "pairs.jsonl.gz"
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
STARTS_BEFORE_GIVING_UP = 5


class GaveUp(Exception):
    """The worker does not start: nothing can be measured here."""


class PlanError(Exception):
    """The plan cannot be followed; the text says why and what to do."""


class Signals:
    """Turns SIGINT and SIGTERM into a descriptor that becomes readable, so that nothing is cut off halfway."""

    def __init__(self) -> None:
        self.received: Optional[signal.Signals] = None
        self.fileno, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._before: Dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        signal.set_wakeup_fd(self._write_end)
        for kind in (signal.SIGINT, signal.SIGTERM):
            self._before[kind] = signal.signal(kind, self._note)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self.fileno)
        os.close(self._write_end)

    def _note(self, number: int, frame: Optional[FrameType]) -> None:
        self.received = signal.Signals(number)


@dataclasses.dataclass
class Summary:
    """What one run of the collector did."""

    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    left: int = 0
    seconds: float = 0.0
    with_problems: int = 0

    def text(self) -> str:
        total, minutes = sum(self.counts.values()), self.seconds / 60
        by_status = ", ".join(f"{self.counts[status]} {status}" for status in ("ok", "oom", "failed"))
        rate = f"{total / minutes:.1f}" if minutes > 0 else "0"
        text = f"{total} records in {minutes:.1f} minutes, {rate} a minute: {by_status}; {self.left} left"
        return text + (f"; {self.with_problems} with something missing" if self.with_problems else "")


class Collector:
    """Works through a plan: hands one configuration at a time to a worker and keeps its answers."""

    def __init__(self, out: Path, instrument: str, timeout_s: float, signals: Signals) -> None:
        self._out = out
        self._instrument = instrument
        self._timeout_s = timeout_s
        self._signals = signals
        self._worker: Optional[Worker] = None

    def run(self, configurations: Sequence[Configuration], progress: Progress, deadline: Optional[float]) -> Summary:
        """Measures until the end of the plan, the deadline or a signal."""
        summary = Summary(left=len(configurations))
        begin = time.monotonic()
        try:
            with ShardWriter(self._out, PREFIX, sync=True) as shard:
                for configuration in configurations:
                    if self._is_over(deadline):
                        break
                    if self._worker is None:
                        self._worker = self._start(progress)
                        if self._is_over(deadline):
                            break
                    answer = self._measure(self._worker, configuration, progress)
                    shard.append_line(answer.line)
                    self._count(summary, configuration, answer, progress)
            if self._worker is not None and not self._signals.received:
                self._worker.close()
                self._worker = None
        except Interrupted:
            pass
        finally:
            if self._worker is not None:
                self._worker.kill()
            summary.seconds = time.monotonic() - begin
        return summary

    def _is_over(self, deadline: Optional[float]) -> bool:
        return self._signals.received is not None or (deadline is not None and time.monotonic() >= deadline)

    def _measure(self, worker: Worker, configuration: Configuration, progress: Progress) -> Answer:
        """The record of a configuration, whatever becomes of the worker."""
        begin = time.monotonic()
        try:
            return worker.measure(configuration, self._timeout_s)
        except WorkerFailed as failure:
            worker.kill()
            self._worker = None
            progress.message(f"{configuration.id} failed: {failure.headline}")
            record = failed_record(configuration, worker.environment, str(failure), time.monotonic() - begin)
            return Answer(encode(record), "failed", ())

    def _start(self, progress: Progress) -> Worker:
        for attempt in range(1, STARTS_BEFORE_GIVING_UP + 1):
            try:
                return Worker(self._instrument, self._out / LOG, self._signals.fileno)
            except WorkerFailed as failure:
                progress.message(f"worker start {attempt} of {STARTS_BEFORE_GIVING_UP}: {failure.headline}")
                if attempt == STARTS_BEFORE_GIVING_UP or failure.final:
                    raise GaveUp(f"the instrument {self._instrument} does not start: {failure}") from None
                time.sleep(0.1 * 2 ** attempt)
        raise AssertionError("one of the attempts returns or raises")

    def _count(self, summary: Summary, configuration: Configuration, answer: Answer, progress: Progress) -> None:
        summary.counts[answer.status] += 1
        summary.left -= 1
        if answer.problems:
            summary.with_problems += 1
            progress.message(f"{configuration.id} is kept, but: {'; '.join(answer.problems[:3])}")
        progress.advance(note=f"{configuration.id} {answer.status}")


def read_plan(path: Path) -> List[Configuration]:
    """The configurations of a JSON Lines file; a record file will do, and asks for the same again."""
    def refuse(file: Path, line: int, problem: str) -> None:
        raise PlanError(f"{file}:{line}: {problem}")

    try:
        return [Configuration.from_json(entry) for entry in read_records(path, refuse)]
    except ValueError as error:
        raise PlanError(f"{path}: {error}") from error
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}") from error


def sample_plan(names: str, count: int, seed: int) -> List[Configuration]:
    """`count` configurations of the families, comma-separated; of all if none is named. Ids say what is measured."""
    wanted = names.split(",") if names else list(families.USUAL)
    unknown = sorted(set(wanted) - set(families.FAMILIES))
    if unknown:
        raise PlanError(f"no family {', '.join(unknown)}; there are {', '.join(families.FAMILIES)}")
    drawn = families.plan(seed, families.default_counts(count, wanted))
    return [dataclasses.replace(entry, id=f"{entry.family}-{entry.key}") for entry in drawn]


def only(configurations: Sequence[Configuration], path: Path) -> List[Configuration]:
    """Those of a plan whose ids a file names, one a line."""
    wanted = set(path.read_text().split())
    unknown = wanted - {configuration.id for configuration in configurations}
    if unknown:
        raise PlanError(f"{path}: {len(unknown)} ids are not in the plan, {sorted(unknown)[0]!r} among them")
    return [configuration for configuration in configurations if configuration.id in wanted]


def without_duplicates(configurations: Sequence[Configuration]) -> List[Configuration]:
    """Each id once. The same id for two configurations is an error: one of them would never be measured."""
    by_id: Dict[str, Configuration] = {}
    for configuration in configurations:
        known = by_id.setdefault(configuration.id, configuration)
        if known.key != configuration.key:
            raise PlanError(f"the plan has two configurations with the id {configuration.id!r}")
    return list(by_id.values())


def not_recorded(plan: Sequence[Configuration], out: Path, retry_failed: bool) -> List[Configuration]:
    """What of a plan is left to measure."""
    recorded = finished(out, PREFIX)
    left = []
    for configuration in plan:
        record = recorded.get(configuration.id)
        if record is not None and Configuration.from_json(record).key != configuration.key:
            raise PlanError(f"{out} has another configuration under the id {configuration.id!r}: give another folder")
        if record is None or (retry_failed and record["status"] == "failed"):
            left.append(configuration)
    return left


def parse(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m forerun.collect", description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the shards; goes on with what is there")
    add("--plan", type=Path, metavar="FILE", help="what to measure: configurations or records, JSON Lines")
    add("--families", default="", metavar="A,B", help="without --plan: sample these families (default: all)")
    add("--count", type=int, default=100, metavar="N", help="how many configurations (default: %(default)s)")
    add("--seed", type=int, default=0, metavar="S", help="of the sampling (default: %(default)s)")
    add("--repeat", type=Path, metavar="FILE", help="only the ids that this file names, one a line")
    add("--minutes", type=float, metavar="M", help="start no configuration after this time")
    add("--timeout", type=float, default=120, metavar="S", help="seconds after which one hangs (default: %(default)s)")
    add("--retry-failed", action="store_true", help="measure again what is recorded as failed")
    add("--instrument", default="forerun.measure:CudaInstrument", metavar="MODULE:CLASS",
        help="what measures (default: %(default)s)")
    add("--compile", nargs="?", const="default", choices=MODES, metavar="MODE",
        help="pairs of eager and compiled iterations of --setups, in this mode of torch.compile (default: default)")
    add("--setups", metavar="FILE", help="with --compile: Python file that defines SETUPS")
    options = parser.parse_args(arguments)
    if (options.compile is None) != (options.setups is None):
        parser.error("--compile measures the set-ups of a file: give --compile and --setups FILE")
    if options.compile is not None and (options.plan or options.families or options.repeat):
        parser.error("--compile measures the set-ups of --setups: leave out --plan, --families and --repeat")
    return options


def collect_pairs(options: argparse.Namespace) -> int:
    """Goes on with what the file has."""
    from forerun import compile_pairs  # needs PyTorch

    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / PAIRS
    words = [options.setups, "-o", str(file), "--mode", options.compile]
    if options.minutes is not None:
        words += ["--minutes", str(options.minutes)]
    if file.exists():
        words += ["--skip", str(file)]
    return compile_pairs.main(words)


def collect(options: argparse.Namespace) -> int:
    """The exit code: 0 done or out of time, 130 or 143 after a signal."""
    begin = time.monotonic()
    plan = read_plan(options.plan) if options.plan else sample_plan(options.families, options.count, options.seed)
    plan = without_duplicates(only(plan, options.repeat) if options.repeat else plan)
    with exclusive(options.out), Signals() as signals:
        todo = not_recorded(plan, options.out, options.retry_failed)
        deadline = begin + 60 * options.minutes if options.minutes is not None else None
        say(f"{len(plan)} configurations, {len(plan) - len(todo)} of them recorded in {options.out}")
        with Progress(len(plan), "collect", done=len(plan) - len(todo), deadline=deadline) as progress:
            summary = Collector(options.out, options.instrument, options.timeout, signals).run(todo, progress, deadline)
        say(summary.text())
        if summary.left:
            say(f"to go on: {shlex.join([Path(sys.executable).name, '-m', 'forerun.collect', *sys.argv[1:]])}")
        say(f"to look at them: forerun data summary {shlex.quote(str(options.out))}")
        return 128 + signals.received if signals.received else 0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    try:
        options = parse(arguments)
        return collect(options) if options.compile is None else collect_pairs(options)
    except (PlanError, InUse, GaveUp, OSError) as error:
        say(f"collect: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
