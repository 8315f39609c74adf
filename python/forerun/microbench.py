"""Times single ops over shape grids on a GPU and writes op/1 records (docs/records.md).

    python -m forerun.microbench --out DIR [--grid conv,gemm] [--minutes 9]

The plan is seeded and mixed (`forerun.grids`); what DIR already holds is left out, so the same command resumes a run
that was killed, which loses at most one batch (`forerun.op_worker`). The ops are timed in a process of their own: if
one of them kills it, hangs it or loses the GPU's context, that sample is recorded as failed and a new process goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

from forerun.grids import GRIDS, UnknownGrid, plan
from forerun.grids.sampling import Sample
from forerun.op_worker import DeviceLost, Journal, OpWorker
from forerun.shards import InUse, exclusive

EXIT_USAGE = 2
EXIT_DEVICE_LOST = 75
EXIT_INTERRUPTED = 130
STALL_S = 120.0
START_S = 600.0
MAX_DEATHS = 100
_PR_SET_PDEATHSIG = 1
DEFAULT_TIMER = "forerun.op_timing:CudaOpTimer"


class BadList(ValueError):
    """A file of samples cannot be read."""


def parse(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m forerun.microbench", description="Times single ops on a GPU.")
    parser.add_argument("--out", type=Path, help="folder for the record files; what it holds is not timed again")
    parser.add_argument("--grid", help=f"grids, separated by commas (all: {','.join(GRIDS)})")
    parser.add_argument("--closed-list", type=Path, metavar="FILE",
                        help="time these samples instead: a JSON object {op, inputs, attributes, precision} a line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="how many samples, in parts of the whole plan")
    parser.add_argument("--minutes", type=float, help="stop after this time, process start included")
    parser.add_argument("--limit", type=int, help="only the first N samples of the plan")
    parser.add_argument("--list", action="store_true", help="print how many samples the plan has by grid and op")
    parser.add_argument("--timer", default=DEFAULT_TIMER, help=argparse.SUPPRESS)
    parser.add_argument("--stall", type=float, default=STALL_S, help=argparse.SUPPRESS)
    parser.add_argument("--worker-of", type=int, metavar="PID", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--died", nargs=2, metavar=("ID", "HOW"), help=argparse.SUPPRESS)
    parser.add_argument("--no-first-profile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.out is None and not options.list:
        parser.error("--out is needed (or --list)")
    return options


def make_plan(options: argparse.Namespace) -> List[Sample]:
    if options.closed_list is not None:
        samples = read_list(options.closed_list)
    else:
        samples = plan(options.seed, options.grid.split(",") if options.grid else None, options.scale)
    return samples[:options.limit]


def read_list(path: Path) -> List[Sample]:
    """The distinct samples of a file. Raises BadList, naming the line."""
    samples: Dict[str, Sample] = {}
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise BadList(f"{path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                sample = Sample.from_json(json.loads(line), "list")
            except (ValueError, AttributeError, TypeError) as error:
                raise BadList(f"{path}:{number}: {error}") from error
            samples.setdefault(sample.id, sample)
    return list(samples.values())


def listing(samples: Sequence[Sample]) -> str:
    """The plan in numbers: samples and estimated GPU seconds of one call each, by grid and by op."""
    counts = Counter((sample.grid, sample.op) for sample in samples)
    lines = []
    grids = {sample.grid for sample in samples}
    for grid in [name for name in GRIDS if name in grids] + sorted(grids - set(GRIDS)):
        lines.append(_line(grid, [sample for sample in samples if sample.grid == grid]))
        lines += [f"    {count:>6} {op}" for (name, op), count in counts.most_common() if name == grid]
    lines.append(_line("total", samples))
    return "\n".join(lines)


def _line(name: str, samples: Sequence[Sample]) -> str:
    return f"{name:<12} {len(samples):>6} samples  {sum(sample.cost_us for sample in samples) / 1e6:6.1f} s a call each"


# -- the process that times --------------------------------------------------------------------------------------------


def work(options: argparse.Namespace) -> int:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt reaches the parent too, which ends this process
    module, _, name = options.timer.partition(":")
    timer = getattr(importlib.import_module(module), name)()
    samples = make_plan(options)
    deadline = None if options.until is None else time.monotonic() + options.until - time.time()
    worker = OpWorker(options.out, timer, profile_first=not options.no_first_profile,
                      orphaned=lambda: os.getppid() != options.worker_of)
    try:
        summary = worker.run(samples, deadline, dict([options.died]) if options.died else {})
    except DeviceLost as error:
        say(str(error))
        os._exit(EXIT_DEVICE_LOST)  # what would be torn down is broken, and may hang
    say(summary.text())
    return 0


def die_with_parent() -> None:
    """Nothing may go on writing where nobody watches. Linux only; elsewhere the end of a batch notices."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


# -- the process that watches ------------------------------------------------------------------------------------------

Spawn = Callable[[List[str]], str]
"""Runs a worker with these further options to its end; '' if it ended well, else how it died."""


def supervise(journal: Journal, spawn: Spawn) -> int:
    """Starts workers until one ends well, each leaving out what the one before died of."""
    extra: List[str] = []
    deaths: Counter[str] = Counter()
    for _ in range(MAX_DEATHS):
        journal.clear()
        death = spawn(extra)
        if not death:
            return 0
        attempt = journal.read()
        if attempt is None:
            say(f"the worker {death} before it timed anything")
            return 1
        say(f"the worker {death} ({attempt.phase} {attempt.id}); going on without")
        deaths[attempt.id] += 1
        extra = ["--no-first-profile"] if attempt.phase == "profile" and deaths[attempt.id] == 1 \
            else ["--died", attempt.id, f"the process {death}"]
    say(f"{MAX_DEATHS} workers have died: giving up")
    return 1


def spawner(arguments: Sequence[str], journal: Journal, stall_s: float,
            module: str = "forerun.microbench") -> Spawn:
    """Runs workers as processes of their own; kills those that are stuck in one place."""
    def spawn(extra: List[str]) -> str:
        command = [sys.executable, "-m", module, *arguments, *extra, "--worker-of", str(os.getpid())]
        begin = time.monotonic()
        process = subprocess.Popen(command, env=_environment_with_package())
        try:
            while True:
                try:
                    code = process.wait(timeout=0.5)
                    return _death(code)
                except subprocess.TimeoutExpired:
                    idle, allowed = journal.age_s(), stall_s
                    if idle is None:  # nothing begun yet: importing torch and waking a GPU may take minutes
                        idle, allowed = time.monotonic() - begin, START_S
                    if idle > allowed:
                        return "hung and was killed"
        finally:
            process.kill()
            process.wait()
    return spawn


def _death(code: int) -> str:
    if code == 0:
        return ""
    if code == EXIT_DEVICE_LOST:
        return "lost the device"
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"


def _environment_with_package() -> Dict[str, str]:
    package = str(Path(__file__).resolve().parents[1])
    paths = [package] + [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def say(text: str) -> None:
    print(f"forerun.microbench: {text}", file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parse(given)
    try:
        if options.worker_of is not None:
            return work(options)
        if options.list:
            print(listing(make_plan(options)))
            return 0
        if options.grid:
            plan(grids=options.grid.split(","), scale=0.0)
        if options.closed_list is not None:
            read_list(options.closed_list)
        if options.minutes is not None:
            given += ["--until", repr(time.time() + 60 * options.minutes)]
        with exclusive(options.out):
            journal = Journal(options.out)
            return supervise(journal, spawner(given, journal, options.stall))
    except (UnknownGrid, BadList, InUse) as error:
        say(str(error))
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
