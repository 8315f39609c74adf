"""Five minutes on your own GPU that bring predictions nearer to it: writes machine.json, for `--machine` of the verbs.

    python -m forerun.calibrate                        # five minutes; found by `forerun` where it is written
    python -m forerun.calibrate --minutes 20 --out machine.json
    python -m forerun.calibrate --host-only            # half a minute, and no GPU

Needs PyTorch alone. Times a chosen set of ops, first each alone (forerun.calibration_ops), then among others in
iterations of small networks (forerun.calibration_iterations); copies, collectives where there are several GPUs, and how
fast the host issues work (docs/calibrate.md). What was read is kept beside the file in FILE.work: the same command, or
one with more minutes, goes on from there, after Ctrl-C or a crash too. A GPU that other programs use is refused.
"""
from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

import torch

from . import calibration_iterations as iterations
from . import machine_readings as readings
from . import microbench
from .calibration_ops import calibration_plan
from .environment import environment
from .grids.sampling import Sample
from .op_worker import PREFIX, Journal
from .output_file import output_file
from .shards import InUse, exclusive, read_records, shards

Json = Dict[str, Any]

FORMAT = "machine/1"
PLAN = "calibration/2"
EXIT_INTERRUPTED = 130
_OPS_A_MINUTE = 6000   # more than any GPU times
_MOST_OPS = 15_000     # of a file: more take longer to be put to use than they are worth
_MOST_WITHIN = 15_000  # the same of those within iterations
_ALONE = 0.5           # of the time for ops, for those that are timed alone
_AGAIN = 60            # ops that are timed twice, to see whether repeats agree
_AGAIN_MINUTES = 2.5   # where there is so much time
_HOST_ROUNDS = 5


class Refused(Exception):
    """Nothing can be read here; the text says why and what to do."""


def default_out() -> Path:
    """Where `forerun` looks for the file."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(folder) / "forerun" / "machine.json"


def parse(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m forerun.calibrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--minutes", type=float, default=5.0, metavar="M", help="how long, all in all (default: 5)")
    add("--host-only", action="store_true", help="read the host alone, without a GPU: half a minute")
    add("--out", type=Path, default=None, metavar="FILE",
        help="the file to write (default: forerun/machine.json in the configuration folder, where forerun finds it)")
    add("--force", action="store_true", help="calibrate a GPU that other programs use: times will be too long")
    add("--again", action="store_true", help="forget what FILE.work holds and begin anew")
    add("--timer", default=microbench.DEFAULT_TIMER, help=argparse.SUPPRESS)
    add("--reader", default=iterations.DEFAULT_READER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not 0.05 <= options.minutes <= 24 * 60:
        parser.error("--minutes: give between 0.05 and 1440")
    options.out = options.out or default_out()
    return options


class Work:
    """The folder beside the file: shards of timed ops, and what else was read, as JSON."""

    def __init__(self, out: Path) -> None:
        self.folder = out.with_name(out.name + ".work")
        self.again = self.folder / "again"
        self.iterations = self.folder / "iterations"
        self._file = self.folder / "readings.json"

    def read(self) -> Json:
        try:
            value = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def write(self, value: Json) -> None:
        with output_file(self._file) as out:
            json.dump(value, out)


class Clock:
    """The time that is left of what the user gave."""

    def __init__(self, minutes: float) -> None:
        self.begin = time.time()
        self.until = self.begin + 60 * minutes

    def left_s(self) -> float:
        return self.until - time.time()


def card_of(device: torch.device) -> Json:
    """Machine, GPU, versions and date."""
    if device.type == "cuda":
        card = environment(device)
        card["gpus"] = torch.cuda.device_count()
    else:
        card = {"torch": str(torch.__version__), "date": datetime.date.today().isoformat(), "gpu": "", "gpus": 0}
        card.update(_machine())
    card["python"] = platform.python_version()
    return card


def _machine() -> Json:
    from .environment import _cpu, _host
    return {"cpu": _cpu() or platform.processor(), "host": _host()}


_SAME = ("gpu", "driver", "cuda", "torch", "host")


def resumed(work: Work, card: Json) -> Json:
    """What was read before. Raises Refused where that was another machine or other software."""
    state = work.read()
    before = state.get("card")
    if isinstance(before, dict):
        other = [name for name in _SAME if before.get(name, "") != card.get(name, "")]
        if other:
            was = ", ".join(f"{name} {before.get(name, '')!s}" for name in other)
            raise Refused(f"{work.folder} was read with {was}: give --again to begin anew, or another --out")
    else:
        state = {}
    state["card"] = card
    return state


# -- ops ---------------------------------------------------------------------------------------------------------------


def write_plan(path: Path, samples: Sequence[Sample]) -> None:
    with output_file(path) as out:
        for sample in samples:
            out.write(json.dumps(sample.describe()) + "\n")


def time_ops(folder: Path, samples: Sequence[Sample], until: float, timer: str) -> None:
    """Times what of the samples is not in the folder yet, in processes of their own (forerun.microbench)."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "plan.jsonl"
    write_plan(plan, samples)
    given = ["--out", str(folder), "--closed-list", str(plan), "--until", repr(until), "--timer", timer]
    with exclusive(folder):
        journal = Journal(folder)
        microbench.supervise(journal, microbench.spawner(given, journal, microbench.STALL_S))


