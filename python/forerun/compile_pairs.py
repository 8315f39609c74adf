"""Measures training set-ups twice, as they are and under torch.compile, and keeps what the compiler decided.

    python -m forerun.compile_pairs examples/compile_setups.py -o pairs.jsonl.gz --minutes 9   # needs a GPU

The file of set-ups is that of forerun.setup_pairs. A line for each: `eager`, a run/2 record (docs/records.md), which
`forerun predict` takes; `compiled`, what was measured of the same set-up with its model compiled (time, memory,
kernels, seconds of the first iteration, graph breaks); `graphs`, Inductor's own account (compiled_graphs.py); and
`sources`, Triton's code of every kernel.
Set-ups compile side by side, each in a process of its own on the higher cores; for a compiled graph's first run a
process waits until it has the GPU for itself, and when all are compiled it has the first cores, too, to its end. While
it times iterations and kernels all the others are stopped: what compiles on other cores slows a host down by a third,
and a model that is made on the GPU takes slices of its time. A line is on the disk when it is measured; `--skip` passes
over what an earlier file has, `--backwards` begins at the end of the list.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import gzip
import importlib
import json
import os
import signal
import statistics
import sys
import time
import traceback
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import torch

from .compiled_graphs import watch
from .setup_pairs import Refused, SetUp, Work, chosen, measured_task, set_ups_of, task_of

Json = Dict[str, Any]

SCHEMA = "compile/1"
DEVICE = "cuda"
_MEASURING_CORES = 4  # the first ones; processes that compile have the others, where there are more than as many again
_LAST_S = 30.0  # before the end nothing is begun any more: it would not be whole
_LONGEST_S = 420.0  # after which a set-up hangs
_ISSUED = 7  # iterations of which the host's part is timed
_WARM = 3  # iterations after the first: kernels are tuned and the allocator is at rest


def use_cores(measuring: bool, process: str = "self") -> None:
    """Puts all threads of this process on the cores for measuring, or on those for compiling."""
    count = os.cpu_count() or 1
    if count < 2 * _MEASURING_CORES:
        return
    cores = range(_MEASURING_CORES) if measuring else range(_MEASURING_CORES, count)
    for thread in os.listdir(f"/proc/{process}/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:  # it ended meanwhile
            pass


def parents() -> Dict[int, int]:
    """The parent of every process."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    found[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                pass
    return found


def descendants(ancestor: int, spared: int) -> List[int]:
    """All processes that come from one, without `spared` and what comes from that."""
    parent_of = parents()
    found, left = [], [ancestor]
    while left:
        above = left.pop()
        children = [child for child, parent in parent_of.items() if parent == above and child != spared]
        found += children
        left += children
    return found


