"""Times what Inductor generated, kernel by kernel, on the GPU it was generated for.

    python -m forerun.compile_check setups.py --code folder         # anywhere: Inductor's code of each set-up
    python -m forerun.compiled_kernels folder -o kernels.jsonl.gz   # on that GPU: every kernel that it launches, timed

Of a compiled model this is all that its two graphs run, calls of libraries with the layouts that Inductor chose among
it; no model is built and nothing is traced, so that a set-up takes seconds. The forward pass is given random numbers
(the set-up's own where they are integers: what is looked up decides how long it takes), the backward pass what the
forward pass kept. A line for each set-up: for each pass the names of its kernels and their nanoseconds, in order, and
how long the host takes to issue it. Processes compile side by side; each has the GPU and the first cores for itself
while it is timed, and all others stand still. The PyTorch that runs the code has to be the one that generated it.
"""
from __future__ import annotations

import argparse
import collections
import gzip
import importlib
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from .compile_pairs import Quiet, use_cores
from .kernels import events_of, kernels_of
from .measure import profiled_by_kineto, set_precision
from .setup_pairs import Work

Json = Dict[str, Any]

SCHEMA = "compiled-kernels/1"
_REPEATED = 3  # times that a pass is profiled
_ISSUED = 7  # times that the host's part is timed
_LAST_S = 15.0  # before the end nothing is begun any more
_LONGEST_S = 240.0  # after which a set-up hangs
INTEGERS = "integers.pt"
SETTING = "setting.json"  # name and precision of a set-up


class Inputs:
    """What stands for a pass's inputs: random numbers, and integers that have a meaning."""

    def __init__(self, folder: pathlib.Path) -> None:
        file = folder / INTEGERS
        self._integers: List[torch.Tensor] = torch.load(file) if file.is_file() else []

    def strided(self, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: Any) -> torch.Tensor:
        for known in self._integers:
            if known.dtype == dtype and tuple(known.shape) == tuple(size):
                return torch.empty_strided(size, stride, dtype=dtype, device=device).copy_(known)
        made = torch.empty_strided(size, stride, dtype=dtype, device=device)
        return made.normal_() if dtype.is_floating_point else made.zero_()

    def of(self, module: Any) -> List[Any]:
        testing: Any = importlib.import_module("torch._dynamo.testing")
        plain = testing.rand_strided

        def rand_strided(size: Any, stride: Any, dtype: Any = torch.float32, device: Any = "cuda", **_: Any) -> Any:
            return self.strided(size, stride, dtype, device)

        testing.rand_strided = rand_strided
        try:
            return list(module.get_args())
        finally:
            testing.rand_strided = plain


