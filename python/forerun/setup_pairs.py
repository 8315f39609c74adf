"""Holds predictions of captures to measurements: training set-ups as people write them, on one GPU.

    python -m forerun.setup_pairs setups.py -o pairs.jsonl.gz                    # measures and captures; needs a GPU
    python -m forerun.setup_pairs --table pairs.jsonl.gz --program build/forerun  # predicts and compares; anywhere

`setups.py` defines SETUPS, a mapping from names to functions. Such a function is given a device and gives the arguments
of `forerun.capture.capture` as a mapping, everything on that device: model, optimizer and batch, and loss_fn,
precision, accumulate and clip_grad where they are not the defaults. A line of the file for each set-up: what was
measured, and its capture as a machine without a GPU makes it. Every set-up runs in a process of its own: first
each alone on the GPU, then all captures side by side.
"""
from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import multiprocessing
import os
import pathlib
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch

from .capture import capture
from .kernels import events_of, kernels_of
from .measure import CudaInstrument
from .run_options import run_options
from .training import TrainingTask, default_loss

Json = Dict[str, Any]
SetUp = Callable[[torch.device], Mapping[str, Any]]

_WARM = 3  # iterations after which memory is read
_OPTIONS = ("precision", "accumulate", "clip_grad")


class Refused(Exception):
    """A file cannot be used; the text says which, why, and what would help."""


