"""Holds the simulated compiler to PyTorch's own: what is kept, how many kernels there are, and the memory of a pass.

    python -m forerun.compile_check examples/compile_setups.py vit/vit_small --program build/forerun
    python -m forerun.compile_check setups.py --json checks.jsonl --code folder   # Inductor's code too
    python -m forerun.compile_check setups.py --captures captures.jsonl           # what is predicted from, and no more

Needs no GPU, but a PyTorch that was built for CUDA (pretend_gpu.py): each set-up's model is traced with fake tensors
and compiled for an H200 up to the generated code, which is read for what it allocates, frees, writes over and
launches. The same set-up is captured and predicted by `forerun`. Files of set-ups are those of forerun.compile_pairs.
A row has what Inductor made and what was predicted of it: bytes kept for the backward pass; generated kernels and
calls of libraries of both passes; the most bytes that values made or kept by the passes take at once; and what
generated kernels read and write, every operand once a kernel.
"""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from . import pretend_gpu

Json = Dict[str, Any]

_BLOCK = 512  # bytes: what the allocator rounds up to
_ALLOCATES = re.compile(r"(\w+) = empty_strided_cuda\(")
_TAKES_OVER = re.compile(r"(\w+) = (?:reinterpret_tensor\()?(\w+)\b.*?(; del \w+)?  # reuse")
_PART = re.compile(r"(\w+) = (\w+)\[(\d+)\]$")
_CALLS = re.compile(r"(\w+) = (torch\.ops\.[\w.]+|extern_kernels\.\w+)\(")
_VIEW = re.compile(r"(\w+) = (?:reinterpret_tensor\()?(\w+)(?:,.*\))?$")
_LAUNCH = re.compile(r"(triton_\w+?)\.run\(")


# -- what the compiler makes ------------------------------------------------------------------------------------------


class _Compiled(Exception):
    """Both passes are there: nothing has to run."""


@dataclasses.dataclass
class Pass:
    """A compiled graph: its code, the bytes of every buffer that the code names, and what it is given."""

    backward: bool
    code: str
    bytes: Dict[str, int]
    inputs: List[str]
    moved: Sequence[Tuple[str, int]] = ()  # by generated kernel: its first node, and what it reads and writes

    @classmethod
    def of(cls, graph: Any, code: str) -> Pass:
        buffers = {name: buffer.node for name, buffer in graph.scheduler.name_to_buf.items()}
        buffers.update({name: given.data.data for name, given in graph.graph_inputs.items()
                        if hasattr(given, "data") and hasattr(given.data, "data")})
        sizes = {}
        for name, buffer in buffers.items():
            with contextlib.suppress(Exception):  # nothing that has a size
                sizes[name] = int(graph.get_allocation_storage_size(buffer)) * buffer.get_dtype().itemsize
        generated = [node for node in graph.scheduler.nodes if not (node.is_extern() or node.is_template())]
        moved = [(node.get_first_name(), int(node.get_read_write_buffers_sizes())) for node in generated]
        return cls(bool(graph.is_backward), code, sizes, list(graph.graph_inputs), moved)

    @property
    def lines(self) -> List[str]:
        body = self.code[self.code.index("def call(self, args):"):]
        return [line.strip() for line in body[:body.index("return (")].splitlines()]

    def results(self) -> List[str]:
        """What it returns: a buffer's name for each, though it may be a view of it."""
        begin = self.code.index("return (", self.code.index("def call(self, args):")) + len("return (")
        found, depth, part = [], 0, ""
        for letter in self.code[begin:self.code.index("\n", begin)]:
            if letter in ",)" and depth == 0:
                found.append(part.strip())
                part = ""
                continue
            depth += (letter == "(") - (letter == ")")
            part += letter
        return [re.sub(r"^reinterpret_tensor\((\w+),.*$", r"\1", text) for text in found if text]


