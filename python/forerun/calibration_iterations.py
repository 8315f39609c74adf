"""Reads ops within training iterations of small networks (forerun.calibration_nets), for `forerun.calibrate`.

An op that is timed alone finds its operands in memory; among others it finds small ones in the cache, and runs at the
clocks that others leave it. A network is trained for a moment, then one iteration is profiled, and what its
kernels took is joined to the ops that launched them, as in `forerun.collect`. Networks are read in a process of their
own: one that kills or hangs it is recorded as failed, and the next process goes on behind it.
"""
from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Sequence

import torch

from . import microbench
from .calibration_nets import Net, Room, draw_net
from .iteration_ops import samples_of
from .measure import make_optimizer, profiled_iteration, set_precision
from .op_worker import Attempt, Journal
from .progress import Progress
from .shards import ShardWriter, exclusive, finished_ids, read_records, shards
from .training import TrainingTask

Json = Dict[str, Any]

PREFIX = "iterations"
SCHEMA = "iteration/1"
FAMILY = "calibration"
DEFAULT_READER = "forerun.calibration_iterations:CudaReader"
_SHORT_US = 4.0  # ops below this are alike: a few of them say as much as all
_ONE_IN = 4      # of those is kept
_WARM_S = 0.05  # of training before an iteration is read, so that clocks and libraries are at work
_AUTOCAST = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}


class Reader(Protocol):
    """What reads a network."""

    def read(self, number: int) -> List[Json]:
        """The ops of an iteration of that network, as op/1 samples."""


class CudaReader:
    """Reads on the first visible GPU."""

    def __init__(self) -> None:
        self._device = torch.device("cuda", 0)
        self._room = Room.of(self._device)

    def read(self, number: int) -> List[Json]:
        try:
            return self._read(draw_net(number, self._room))
        finally:
            gc.collect()
            if not _usable():
                os._exit(microbench.EXIT_DEVICE_LOST)  # what would be torn down is broken, and may hang

    def _read(self, net: Net) -> List[Json]:
        set_precision(str(net.run["precision"]))
        task = task_of(net)
        begin = time.perf_counter()
        for _ in range(2):
            task.iterate("cuda")
            torch.cuda.synchronize()
        while time.perf_counter() - begin < _WARM_S:
            task.iterate("cuda")
            torch.cuda.synchronize()
        return ops_of_iteration(profiled_iteration(task), net)


def _usable() -> bool:
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError:
        return False
    return True


def task_of(net: Net) -> TrainingTask:
    precision = net.run["precision"]
    scaler = torch.amp.GradScaler("cuda") if precision == "amp_fp16" else None
    return TrainingTask(net.model, make_optimizer(net.run["optimizer"], net.model), net.batch,
                        autocast=_AUTOCAST.get(precision), scaler=scaler)


def ops_of_iteration(profile: Json, net: Net) -> List[Json]:
    """The distinct ops, of short ones a part; none where kernels could not be joined to ops for certain."""
    if not profile["profile"]["aligned"]:
        return []
    record = {**profile, "run": net.run, "env": {}, "family": FAMILY}
    return [sample for sample in samples_of([record]) if sample["schema"] == "op/1" and _is_kept(sample)]


def _is_kept(sample: Json) -> bool:
    return float(sample["us"]) >= _SHORT_US or int(sample["id"][-4:], 16) % _ONE_IN == 0


def id_of(number: int) -> str:
    return f"net/{number:05d}"


# -- the process that reads --------------------------------------------------------------------------------------------


def read_networks(folder: Path, reader: Reader, until: float, most: int, orphaned: Callable[[], bool]) -> None:
    """Reads networks that the folder does not hold yet, in the order of their numbers, until that time or that many
    distinct ops."""
    journal, done = Journal(folder), finished_ids(folder, PREFIX)
    known = {str(op["id"]) for op in ops_within(folder)}
    begin, number = time.time(), -1
    with ShardWriter(folder, PREFIX) as writer, Progress(max(1, round(until - begin)), "s of iterations") as progress:
        while time.time() < until and len(known) < most and not orphaned():
            number += 1
            if id_of(number) in done:
                continue
            journal.write(Attempt("read", id_of(number)))
            record = record_of(reader, number)
            writer.append(record)
            known.update(str(op["id"]) for op in record.get("ops", []))
            progress.advance(round(time.time() - begin) - progress.done, f"{number + 1} networks, {len(known):,} ops")
    journal.clear()


def record_of(reader: Reader, number: int) -> Json:
    record: Json = {"schema": SCHEMA, "id": id_of(number), "status": "ok"}
    try:
        record["ops"] = reader.read(number)
    except torch.cuda.OutOfMemoryError:
        record["status"] = "oom"
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[0]
        record.update(status="failed", error=f"{type(error).__name__}: {text}")
    return record


def work(options: argparse.Namespace) -> int:
    microbench.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt reaches the parent too, which ends this process
    if options.died:
        with ShardWriter(options.out, PREFIX) as writer:
            writer.append({"schema": SCHEMA, "id": options.died[0], "status": "failed", "error": options.died[1]})
    module, _, name = options.reader.partition(":")
    reader: Reader = getattr(importlib.import_module(module), name)()
    read_networks(options.out, reader, options.until, options.most, lambda: os.getppid() != options.worker_of)
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.calibration_iterations",
                                     description="Started by forerun.calibrate.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--until", type=float, required=True)
    parser.add_argument("--most", type=int, required=True)
    parser.add_argument("--reader", default=DEFAULT_READER)
    parser.add_argument("--worker-of", type=int, required=True)
    parser.add_argument("--died", nargs=2)
    return work(parser.parse_args(arguments))


# -- the process that watches ------------------------------------------------------------------------------------------


def read_iterations(folder: Path, until: float, most: int, reader: str = DEFAULT_READER) -> None:
    """Reads networks beyond those that the folder holds, until that time or `most` distinct ops, in processes of their
    own."""
    with exclusive(folder):
        journal = Journal(folder)
        given = ["--out", str(folder), "--until", repr(until), "--most", str(most), "--reader", reader]
        microbench.supervise(journal, microbench.spawner(given, journal, microbench.STALL_S, __name__))


def ops_within(folder: Path) -> Iterator[Json]:
    """The ops that were read, each once."""
    seen = set()
    for path in shards(folder, PREFIX):
        for record in read_records(path):
            for op in record.get("ops", []):  # type: ignore[attr-defined]
                if op["id"] not in seen and float(op["us"]) > 0:
                    seen.add(op["id"])
                    yield op


if __name__ == "__main__":
    sys.exit(main())