def timed_ops(folder: Path) -> Iterator[Json]:
    """The ops that were timed well, each once."""
    seen = set()
    for path in shards(folder, PREFIX):
        for record in read_records(path):
            usable = record.get("schema") == "op/1" and record.get("status") == "ok"
            if usable and record["id"] not in seen and float(record["us"]) > 0:  # type: ignore[arg-type]
                seen.add(record["id"])
                yield record


def op_reading(record: Json, again_us: Optional[float] = None, within: bool = False) -> Json:
    """What the file keeps of an op: `us` is of its kernels together, `span_us` from the first to the last."""
    kernels = record.get("kernels") or []
    total = sum(float(kernel[1]) for kernel in kernels)
    count = sum(int(kernel[2]) if len(kernel) > 2 else 1 for kernel in kernels)
    reading = {
        "op": record["op"],
        "precision": record["precision"],
        "inputs": record["inputs"],
        "outputs": record["outputs"],
        "attributes": record["attributes"],
        "us": round(total, 3) if total > 0 else record["us"],
        "span_us": record["us"],
        "spread": record["spread"],
        "kernels": max(count, 1),
    }
    if again_us is not None:
        reading["again_us"] = again_us
    if within:
        reading["within"] = True
    return reading


def op_readings(work: Work) -> List[Json]:
    again = {str(record["id"]): float(record["us"]) for record in timed_ops(work.again)}
    alone = [op_reading(record, again.get(str(record["id"]))) for record in timed_ops(work.folder)]
    within = itertools.islice(iterations.ops_within(work.iterations), _MOST_WITHIN)
    return alone + [op_reading(record, within=True) for record in within]


# -- the file ----------------------------------------------------------------------------------------------------------


def machine_of(state: Json, ops: Sequence[Json], minutes: float) -> Json:
    """The whole file; what was not read is left out."""
    machine: Json = {"format": FORMAT, "card": {**state["card"], "plan": PLAN, "minutes": round(minutes, 2)}}
    if "device" in state:
        machine["gpu"] = {"device": state["device"], "ops": list(ops)}
        if "queued_kernel_us" in state:
            machine["gpu"]["queued_kernel_us"] = state["queued_kernel_us"]
    machine["host"] = {name: state[name] for name in ("cuda", "cpu") if state.get(name)}
    machine["links"] = state.get("links", [])
    return machine


def write_machine(path: Path, machine: Json) -> None:
    """A line an op, so that files can be looked at and compared."""
    ops = machine.get("gpu", {}).get("ops")
    with output_file(path) as out:
        if ops is None:
            out.write(json.dumps(machine, indent=1) + "\n")
            return
        head: Json = {**machine, "gpu": {**machine["gpu"], "ops": []}}
        before, after = json.dumps(head).split('"ops": []', 1)
        lines = ",\n".join(json.dumps(op, separators=(",", ":")) for op in ops)
        out.write(f'{before}"ops": [\n{lines}\n]{after}\n')


# -- the whole ---------------------------------------------------------------------------------------------------------


def read_host_only(work: Work, clock: Clock) -> Json:
    device = torch.device("cpu")
    state = resumed(work, card_of(device))
    say("reading the host: dispatch, autograd, optimizers, modules (half a minute at most)")
    until = min(clock.until, time.time() + 20)
    state["cpu"] = readings.host_readings(device, _HOST_ROUNDS, lambda: time.time() < until)
    work.write(state)
    return state