class Memory:
    """Follows passes line by line: which buffers share memory, and what is alive of what they made."""

    def __init__(self) -> None:
        self.place: Dict[str, int] = {}  # by name; what a pass did not make is not in it
        self.names: Dict[int, Set[str]] = {}
        self.size: Dict[int, int] = {}
        self.alive = self.peak = 0
        self.launches: List[str] = []
        self.calls: List[str] = []
        self.events: List[Json] = []

    def hold(self, name: str, size: int) -> None:
        number = len(self.size)
        size = -(-size // _BLOCK) * _BLOCK
        self.place[name], self.names[number], self.size[number] = number, {name}, size
        self.alive += size
        self.peak = max(self.peak, self.alive)
        self.events.append({"take": size, "as": name})

    def alias(self, name: str, of: str) -> None:
        if of in self.place:
            self.place[name] = self.place[of]
            self.names[self.place[of]].add(name)

    def drop(self, name: str) -> None:
        number = self.place.pop(name, None)
        if number is None:
            return
        self.names[number].discard(name)
        if not self.names[number]:
            self.alive -= self.size[number]
            self.events.append({"free": self.size[number], "as": name})

    def run(self, made: Pass) -> None:
        self.peak, self.launches, self.calls, self.events = self.alive, [], [], []
        for line in made.lines:
            self._read(made, line)

    def _read(self, made: Pass, line: str) -> None:
        for name in _LAUNCH.findall(line):
            self.launches.append(name)
            self.events.append({"launch": name})
        if line.startswith("extern_kernels."):
            self.calls.append(line.split("(")[0])
            self.events.append({"call": self.calls[-1]})
        taken, part, call, view = (form.match(line) for form in (_TAKES_OVER, _PART, _CALLS, _VIEW))
        if _ALLOCATES.match(line):
            name = line.split(" ")[0]
            self.hold(name, made.bytes.get(name, 0))
        elif taken:
            self.alias(taken[1], taken[2])
            self.events.append({"reuse": taken[2], "as": taken[1]})
        elif part:
            self.hold(part[1], made.bytes.get(part[1], 0))
        elif call:
            self.calls.append(call[2])
            self.events.append({"call": self.calls[-1]})
            if made.bytes.get(call[1], 0) > 0:
                self.hold(call[1], made.bytes[call[1]])
        elif view:
            self.alias(view[1], view[2])
        for names in re.findall(r"\bdel ([\w, ]+)", line):
            for name in names.split(","):
                self.drop(name.strip())

    def hand_over(self, forward: Pass, backward: Pass) -> List[str]:
        """Between the passes: what was kept is left, by the names that the backward pass has for it, and autograd hands
        in the gradients of all results, which it holds until that pass ends. The names of what was kept."""
        results = forward.results()
        kept = [name for name in backward.inputs if not name.startswith("tangents_")]
        places = {name: self.place[result] for name, result in zip(kept, results[len(results) - len(kept):])
                  if result in self.place}
        held: Dict[int, Set[str]] = {}
        for name, place in places.items():
            held.setdefault(place, set()).add(name)
        self.place, self.names = places, held
        self.alive = sum(self.size[place] for place in held)
        for name in backward.inputs:
            if name.startswith("tangents_"):
                self.hold(f"autograd's {name}", backward.bytes.get(name, 0))
        return [name for name in kept if name in places]


@contextlib.contextmanager
def _watched() -> Iterator[List[Pass]]:
    """Keeps the code of every graph instead of running it; ends the first backward graph with `_Compiled`."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor
    from torch._inductor.graph import GraphLowering

    found: List[Pass] = []
    plain = GraphLowering.compile_to_module

    def compile_to_module(self: Any) -> Any:
        code, _ = self.codegen()
        found.append(Pass.of(self, code.value))
        if self.is_backward:
            raise _Compiled()
        return types.SimpleNamespace(call=lambda args: None, __file__="none.py")

    GraphLowering.compile_to_module = compile_to_module
    try:
        with inductor.patch(fx_graph_cache=False, compile_threads=1), functorch.patch(
            enable_autograd_cache=False, force_non_lazy_backward_lowering=True
        ):
            yield found
    finally:
        GraphLowering.compile_to_module = plain


def _fake(task: Any, mode: Any) -> List[Any]:
    """Tensors of the task become fake ones on the GPU; what was tied stays tied. The integers among them, as they
    were: by these code looks things up."""
    import torch
    from torch.utils._pytree import tree_map_only

    made: Dict[int, Any] = {}
    integers: List[Any] = []

    def stand_in(tensor: Any) -> Any:
        if id(tensor) not in made:
            if tensor.dtype in (torch.int64, torch.int32) and tensor.dim() > 0:
                integers.append(tensor)
            copy: Any = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")
            if isinstance(tensor, torch.nn.Parameter):
                copy = torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
            made[id(tensor)] = copy
        return made[id(tensor)]

    with mode:
        for module in task.model.modules():
            for table in (module._parameters, module._buffers):
                for name, tensor in list(table.items()):
                    if tensor is not None:
                        table[name] = stand_in(tensor)
            for name, value in list(vars(module).items()):
                if isinstance(value, torch.Tensor):
                    setattr(module, name, stand_in(value))
        task.batch = tree_map_only(torch.Tensor, stand_in, task.batch)
    return integers


@dataclasses.dataclass
class Given:
    """What code has to be run with, beside random numbers."""

    integers: List[Any]
    precision: str


def compiled(set_up: Any) -> Tuple[List[Pass], List[str], Given]:
    """The passes that Inductor makes of a set-up; why the graph broke, where it did; and what it was given."""
    import torch
    from torch._dynamo.utils import counters
    from torch._subclasses.fake_tensor import FakeTensorMode

    from .setup_pairs import task_of
    from .training_loop import autocast_as_in

    made = set_up(torch.device("cpu"))
    task = task_of(made, torch.device("cpu"))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = Given(_fake(task, mode), str(made.get("precision", "fp32")))
    torch._dynamo.config.ignore_logging_functions |= {  # a warning is given once: the iterations behind do not break
        getattr(logging.Logger, name) for name in ("warning", "warning_once", "info") if hasattr(logging.Logger, name)
    }
    task.model = torch.compile(task.model, dynamic=False)
    with mode, pretend_gpu.compiling(), _watched() as found:
        try:
            with autocast_as_in(task.loop, task.model, "cuda", task.autocast):
                task.loss_fn(task.model, task.batch)
        except Exception as error:
            if "_Compiled" not in f"{type(error).__name__} {error}":
                raise
    return found, [str(reason).split("\n")[0] for reason in counters["graph_break"]], given


def figures_of(passes: Sequence[Pass]) -> Json:
    forward = next(made for made in passes if not made.backward)
    backward = next(made for made in passes if made.backward)
    memory = Memory()
    found: Json = {}
    for which, made in (("forward", forward), ("backward", backward)):
        memory.run(made)
        found[which] = {"kernels": len(memory.launches), "libraries": len(memory.calls), "peak": memory.peak,
                        "moved": sum(size for _, size in made.moved)}
        if made is forward:
            kept = memory.hand_over(forward, backward)
            found["kept_values"] = len({memory.place[name] for name in kept})
            found["kept"] = sum(memory.size[place] for place in {memory.place[name] for name in kept})
    for key in ("kernels", "libraries", "moved"):
        found[key] = found["forward"][key] + found["backward"][key]
    found["peak"] = max(found["forward"]["peak"], found["backward"]["peak"])
    return found


# -- what is predicted ------------------------------------------------------------------------------------------------


_STAYS = ("parameters", "buffers", "optimizer_state", "inputs", "workspaces")  # whatever a pass does


def predicted(file: str, name: str, program: str) -> Json:
    """What the program says of the set-up's capture, made as on a machine without a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        capture = pathlib.Path(folder) / "capture.jsonl"
        capture_into(str(capture), file, name)
        done = subprocess.run([program, "predict", str(capture), "--gpu", "h200", "--compile", "default", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_without_gpu())
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr.strip())
    said: Json = json.loads(done.stdout)
    made, memory = said["compiled"], said["memory"]
    return {
        "kept_values": made["kept_values"], "kept": made["kept_bytes"],
        "kernels": made["pointwise"] + made["reductions"] + made["scatters"], "libraries": made["libraries"],
        "peak": made["peak_allocated"] - sum(memory[part] for part in _STAYS),
        "moved": made["generated_bytes"],
    }


def _without_gpu() -> Dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in pretend_gpu.VARIABLES}


