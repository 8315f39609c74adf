"""Trains workloads on the testbed and keeps a record of each: python -m forerun.testbed --help"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ..records import encode
from ..shards import ShardWriter, exclusive, finished_ids, read_records
from .group import Group, NodeFailed, WorkloadFailed
from .measurement import TooSlow, head, measure, summary
from .program import NoProgram, find_program
from .sampling import Sampler
from .setting import Setting
from .workloads import MODELS, Workload, plan

Json = Dict[str, Any]

PREFIX = "resources"
_STARTS_IN_A_ROW = 3

EXAMPLES = """\
examples:
  python -m forerun.testbed --settings P1w2-10G --count 10 --out /tmp/testbed
  python -m forerun.testbed --settings P1w2-10G:150,P1w2-1G:60,AR4-10G:60 --minutes 25 --out data/mine
  python -m forerun.testbed --settings P1w2-10G:150 --again data/mine/resources-*.jsonl --out data/mine-again
  python -m forerun.testbed --settings AR4-10G --models resnet18,bert-mini --dry-run
Settings: P1w2-10G is 1 server, 2 workers, links of 10 Gb/s; AR4-10G is 4 workers that all-reduce. All workers share
this machine's one GPU. The same command again goes on where it stopped."""


class Collector:
    """Works through the workloads of one setting; a group of nodes that broke is started again."""

    def __init__(self, setting: Setting, program: Path, options: argparse.Namespace, deadline: Optional[float]) -> None:
        self._setting, self._program, self._options, self._deadline = setting, program, options, deadline
        self._group: Optional[Group] = None
        self._sampler: Optional[Sampler] = None
        self._failed_starts = 0

    def run(self, workloads: Sequence[Workload], shard: ShardWriter) -> Tuple[int, int]:
        """How many were kept as ok and how many as failed."""
        counts = {"ok": 0, "failed": 0}
        try:
            for workload in workloads:
                if self._over():
                    break
                begun = time.monotonic()
                record = self._one(workload)
                if record is None:
                    break
                shard.append_line(encode(record))
                counts[str(record["status"])] += 1
                say(f"{time.monotonic() - begun:5.1f} s  {summary(record)}")
        finally:
            self._stop(kill=self._over())
        return counts["ok"], counts["failed"]

    def _over(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _one(self, workload: Workload) -> Optional[Json]:
        """A record of the workload, or None where the nodes do not start."""
        if not self._start():
            return None
        assert self._group is not None and self._sampler is not None
        try:
            record = measure(self._group, self._sampler, workload, self._program, self._options.window)
            record["env"] = self._environment()
            record["tcp"] = record["env"].pop("tcp", "")
            if self._options.times:
                record["repeat"] = self._options.times[workload.id]
            return record
        except (WorkloadFailed, TooSlow) as problem:
            if "CUDA error" in str(problem):  # the process that had it can do no more
                self._stop(kill=True)
            return {**head(workload, self._setting), "status": "failed", "error": str(problem)}
        except NodeFailed as problem:
            self._stop(kill=True)
            return {**head(workload, self._setting), "status": "failed", "error": str(problem)}
        except Exception as problem:  # a fault of this program costs one workload, not the rest of the plan
            traceback.print_exc()
            self._stop(kill=True)
            return {**head(workload, self._setting), "status": "failed", "error": repr(problem)[:300]}

    def _environment(self) -> Json:
        assert self._group is not None
        return {**self._group.environments[-1], "cores": os.cpu_count(), "layout": self._group.layout}

    def _start(self) -> bool:
        while self._group is None and self._failed_starts < _STARTS_IN_A_ROW and not self._over():
            begun = time.monotonic()
            try:
                self._group = Group(self._setting, self._program, self._options.out / "nodes.log",
                                    routed=self._options.routed)
                setting, pids = self._setting, self._group.pids
                watched = [pids[setting.servers]] + ([pids[0]] if setting.servers else [])
                self._sampler = Sampler(self._program, watched, self._options.hz, self._options.gpu_hz)
                self._failed_starts = 0
                say(f"{setting.name}: {setting.nodes} nodes, {self._group.layout}, started in "
                    f"{time.monotonic() - begun:.1f} s")
            except NodeFailed as problem:
                self._failed_starts += 1
                say(f"{self._setting.name}: start {self._failed_starts} of {_STARTS_IN_A_ROW} failed: {problem}")
        return self._group is not None

    def _stop(self, kill: bool) -> None:
        if self._sampler is not None:
            self._sampler.close()
            say(f"{self._setting.name}: the sampler took {100 * self._sampler.cpu_share:.2f} % of a core, "
                f"GPU source {self._sampler.source or 'none'}")
        if self._group is not None:
            if kill:
                self._group.kill()
            else:
                self._group.close()
        self._group = self._sampler = None


def parse(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m forerun.testbed", description=(__doc__ or "").split(":", 1)[0],
                                     epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--settings", default="P1w2-10G", metavar="A[:N],B[:N]", help="settings, each with its number of workloads")
    add("--count", type=int, default=10, metavar="N", help="workloads of a setting that names none (%(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the records; goes on with what is there")
    add("--models", default="", metavar="A,B", help="only these models (--list names them)")
    add("--batch", type=int, metavar="N", help="of all workloads, instead of the plan's (for a machine without a GPU)")
    add("--seed", type=int, default=0, help="of the plan (%(default)s)")
    add("--minutes", type=float, metavar="M", help="begin no workload after this time")
    add("--window", type=float, default=1.6, metavar="S", help="seconds of training measured (%(default)s)")
    add("--hz", type=float, default=400.0, help="samples of the network a second (%(default)s)")
    add("--gpu-hz", type=float, default=10.0, help="samples of the GPU a second (%(default)s)")
    add("--done", type=Path, nargs="*", default=[], metavar="FILE", help="records made before: not measured again")
    add("--again", type=Path, nargs="*", default=[], metavar="FILE",
        help="records made before: only their workloads, measured once more (give --out another folder); each new "
             "record says in `repeat` which time it is")
    add("--program", metavar="PATH", help="the built forerun-testbed (default: found, or built in --out)")
    add("--routed", action="store_true", help="route between the nodes even where the kernel has bridges")
    add("--retry-failed", action="store_true", help="measure again what is recorded as failed")
    add("--list", action="store_true", help="print the models and end")
    add("--dry-run", action="store_true", help="print the ids of the plan and end")
    return parser.parse_args(arguments)


def settings_of(text: str, count: int) -> List[Tuple[Setting, int]]:
    """Settings with their counts, from "P1w2-10G:150,AR4-10G"."""
    found = []
    for part in text.split(","):
        name, _, number = part.partition(":")
        found.append((Setting.parse(name), int(number) if number else count))
    return found


def done_ids(out: Path, files: Sequence[Path], retry_failed: bool) -> Set[str]:
    """Ids of records that need not be made again."""
    if not retry_failed:
        ids = finished_ids(out, PREFIX)
    else:
        ids = set()
        for path in out.glob(f"{PREFIX}-*.jsonl*"):
            ids.update(str(record["id"]) for record in read_records(path) if record.get("status") == "ok")
    for path in files:
        ids.update(str(record["id"]) for record in read_records(path)
                   if not retry_failed or record.get("status") == "ok")
    return ids


def times_measured(files: Sequence[Path]) -> Dict[str, int]:
    """How often each workload of the records has been measured, by id."""
    times: Dict[str, int] = {}
    for path in files:
        for record in read_records(path):
            if record.get("status") == "ok":
                times[str(record["id"])] = times.get(str(record["id"]), 0) + 1
    return times


def collect(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    wanted = settings_of(options.settings, options.count)
    models = [model for model in MODELS if not options.models or model.name in options.models.split(",")]
    if options.batch:
        models = [dataclasses.replace(model, batches=(options.batch,)) for model in models]
    plans = [(setting, plan(setting, count, options.seed, models)) for setting, count in wanted]
    options.times = times_measured(options.again)
    if options.again:
        plans = [(setting, [one for one in all if one.id in options.times]) for setting, all in plans]
        if not any(all for _, all in plans):
            raise ValueError("--again: no workload of the plan is recorded as ok in these files; name the same "
                             "--settings with as many workloads, and --seed, as when they were made")
    if options.list or options.dry_run:
        lines = [model.name for model in models] if options.list else [one.id for _, all in plans for one in all]
        print("\n".join(lines))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    program = find_program(options.program, options.out)
    deadline = begun + 60 * options.minutes if options.minutes is not None else None
    with exclusive(options.out), ShardWriter(options.out, PREFIX) as shard:
        recorded = done_ids(options.out, options.done, options.retry_failed)
        for setting, workloads in plans:
            left = [workload for workload in workloads if workload.id not in recorded]
            say(f"{setting.name}: {len(workloads)} workloads, {len(workloads) - len(left)} recorded before")
            if left and not (deadline is not None and time.monotonic() >= deadline):
                ok, failed = Collector(setting, program, options, deadline).run(left, shard)
                say(f"{setting.name}: {ok} ok, {failed} failed, {len(left) - ok - failed} left, "
                    f"{time.monotonic() - begun:.0f} s so far")
    return 0


def say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parse(arguments)
    try:
        return collect(options)
    except (ValueError, NoProgram, OSError) as error:
        print(f"forerun.testbed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