def module_of(file: pathlib.Path) -> Any:
    """Its kernels are compiled when it is loaded."""
    spec = importlib.util.spec_from_file_location(f"pass_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_kept(inputs: List[Any], names: Sequence[str], results: Sequence[Any]) -> List[Any]:
    """The inputs of the backward pass with what the forward pass kept: its last results."""
    kept = [place for place, name in enumerate(names) if not name.startswith("tangents_")]
    found = list(inputs)
    for place, result in zip(kept, results[len(results) - len(kept):]):
        alike = isinstance(result, torch.Tensor) and isinstance(found[place], torch.Tensor)
        if alike and result.shape == found[place].shape and result.dtype == found[place].dtype:
            found[place] = result
    return found


def tune_quickly() -> None:
    """Of the few forms of each kernel the fastest is found in a fifth of the usual time."""
    benchmarking: Any = importlib.import_module("torch._inductor.runtime.benchmarking")
    plain = benchmarking.InductorBenchmarker.benchmark_gpu

    def benchmark_gpu(self: Any, call: Any, *given: Any, **named: Any) -> Any:
        return plain(self, call, *given, **{"max_benchmark_duration": 4, "memory_warmup_iters": 10, **named})

    benchmarking.InductorBenchmarker.benchmark_gpu = benchmark_gpu


def run_first(module: Any, inputs: List[Any]) -> Sequence[Any]:
    """The results of a pass whose kernels are tuned after that."""
    for _ in range(2):
        results: Sequence[Any] = module.call(list(inputs))
    torch.cuda.synchronize()
    return results


def timed_pass(module: Any, inputs: List[Any]) -> Json:
    """Names and nanoseconds of what a pass runs on the GPU, and milliseconds that the host takes to issue it from an
    idle GPU: medians of some times."""
    issued = []
    for _ in range(_ISSUED):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        module.call(list(inputs))
        issued.append(1000 * (time.perf_counter() - begin))
    torch.cuda.synchronize()

    def repeated() -> None:
        for _ in range(_REPEATED):
            module.call(list(inputs))
            torch.cuda.synchronize()

    kernels = sorted(kernels_of(events_of(profiled_by_kineto(repeated))), key=lambda kernel: kernel.start)
    count = len(kernels) // _REPEATED
    runs = [kernels[run * count:(run + 1) * count] for run in range(_REPEATED)]
    names = [kernel.name for kernel in runs[0]]
    if len(kernels) % _REPEATED or any([kernel.name for kernel in run] != names for run in runs):
        raise RuntimeError("a pass ran other kernels each time")
    times = [round(statistics.median(run[place].duration for run in runs)) for place in range(count)]
    return {"kernels": names, "ns": times, "issued_ms": round(statistics.median(issued), 4)}


def timed(folder: pathlib.Path, lock: Any, quiet: Quiet) -> Json:
    use_cores(measuring=False)
    begin = time.monotonic()
    passes = {which: module_of(folder / f"{which}.py") for which in ("forward", "backward")}
    compiled_s = time.monotonic() - begin
    names = json.loads((folder / "backward.json").read_text())["inputs"]
    setting = json.loads((folder / SETTING).read_text())
    set_precision(setting["precision"])
    row: Json = {"schema": SCHEMA, **setting, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(),
                 "compiled_s": round(compiled_s, 1)}
    profiled_by_kineto(torch.cuda.synchronize)  # the first takes seconds
    tune_quickly()
    with lock:
        use_cores(measuring=True)
        begin = time.monotonic()
        inputs = Inputs(folder)
        given = {"forward": inputs.of(passes["forward"])}
        results = run_first(passes["forward"], given["forward"])
        given["backward"] = with_kept(inputs.of(passes["backward"]), names, results)
        run_first(passes["backward"], given["backward"])
        with quiet.hold():
            for which, module in passes.items():
                row[which] = timed_pass(module, given[which])
        row["timed_s"] = round(time.monotonic() - begin, 1)
    return row


def in_process(folder: pathlib.Path, lock: Any, quiet: Quiet, results: Any) -> None:
    try:
        results.put(timed(folder, lock, quiet))
    except BaseException as error:  # the others go on
        results.put({"schema": SCHEMA, "name": folder.name, "error": f"{type(error).__name__}: {error}"[:500]})


def each_timed(folders: Sequence[pathlib.Path], at_once: int, deadline: float) -> Iterator[Tuple[str, Any]]:
    lock = Work.processes.Semaphore(1)
    quiet = Quiet()
    waiting: Deque[pathlib.Path] = collections.deque(folders)
    running: Dict[str, Work] = {}
    while waiting or running:
        while waiting and len(running) < at_once and time.monotonic() < deadline - _LAST_S:
            with quiet.broken() as may_begin:
                if not may_begin:
                    break
                folder = waiting.popleft()
                running[folder.name] = Work(in_process, (folder, lock, quiet))
        if not running:
            break
        for name, work in list(running.items()):
            found = work.found(0.05)
            if found is None and (work.age_s > _LONGEST_S or time.monotonic() > deadline):
                found = work.kill()
            if found is None:
                continue
            if isinstance(found, str) and quiet.held_by(work.id):  # it died in its turn
                quiet.end_of(work.id)
                lock.release()
            del running[name]
            yield name, found
    for folder in waiting:
        yield folder.name, "not begun: no time was left"


def collect(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # to look for a GPU must not wake it before the forks
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    if not torch.cuda.is_available():
        say("forerun.compiled_kernels: no CUDA GPU is visible to PyTorch; time kernels on a machine with one")
        return 1
    codes = pathlib.Path(options.folder).glob("*/backward.py")
    folders = [code.parent for code in sorted(codes, key=lambda code: code.stat().st_size)]  # the shortest begin
    if not folders:
        say(f"forerun.compiled_kernels: {options.folder} has no code; forerun.compile_check --code writes it")
        return 1
    done = 0
    with open(options.output, "ab") as lines:
        for name, row in each_timed(folders, options.at_once, begin + 60 * options.minutes):
            if isinstance(row, str):
                say(f"{name}: {row}")
                continue
            lines.write(gzip.compress((json.dumps(row, separators=(",", ":")) + "\n").encode()))
            lines.flush()
            done += "error" not in row
            say(f"{time.monotonic() - begin:6.1f} s  {summary(row)}")
    say(f"{done} of {len(folders)} in {time.monotonic() - begin:.0f} s, in {options.output}")
    return 0 if done == len(folders) else 3


def summary(row: Json) -> str:
    if "error" in row:
        return f"{row['name']}: {row['error'].splitlines()[0][:200]}"
    counts = [len(row[which]["ns"]) for which in ("forward", "backward")]
    times = [sum(row[which]["ns"]) / 1e6 for which in ("forward", "backward")]
    return (f"{row['name']}: {counts[0]} + {counts[1]} kernels, {times[0]:.2f} + {times[1]:.2f} ms; "
            f"compiled {row['compiled_s']} s, timed {row['timed_s']} s")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m forerun.compiled_kernels", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("folder", help="what forerun.compile_check --code wrote")
    add("-o", "--output", required=True, metavar="FILE", help="lines are added to this file, .jsonl.gz")
    add("--minutes", type=float, default=60, metavar="M", help="end by then (default: %(default)s)")
    add("--at-once", type=int, default=os.cpu_count() or 1, metavar="N",
        help="set-ups that compile side by side (default: %(default)s)")
    try:
        return collect(parser.parse_args(arguments))
    except OSError as error:
        say(f"forerun.compiled_kernels: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