def capture_into(output: str, file: str, name: str) -> None:
    """Adds the capture of a set-up to a file, from a process that no GPU is pretended in."""
    command = [sys.executable, "-m", "forerun.compile_check", "--capture", output, file, name]
    subprocess.run(command, check=True, env=_without_gpu())


def add_capture(output: str, file: str, name: str) -> None:
    from .setup_pairs import captured, set_ups_of

    record = captured(set_ups_of(file)[name], name, compile=True)
    with open(output, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


# -- side by side -----------------------------------------------------------------------------------------------------


def checked(options: argparse.Namespace, name: str) -> Json:
    import torch

    from .compiled_kernels import INTEGERS, SETTING
    from .setup_pairs import set_ups_of

    torch._dynamo.reset()
    importlib.import_module("torch._dynamo.utils").counters.clear()
    passes, breaks, given = compiled(set_ups_of(options.setups)[name])
    if options.code:
        folder = pathlib.Path(options.code) / name.replace("/", ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SETTING).write_text(json.dumps({"name": name, "precision": given.precision}) + "\n")
        torch.save(given.integers, folder / INTEGERS)
        for made in passes:
            which = "backward" if made.backward else "forward"
            (folder / f"{which}.py").write_text(made.code)
            told = {"bytes": made.bytes, "inputs": made.inputs, "moved": made.moved}
            (folder / f"{which}.json").write_text(json.dumps(told))
    if breaks or not any(made.backward for made in passes):
        return {"name": name, "problem": f"the graph breaks: {'; '.join(breaks) or 'it has no backward pass'}"}
    row: Json = {"name": name, "torch": torch.__version__, "inductor": figures_of(passes)}
    if options.program:
        row["predicted"] = predicted(options.setups, name, options.program)
    return row


def capture_all(options: argparse.Namespace, names: Sequence[str]) -> int:
    failed = 0
    for number, name in enumerate(names, 1):
        try:
            capture_into(options.captures, options.setups, name)
        except subprocess.CalledProcessError:  # it has said why; the others go on
            failed += 1
        print(f"{number} of {len(names)}: {name}", file=sys.stderr, flush=True)
    if failed:
        print(f"forerun.compile_check: {failed} of {len(names)} set-ups could not be captured", file=sys.stderr)
    return 3 if failed else 0


_COLUMNS = (("kept", "kept, MiB", 1 << 20), ("kernels", "kernels", 1), ("libraries", "libraries", 1),
            ("peak", "peak, MiB", 1 << 20), ("moved", "moved, MiB", 1 << 20))


def off(row: Json, key: str) -> float:
    made, said = row["inductor"][key], row["predicted"][key]
    return float((said - made) / max(made, 1))


def line_of(row: Json) -> str:
    if "problem" in row:
        return f"{row['name']:36} {row['problem']}"
    made, said = row["inductor"], row.get("predicted")
    cells = []
    for key, _, unit in _COLUMNS:
        error = "" if said is None else f" {100 * off(row, key):+6.1f} %"
        cells.append(f"{made[key] / unit:>9,.0f}{error:>9}")
    return f"{row['name']:36} " + " ".join(cells)


def means(rows: Sequence[Json]) -> str:
    both = [row for row in rows if "predicted" in row]
    if not both:
        return ""
    cells = []
    for key, _, _ in _COLUMNS:
        errors = [abs(off(row, key)) for row in both]
        cells.append(f"{'':9}{100 * sum(errors) / len(errors):>7.1f} %")
    return f"{'mean, without sign':36} " + " ".join(cells) + f"   of {len(both)}"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.compile_check", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("setups", help="Python file that defines SETUPS (examples/compile_setups.py is one)")
    add("names", nargs="*", help="which of them; default: all")
    add("--program", default="", help="the forerun that predicts; without one, only Inductor's figures are printed")
    add("--json", metavar="FILE", help="add a line for each set-up to this file")
    add("--code", metavar="FOLDER", help="keep the generated code there")
    add("--captures", metavar="FILE", help="only capture them, as on a machine without a GPU, with what Dynamo traces; "
        "adds a line for each to this file")
    add("--capture", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.capture:
        add_capture(options.capture, options.setups, options.names[0])
        return 0
    try:
        if not options.captures:
            pretend_gpu.ensure("forerun.compile_check")
    except pretend_gpu.NoPretending as error:
        print(f"forerun.compile_check: {error}", file=sys.stderr)
        return 1
    from .setup_pairs import Refused, chosen

    try:
        names = chosen(options.setups, options.names)
    except Refused as error:
        print(f"forerun.compile_check: {error}", file=sys.stderr)
        return 1
    if options.captures:
        return capture_all(options, names)
    rows = []
    print(f"{'set-up':36} " + " ".join(f"{title:>18}" for _, title, _ in _COLUMNS))
    for name in names:
        try:
            row = checked(options, name)
        except Exception as error:  # the others go on
            row = {"name": name, "problem": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
        rows.append(row)
        print(line_of(row), flush=True)
        if options.json:
            with open(options.json, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
    print(means(rows))
    return 0 if not any("problem" in row for row in rows) else 3


if __name__ == "__main__":
    sys.exit(main())