def set_ups_of(file: str) -> Mapping[str, SetUp]:
    if not pathlib.Path(file).is_file():
        raise Refused(f"{file}: there is no such file")
    spec = importlib.util.spec_from_file_location("setups", file)
    if spec is None or spec.loader is None:
        raise Refused(f"{file}: this is no Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Refused(f"{file}: {type(error).__name__}: {error}") from error
    found = getattr(module, "SETUPS", None)
    if not isinstance(found, dict) or not found:
        raise Refused(f"{file}: it defines no SETUPS, a mapping from names to functions of a device")
    return found


# -- on the GPU --------------------------------------------------------------------------------------------------------


def task_of(made: Mapping[str, Any], device: torch.device) -> TrainingTask:
    """The iteration that `capture` records of the same arguments, to be run."""
    model, accumulate = made["model"], made.get("accumulate", 1)
    options = run_options(model, made.get("precision"), None, None, accumulate, made.get("clip_grad"))
    loss = made.get("loss_fn", default_loss)
    return TrainingTask(
        model, made["optimizer"], made["batch"], loss, options.autocast, accumulate, options.clip_grad,
        options.scaler(device.type),
    )


def measured(set_up: SetUp) -> Json:
    instrument = CudaInstrument()
    device = torch.device("cuda:0")
    task = task_of(set_up(device), device)
    for _ in range(_WARM):
        task.iterate("cuda")
    torch.cuda.synchronize()
    memory = torch.cuda.memory_stats()
    found: Json = {
        "gpu": instrument.environment()["gpu"],
        "peak_allocated": memory["allocated_bytes.all.peak"],
        "peak_reserved": memory["reserved_bytes.all.peak"],
        "iter_ms": _milliseconds(task),
    }
    with torch.autograd.profiler.profile(use_kineto=True, use_device="cuda") as profiler:
        task.iterate("cuda")
        torch.cuda.synchronize()
    kernels = kernels_of(events_of(profiler.kineto_results))
    return {**found, "gpu_ms": sum(kernel.duration for kernel in kernels) / 1e6, "kernels": len(kernels)}


def _milliseconds(task: TrainingTask) -> float:
    """Of an iteration among several, from an idle GPU to an idle GPU: the middle of three readings."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    readings: List[float] = []
    for iterations in (2, 10, 10, 10):
        torch.cuda.synchronize()
        begin.record()
        for _ in range(iterations):
            task.iterate("cuda")
        end.record()
        torch.cuda.synchronize()
        readings.append(begin.elapsed_time(end) / iterations)
    return statistics.median(readings[1:])


def captured(set_up: SetUp, name: str) -> Json:
    made = set_up(torch.device("cpu"))
    options = {key: made[key] for key in _OPTIONS if key in made}
    loss = made.get("loss_fn", default_loss)
    return capture(made["model"], made["optimizer"], made["batch"], loss, name=name, backend="generic", **options)


def _in_process(work: str, file: str, name: str, results: Any) -> None:
    try:
        set_up = set_ups_of(file)[name]
        results.put({work: measured(set_up) if work == "measured" else captured(set_up, name)})
    except Exception as error:  # the others go on
        results.put({"error": f"{work}: {type(error).__name__}: {error}"})


class Work:
    """A process that measures or captures one set-up."""

    def __init__(self, work: str, file: str, name: str) -> None:
        processes = multiprocessing.get_context("spawn")
        self._work = work
        self._results: Any = processes.Queue()
        self._process = processes.Process(target=_in_process, args=(work, file, name, self._results))
        self._process.start()

    def result(self) -> Json:
        while True:
            try:
                found: Json = self._results.get(timeout=1)
                self._process.join()
                return found
            except queue.Empty:
                if not self._process.is_alive() and self._results.empty():
                    return {"error": f"{self._work}: its process ended with exit code {self._process.exitcode}"}


def pairs(file: str, names: Sequence[str], say: Callable[[str], None]) -> Iterator[Json]:
    """A row for each set-up, in their order."""
    rows: List[Json] = []
    for name in names:
        rows.append({"name": name, **Work("measured", file, name).result()})
        say(f"{name}: {rows[-1].get('error', 'measured')}")
    at_once = max(1, (os.cpu_count() or 1) // 4)
    waiting = [row for row in rows if "error" not in row]
    running = [(row, Work("capture", file, row["name"])) for row in waiting[:at_once]]
    waiting = waiting[at_once:]
    for row in rows:
        if running and running[0][0] is row:
            row.update(running.pop(0)[1].result())
            if waiting:
                running.append((waiting[0], Work("capture", file, waiting.pop(0)["name"])))
            say(f"{row['name']}: {row.get('error', 'captured')}")
        yield row


# -- anywhere ----------------------------------------------------------------------------------------------------------

_FIGURES = (("gpu_ms", "GPU time"), ("iter_ms", "iteration"), ("peak_allocated", "allocated"),
            ("peak_reserved", "reserved"))


def errors_of(row: Json, program: str) -> Mapping[str, float]:
    """Predicted / measured - 1, by figure."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "capture.jsonl"
        file.write_text(json.dumps(row["capture"]) + "\n")
        command = [program, "predict", str(file), "--gpu", row["measured"]["gpu"], "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):  # 3: does not fit
        raise Refused(f"{row['name']}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    return {figure: said[figure] / row["measured"][figure] - 1 for figure, _ in _FIGURES}


def table(rows: Sequence[Tuple[str, Mapping[str, float]]]) -> str:
    width = max([len(name) for name, _ in rows] + [len("mean, without sign")])
    lines = [f"{'set-up':{width}}" + "".join(f"{title:>11}" for _, title in _FIGURES)]
    for name, errors in rows:
        lines.append(f"{name:{width}}" + "".join(f"{100 * errors[figure]:>+9.1f} %" for figure, _ in _FIGURES))
    sizes = [sorted(abs(errors[figure]) for _, errors in rows) for figure, _ in _FIGURES]
    means = [statistics.fmean(column) for column in sizes]
    medians = [statistics.median(column) for column in sizes]
    for title, figures in (("mean, without sign", means), ("median", medians)):
        lines.append(f"{title:{width}}" + "".join(f"{100 * figure:>9.1f} %" for figure in figures))
    return "\n".join(lines) + "\n"


def rows_of(file: str) -> List[Json]:
    """The rows of a file of pairs, each with an error, or with what was measured and its capture."""
    rows: List[Json] = []
    try:
        with gzip.open(file, "rt") if file.endswith(".gz") else open(file, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                rows.append(json.loads(line))
                if not _is_pair(rows[-1]):
                    raise Refused(f"{file}:{number}: a row has a name, and an error or measured and capture")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Refused(f"{file}: {error}") from error
    except json.JSONDecodeError as error:
        raise Refused(f"{file}:{len(rows) + 1}: this is no JSON: {error}") from error
    if not rows:
        raise Refused(f"{file}: it holds no pairs")
    return rows


def _is_pair(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        return False
    if isinstance(row.get("error"), str):
        return True
    found = row.get("measured")
    if not isinstance(found, dict) or not isinstance(row.get("capture"), dict) or not isinstance(found.get("gpu"), str):
        return False
    return all(isinstance(found.get(figure), (int, float)) and found[figure] > 0 for figure, _ in _FIGURES)


def compare(file: str, program: str) -> int:
    rows = rows_of(file)
    if shutil.which(program) is None:
        raise Refused(f"{program}: there is no such program; build it with ./run build and name it by --program")
    for row in rows:
        if "error" in row:
            print(f"forerun.setup_pairs: {row['name']}: {row['error']}", file=sys.stderr)
    judged = [(row["name"], errors_of(row, program)) for row in rows if "error" not in row]
    if judged:
        print(table(judged), end="")
    return 0 if len(judged) == len(rows) else 1


def measure(file: str, names: Sequence[str], output: str) -> int:
    known = list(set_ups_of(file))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Refused(f"{file}: there is no set-up {', '.join(unknown)}; there are {', '.join(known)}")
    if not torch.cuda.is_available():
        raise Refused("no CUDA GPU is visible to PyTorch; measure on a machine with one, --table works without")
    failed = 0
    with gzip.open(output, "wt") if output.endswith(".gz") else open(output, "w", encoding="utf-8") as out:
        for row in pairs(file, names or known, lambda text: print(text, file=sys.stderr)):
            out.write(json.dumps(row) + "\n")
            failed += "error" in row
    return 1 if failed else 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.setup_pairs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="?", help="Python file that defines SETUPS (examples/setups.py is one)")
    parser.add_argument("names", nargs="*", help="which of them; default: all")
    parser.add_argument("-o", "--output", help="file for the pairs, .jsonl or .jsonl.gz")
    parser.add_argument("--table", metavar="PAIRS", help="predict the captures of this file and compare")
    parser.add_argument("--program", default="forerun", help="the forerun that predicts; default: forerun")
    options = parser.parse_args(arguments)
    try:
        if options.table:
            return compare(options.table, options.program)
        if not options.setups or not options.output:
            parser.error("give a file of set-ups and -o FILE, or --table PAIRS")
        return measure(options.setups, options.names, options.output)
    except (Refused, OSError) as error:
        print(f"forerun.setup_pairs: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