def send(processes: Sequence[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


class Quiet:
    """All other set-ups stand still while one holds it: `holder` is its process. None is begun meanwhile."""

    def __init__(self) -> None:
        self._lock = Work.processes.Lock()
        self._holder: Any = Work.processes.Value("i", 0)
        self._collector = os.getpid()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            self._holder.value = os.getpid()
        others = descendants(self._collector, spared=os.getpid())
        send(others, signal.SIGSTOP)
        try:
            yield
        finally:
            send(others, signal.SIGCONT)
            self._holder.value = 0

    @contextlib.contextmanager
    def broken(self) -> Iterator[bool]:
        """Whether a set-up may begin; none holds it inside."""
        with self._lock:
            yield self._holder.value == 0

    def held_by(self, process: int) -> bool:
        return bool(self._holder.value == process)

    def end_of(self, process: int) -> None:
        """It died, perhaps while it held it."""
        if self.held_by(process):
            send(descendants(self._collector, spared=0), signal.SIGCONT)
            self._holder.value = 0


class Turn:
    """The GPU, and the right to measure. Taken for each compiled graph of the first iteration, which tunes its kernels,
    and then once for all that is measured. `holder` has the id of the process whose turn it is."""

    def __init__(self, lock: Any, holder: Any, quiet: Quiet, deadline: float) -> None:
        self._lock, self._holder, self._deadline = lock, holder, deadline
        self.quiet = quiet
        self.waited_s = 0.0
        self.taken = False

    def take(self) -> None:
        if self.taken:
            return
        begin = time.monotonic()
        left = self._deadline - _LAST_S - begin
        if left <= 0 or not self._lock.acquire(timeout=left):
            raise Refused("not measured: no time was left")
        self.taken = True
        self._holder.value = os.getpid()
        self.waited_s += time.monotonic() - begin

    def end(self) -> None:
        if self.taken:
            self._holder.value = 0
            self._lock.release()
            self.taken = False

    def guard(self) -> Callable[[], None]:
        """Each compiled graph runs in a turn of its own, and others may have theirs while the next is compiled (the
        backward pass is when it is first reached); the result undoes that."""
        from torch._inductor.output_code import CompiledFxGraph

        plain = CompiledFxGraph.__call__

        def in_turn(graph: Any, inputs: Any) -> Any:
            self.take()
            try:
                return plain(graph, inputs)
            finally:
                torch.cuda.synchronize()
                self.end()

        CompiledFxGraph.__call__ = in_turn

        def undo() -> None:
            CompiledFxGraph.__call__ = plain

        return undo


def compiler_counters() -> Any:
    return importlib.import_module("torch._dynamo.utils").counters


def counted() -> Json:
    """What Dynamo and Inductor counted since they were last reset, graph breaks by their reason among it."""
    kept = ("stats", "graph_break", "unimplemented", "inductor", "aot_autograd", "frames")
    counters = compiler_counters()
    return {name: {str(key)[:300]: count for key, count in counters[name].items()} for name in kept if name in counters}


def compiled_task(made: Mapping[str, Any], device: torch.device, mode: str) -> Any:
    """The set-up's iteration with its model compiled. Loss and optimizer stay as they are, as in most loops."""
    task = task_of(made, device)
    task.model = torch.compile(task.model, mode=None if mode == "default" else mode, dynamic=False)
    return task


def measured_pair(set_up: SetUp, name: str, mode: str, turn: Turn) -> Json:
    from .measure import CudaInstrument, empty_allocator, measured_kernels, measured_memory, measured_times

    device = torch.device(DEVICE)
    use_cores(measuring=False)
    instrument = CudaInstrument(alone=turn.quiet.hold)
    compiler_counters().clear()
    row: Json = {"schema": SCHEMA, "name": name, "mode": mode, "env": instrument.environment()}
    with watch() as watched:
        task = compiled_task(set_up(device), device, mode)
        undo, begin = turn.guard(), time.monotonic()
        task.iterate(DEVICE)
        torch.cuda.synchronize()
        undo()
        turn.take()
        use_cores(measuring=True)
        found: Json = {"first_s": round(time.monotonic() - begin - turn.waited_s, 2)}
        found["first_peaks"] = measured_memory()
        for _ in range(_WARM):
            task.iterate(DEVICE)
        torch.cuda.synchronize()
        found["counted"] = counted()
        found["kept_cache_mem"] = measured_memory()  # peaks since the process began, of a cache that was never emptied
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        found["mem"], found["alloc_trace"] = traced_memory(task)
        with turn.quiet.hold():
            found["time_ms"] = measured_times(task)
            found["issued_ms"] = issued_ms(task)
            found.update(measured_kernels(task))
    row.update(compiled=found, graphs=watched.graphs, sources=watched.sources, problems=watched.problems)
    del task
    torch._dynamo.reset()
    empty_allocator()
    try:
        row["eager"], row["eager_issued_ms"] = eager(instrument, set_up, name, device, turn)
    except Exception as error:  # what was compiled is kept
        row["eager"] = {"status": "failed", "error": f"{type(error).__name__}: {error}"[:2000]}
    return row


def traced_memory(task: Any) -> Tuple[Json, Json]:
    """Peaks of three iterations that begin with nothing cached, and the allocator's events of the last."""
    from .allocator_trace import AllocatorTrace
    from .measure import measured_memory

    for _ in range(2):
        task.iterate(DEVICE)
    trace = AllocatorTrace()
    with trace.recording(True):
        task.iterate(DEVICE, trace.mark)
        torch.cuda.synchronize()
        return measured_memory(), trace.columns()


def issued_ms(task: Any) -> Json:
    """How long the host takes to issue each phase of an iteration that begins on an idle GPU: medians of some. Where it
    has to wait for the GPU, that is in it."""
    seen: Dict[str, List[float]] = {"f": [], "b": [], "u": []}
    for _ in range(_ISSUED):
        begins: List[Tuple[str, float]] = []
        torch.cuda.synchronize()
        task.iterate(DEVICE, lambda letter: begins.append((letter, time.perf_counter())))
        begins.append(("", time.perf_counter()))
        torch.cuda.synchronize()
        took = dict.fromkeys(seen, 0.0)
        for (letter, begin), (_, end) in zip(begins, begins[1:]):
            took[letter] += 1000 * (end - begin)
        for letter, ms in took.items():
            seen[letter].append(ms)
    return {letter: round(statistics.median(found), 4) for letter, found in seen.items()}


def eager(instrument: Any, set_up: SetUp, name: str, device: torch.device, turn: Turn) -> Tuple[Json, Json]:
    """A run record, and how long its phases take to issue."""
    record, task = measured_task(instrument, set_up, name, device)
    record.pop("alloc_trace", None)
    if task is None or record["status"] != "ok":
        return record, {}
    with turn.quiet.hold():
        return record, issued_ms(task)


def in_process(file: str, name: str, mode: str, turn: Turn, results: Any) -> None:
    try:
        results.put(gzip.compress(json.dumps(
            measured_pair(set_ups_of(file)[name], name, mode, turn), separators=(",", ":")).encode()))
    except Refused as error:
        results.put(str(error))
    except BaseException as error:  # the others go on
        text = f"{type(error).__name__}: {error}"[:2000]
        row = {"schema": SCHEMA, "name": name, "mode": mode, "error": text, "where": traceback.format_exc()[-3000:]}
        results.put(gzip.compress(json.dumps(row).encode()))
    finally:
        turn.end()


def pairs(file: str, names: Sequence[str], mode: str, at_once: int, deadline: float) -> Iterator[Tuple[str, Any]]:
    """Names, and each one's line, compressed, or why there is none; in the order in which they end."""
    lock = Work.processes.Semaphore(1)
    holder: Any = Work.processes.Value("i", 0)
    quiet = Quiet()
    waiting: Deque[str] = collections.deque(names)
    running: Dict[str, Work] = {}
    while waiting or running:
        while waiting and len(running) < at_once and time.monotonic() < deadline - 2 * _LAST_S:
            with quiet.broken() as may_begin:
                if not may_begin:
                    break
                name = waiting.popleft()
                running[name] = Work(in_process, (file, name, mode, Turn(lock, holder, quiet, deadline)))
        if not running and (not waiting or time.monotonic() >= deadline - 2 * _LAST_S):
            break
        for name, work in list(running.items()):
            found = work.found(0.1)
            if found is None and (work.age_s > _LONGEST_S or time.monotonic() > deadline):
                found = work.kill()
            if found is None:
                continue
            quiet.end_of(work.id)
            if isinstance(found, str) and holder.value == work.id:  # it died in its turn
                holder.value = 0
                lock.release()
            del running[name]
            yield name, found
    for name in waiting:
        yield name, "not begun: no time was left"


def recorded(files: Sequence[str]) -> Set[str]:
    found = set()
    for file in files:
        with gzip.open(file, "rt") if file.endswith(".gz") else open(file, encoding="utf-8") as lines:
            found |= {json.loads(line)["name"] for line in lines}
    return found


def left_of(options: argparse.Namespace) -> List[str]:
    skipped = recorded(options.skip)
    left = [name for name in chosen(options.setups, options.names) if name not in skipped]
    return left[::-1] if options.backwards else left


def collect(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # to look for a GPU must not wake it before the forks
    os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "0")  # what comes from a cache is not seen
    os.environ.setdefault("TORCHINDUCTOR_AUTOGRAD_CACHE", "0")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "3")
    names = left_of(options)
    if not torch.cuda.is_available():
        raise Refused("no CUDA GPU is visible to PyTorch; measure on a machine with one")
    done = 0
    with open(options.output, "ab") as lines:
        for name, line in pairs(options.setups, names, options.mode, options.at_once, begin + 60 * options.minutes):
            if isinstance(line, str):
                say(f"{name}: {line}")
                continue
            row = json.loads(gzip.decompress(line))
            lines.write(gzip.compress(gzip.decompress(line) + b"\n"))
            lines.flush()
            os.fsync(lines.fileno())
            done += "error" not in row
            say(f"{time.monotonic() - begin:6.1f} s  {summary(row)}")
    say(f"{done} pairs of {len(names)} in {time.monotonic() - begin:.0f} s, in {options.output}")
    return 0 if done == len(names) else 3


def summary(row: Json) -> str:
    if "error" in row:
        return f"{row['name']}: {row['error'].splitlines()[0][:200]}"
    compiled, plain = row["compiled"], row["eager"]
    if plain["status"] != "ok":
        return f"{row['name']}: eager {plain['status']}"
    times = [record["time_ms"]["pipelined_median"] for record in (plain, compiled)]
    counts = [len(record["kernels"]["ns"]) for record in (plain, compiled)]
    return (f"{row['name']}: {times[0]:.2f} -> {times[1]:.2f} ms, {counts[0]} -> {counts[1]} kernels, "
            f"first {compiled['first_s']} s, {len(row['graphs'])} graphs")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m forerun.compile_pairs", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("setups", help="Python file that defines SETUPS (examples/compile_setups.py is one)")
    add("names", nargs="*", help="which of them; default: all")
    add("-o", "--output", required=True, metavar="FILE", help="lines are added to this file, .jsonl.gz")
    add("--mode", default="default", choices=("default", "reduce-overhead", "max-autotune-no-cudagraphs",
                                              "max-autotune"), help="of torch.compile (default: %(default)s)")
    add("--minutes", type=float, default=60, metavar="M", help="end by then (default: %(default)s)")
    add("--at-once", type=int, default=max(1, (os.cpu_count() or 1) // 2), metavar="N",
        help="set-ups that compile side by side (default: %(default)s)")
    add("--skip", action="append", default=[], metavar="FILE", help="pass over what this file has; may be repeated")
    add("--backwards", action="store_true", help="begin at the end of the list")
    return parser.parse_args(arguments)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    try:
        return collect(parse(arguments))
    except (Refused, OSError) as error:
        say(f"forerun.compile_pairs: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