def ready_gpu(options: argparse.Namespace) -> torch.device:
    """The GPU, if there is one and it has nothing else to do. Raises Refused."""
    if not torch.cuda.is_available():
        raise Refused("no CUDA GPU is visible to PyTorch: run this on a machine with one, or give --host-only")
    device = torch.device("cuda", 0)
    torch.cuda.init()
    word = "" if options.force else readings.busy_word(device)
    if word:
        raise Refused(f"the GPU is busy: {word}. Wait, choose another with CUDA_VISIBLE_DEVICES, or give --force")
    return device


def read_machine(work: Work, state: Json, device: torch.device, clock: Clock) -> None:
    """All but the ops, in some ten seconds; what was read before is kept."""
    if "device" not in state:
        state["device"] = readings.device_facts(device)
    if not state.get("cuda"):
        say("reading the host")
        state["cuda"] = readings.host_readings(device, _HOST_ROUNDS, lambda: clock.left_s() > 30)
        state["cpu"] = readings.host_readings(torch.device("cpu"), 3, lambda: clock.left_s() > 30)
        work.write(state)
    if "links" not in state:
        say("reading copies" + (" and collectives" if torch.cuda.device_count() > 1 else ""))
        state["queued_kernel_us"] = readings.queued_kernel_us(device)
        state["links"] = readings.copy_readings(device)
        if torch.cuda.device_count() > 1:
            try:
                state["links"] += readings.collective_readings(torch.cuda.device_count())
            except RuntimeError as error:
                say(f"collectives could not be read: {str(error).splitlines()[0]}")
    work.write(state)


def calibrate(options: argparse.Namespace) -> int:
    clock, work = Clock(options.minutes), Work(options.out)
    if options.again:
        shutil.rmtree(work.folder, ignore_errors=True)
    work.folder.mkdir(parents=True, exist_ok=True)
    if options.host_only:
        state = read_host_only(work, clock)
        return finish(options, work, state, clock, [])
    device = ready_gpu(options)
    state = resumed(work, card_of(device))
    interrupted = False
    try:
        read_machine(work, state, device, clock)
        torch.cuda.empty_cache()
        repeats = options.minutes >= _AGAIN_MINUTES
        plan = calibration_plan(min(_MOST_OPS, max(200, round(_OPS_A_MINUTE * options.minutes))))
        say(f"timing ops for {max(0.0, clock.left_s()) / 60:.1f} minutes; Ctrl-C leaves a file with what is there")
        behind = 20 if repeats else 0
        time_ops(work.folder, plan, clock.until - behind - (1 - _ALONE) * (clock.left_s() - behind), options.timer)
        if clock.left_s() > behind + 5:
            say("reading ops within iterations of small networks")
            iterations.read_iterations(work.iterations, clock.until - behind, _MOST_WITHIN, options.reader)
        if repeats and clock.left_s() > 5:
            time_ops(work.again, plan[:_AGAIN], clock.until, options.timer)
    except KeyboardInterrupt:
        interrupted = True
    state["minutes"] = state.get("minutes", 0.0) + (time.time() - clock.begin) / 60
    work.write(state)
    code = finish(options, work, state, clock, op_readings(work))
    return EXIT_INTERRUPTED if interrupted else code


def finish(options: argparse.Namespace, work: Work, state: Json, clock: Clock, ops: Sequence[Json]) -> int:
    if not options.host_only and not ops:
        say("no op was timed: no file is written; the same command goes on")
        return 1
    minutes = state.get("minutes", (time.time() - clock.begin) / 60)
    write_machine(options.out, machine_of(state, ops, minutes))
    counted = f"{len(ops):,} ops, " if ops else ""
    say(f"{options.out}: {counted}{len(state.get('cuda') or state.get('cpu') or [])} host readings, "
        f"{len(state.get('links', []))} copies and collectives")
    used = "is found by forerun where it is" if options.out == default_out() else f"--machine {options.out}"
    say(f"to use it: {used}; to check it: forerun data check {shlex.quote(str(options.out))}")
    if not options.host_only:
        say(f"more minutes go on from {work.folder}, which may be deleted")
    return 0


def say(text: str) -> None:
    print(f"forerun.calibrate: {text}", file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse(arguments)
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        return calibrate(options)
    except (Refused, InUse) as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"{error.filename or options.out}: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        say("stopped; the same command goes on")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
