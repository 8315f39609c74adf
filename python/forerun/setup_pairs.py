"""Holds predictions of captures to measurements: training set-ups as people write them, on one GPU.

    python -m forerun.setup_pairs setups.py -o pairs.jsonl.gz                    # measures and captures; needs a GPU
    python -m forerun.setup_pairs --table pairs.jsonl.gz --program build/forerun  # predicts and compares; anywhere
    python -m forerun.setup_pairs setups.py --records runs.jsonl                 # measures only, op by op

`setups.py` defines SETUPS, a mapping from names to functions. Such a function is given a device and gives the arguments
of `forerun.capture.capture` as a mapping, everything on that device: model, optimizer and batch, and loss_fn,
precision, accumulate and clip_grad where they are not the defaults. A line of the file for each set-up: what was
measured, and its capture as a machine without a GPU makes it. Every set-up runs in a process of its own: first
each alone on the GPU, then all captures side by side. `--records` keeps all that was measured, as `forerun.collect`
does (docs/records.md); a set-up's family is its name up to the first "/".
"""
from __future__ import annotations

import argparse
import collections
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
import time
from typing import Any, Callable, ContextManager, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch

from .capture import capture, describe
from .measure import CudaInstrument
from .run_options import RunOptions, run_options
from .training import TrainingTask, default_loss

Json = Dict[str, Any]
SetUp = Callable[[torch.device], Mapping[str, Any]]

_READY = 2  # processes: one is measured, one gets ready
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


def options_of(made: Mapping[str, Any]) -> RunOptions:
    return run_options(
        made["model"], made.get("precision"), None, None, made.get("accumulate", 1), made.get("clip_grad")
    )


def task_of(made: Mapping[str, Any], device: torch.device) -> TrainingTask:
    """The iteration that `capture` records of the same arguments, to be run."""
    options = options_of(made)
    return TrainingTask(
        made["model"], made["optimizer"], made["batch"], made.get("loss_fn", default_loss), options.autocast,
        options.accumulate, options.clip_grad, options.scaler(device.type),
    )


def measured_task(
    instrument: Any, set_up: SetUp, name: str, device: torch.device
) -> Tuple[Json, Optional[TrainingTask]]:
    """A run record of the set-up, eager, and the task that was measured; none where building it failed."""
    described: Json = {}
    tasks: List[TrainingTask] = []

    def build() -> TrainingTask:
        made = set_up(device)
        tasks.append(task_of(made, device))
        described.update(describe(tasks[0], options_of(made), "cuda", name), family=name.partition("/")[0])
        return tasks[0]

    record = instrument.measure_task({}, build)  # builds, and so describes
    return {**described, **record}, tasks[0] if tasks else None


def measured_with(instrument: Any, set_up: SetUp, name: str, device: torch.device) -> Json:
    return measured_task(instrument, set_up, name, device)[0]


def measured(set_up: SetUp, name: str, alone: ContextManager[Any]) -> Json:
    """A run record; `alone` is held while the GPU is in use."""
    instrument = CudaInstrument()
    with alone:
        return measured_with(instrument, set_up, name, torch.device("cuda:0"))


def figures_of(record: Json) -> Json:
    """What predictions are held to. Raises Refused where the GPU's memory did not do."""
    if record["status"] != "ok":
        raise Refused(f"out of memory in {record['tried']['phase']}")
    return {
        "gpu": record["env"]["gpu"],
        "peak_allocated": record["mem"]["peak_allocated"],
        "peak_reserved": record["mem"]["peak_reserved"],
        "iter_ms": record["time_ms"]["pipelined_median"],
        "gpu_ms": sum(record["kernels"]["ns"]) / 1e6,
        "kernels": len(record["kernels"]["ns"]),
    }


def captured(set_up: SetUp, name: str, compile: bool = False) -> Json:
    """`compile`: with what Dynamo traces of the model."""
    made = set_up(torch.device("cpu"))
    options = {key: made[key] for key in _OPTIONS if key in made}
    loss = made.get("loss_fn", default_loss)
    options.update(name=name, backend="generic", compile=compile)
    return capture(made["model"], made["optimizer"], made["batch"], loss, **options)


def _in_process(work: str, file: str, name: str, alone: Any, results: Any) -> None:
    try:
        set_up = set_ups_of(file)[name]
        results.put({work: measured(set_up, name, alone) if work == "measured" else captured(set_up, name)})
    except BaseException as error:  # the others go on
        results.put({"error": f"{work}: {type(error).__name__}: {error}"})


class Work:
    """A process that does one thing and puts its result into a queue; forked, since they all import the same for
    seconds."""

    processes = multiprocessing.get_context("fork")

    def __init__(self, what: Callable[..., None], arguments: Tuple[Any, ...]) -> None:
        self._results: Any = self.processes.Queue()
        self._process = self.processes.Process(target=what, args=(*arguments, self._results))
        self._process.start()
        self._begin = time.monotonic()

    @property
    def id(self) -> int:
        return self._process.pid or 0

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._begin

    def kill(self) -> str:
        self._process.kill()
        self._process.join()
        return f"its process was ended after {self.age_s:.0f} s"

    def found(self, timeout_s: float) -> Optional[Any]:
        """The result; None if it takes longer than this. A process that died has its exit code for a result."""
        try:
            found = self._results.get(timeout=timeout_s)
            self._process.join()
            return found
        except queue.Empty:
            if not self._process.is_alive() and self._results.empty():
                return f"its process ended with exit code {self._process.exitcode}"
        return None


_ALONE = Work.processes.Lock()


def _result(work: str, process: Work) -> Json:
    while True:
        found = process.found(1)
        if isinstance(found, str):
            return {"error": f"{work}: {found}"}
        if found is not None:
            return dict(found)


def each_done(work: str, file: str, rows: Sequence[Json], at_once: int) -> Iterator[Tuple[Json, Json]]:
    """The rows with what came of them, in their order; `at_once` of them under way."""
    running: Deque[Tuple[Json, Work]] = collections.deque()
    for row in rows:
        running.append((row, Work(_in_process, (work, file, row["name"], _ALONE))))
        if len(running) == at_once:
            first, process = running.popleft()
            yield first, _result(work, process)
    for first, process in running:
        yield first, _result(work, process)


def records(file: str, names: Sequence[str], say: Callable[[str], None]) -> Iterator[Tuple[Json, Optional[Json]]]:
    """A row for each set-up, in their order, and its record. The next one gets ready while one is measured."""
    rows: List[Json] = [{"name": name} for name in names]
    for row, found in each_done("measured", file, rows, _READY):
        record = found.pop("measured", None)
        row.update(found)
        if record is not None:
            try:
                row["measured"] = figures_of(record)
            except Refused as error:
                row["error"] = f"measured: {error}"
        say(f"{row['name']}: {row.get('error', 'measured')}")
        yield row, record


def with_captures(file: str, rows: Sequence[Json], say: Callable[[str], None]) -> Iterator[Json]:
    """The rows with captures of the set-ups that could be measured."""
    ready = [row for row in rows if "error" not in row]
    for row, found in each_done("capture", file, ready, max(1, (os.cpu_count() or 1) // 4)):
        row.update(found)
        say(f"{row['name']}: {row.get('error', 'captured')}")
    yield from rows


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


def _opened(path: str) -> Any:
    return gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w", encoding="utf-8")


def chosen(file: str, names: Sequence[str]) -> List[str]:
    """Those that are named, or all there are."""
    known = list(set_ups_of(file))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Refused(f"{file}: there is no set-up {', '.join(unknown)}; there are {', '.join(known)}")
    return list(names) or known


def measure(file: str, names: Sequence[str], output: Optional[str], kept: Optional[str]) -> int:
    names = chosen(file, names)
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # to look for a GPU must not wake it before the forks
    if not torch.cuda.is_available():
        raise Refused("no CUDA GPU is visible to PyTorch; measure on a machine with one, --table works without")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    rows: List[Json] = []
    with _opened(kept or os.devnull) as lines:
        for row, record in records(file, names, say):
            rows.append(row)
            if record is not None:
                lines.write(json.dumps(record, separators=(",", ":")) + "\n")
                lines.flush()
    if output is not None:
        with _opened(output) as lines:
            for row in with_captures(file, rows, say):
                lines.write(json.dumps(row) + "\n")
    return 1 if any("error" in row for row in rows) else 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.setup_pairs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="?", help="Python file that defines SETUPS (examples/setups.py is one)")
    parser.add_argument("names", nargs="*", help="which of them; default: all")
    parser.add_argument("-o", "--output", help="file for the pairs, .jsonl or .jsonl.gz")
    parser.add_argument("--records", metavar="FILE", help="keep the run records of what was measured here")
    parser.add_argument("--table", metavar="PAIRS", help="predict the captures of this file and compare")
    parser.add_argument("--program", default="forerun", help="the forerun that predicts; default: forerun")
    options = parser.parse_args(arguments)
    try:
        if options.table:
            return compare(options.table, options.program)
        if not options.setups or not (options.output or options.records):
            parser.error("give a file of set-ups and -o FILE or --records FILE, or --table PAIRS")
        return measure(options.setups, options.names, options.output, options.records)
    except (Refused, OSError) as error:
        print(f"forerun.setup_pairs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
