"""What Inductor decided while it compiled: its graphs, the kernels it generated of them, and what it left to libraries.

`watch()` notes every graph that is lowered inside it, as JSON. A graph has `nodes`, its aten calls after decomposition
and partition as columns (target, type and shape of the result, the nodes read), and `kernels` in the order of the
generated code: the class of the scheduler's node, the class of the kernel (`pointwise`, `reduction`, `persistent`,
`template`, `extern`, `foreach`, `nop`), the name it is launched by, its extents, the bytes that it touches by
Inductor's own count, and the graph's nodes that are computed in it. Inductor has no public interface for any of this:
what a version of PyTorch does not have is left out of a kernel, and what fails is noted under `problems`.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Sequence

Json = Dict[str, Any]


def _attempt(problems: List[str], what: Callable[[], Any], default: Any = None) -> Any:
    try:
        return what()
    except Exception as error:  # another PyTorch: what it lacks is missing, the rest is kept
        text = f"{type(error).__name__}: {error}"[:200]
        if text not in problems:
            problems.append(text)
        return default


def graph_nodes(graph: Any, numbers: Dict[str, int]) -> Json:
    """The calls of an FX graph as columns; shapes and types are tables. `numbers` is given each node's by its name."""
    targets: Dict[str, int] = {}
    types: Dict[str, int] = {}
    shapes: Dict[Any, int] = {}
    columns: Dict[str, List[Any]] = {key: [] for key in ("target", "type", "shape", "strides", "reads")}
    for node in graph.nodes:
        numbers[node.name] = len(numbers)
        target = str(node.target) if node.op == "call_function" else node.op
        value = node.meta.get("val") if hasattr(node, "meta") else None
        kind, shape, strides = _described(value)
        columns["target"].append(targets.setdefault(target, len(targets)))
        columns["type"].append(types.setdefault(kind, len(types)))
        columns["shape"].append(shapes.setdefault(shape, len(shapes)))
        columns["strides"].append(shapes.setdefault(strides, len(shapes)))
        columns["reads"].append([numbers[read.name] for read in node.all_input_nodes])
    return {
        "targets": list(targets), "types": list(types), "shapes": [list(shape) for shape in shapes],
        "nodes": columns,
    }


def _described(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return type(value).__name__, (), ()
    try:
        return str(value.dtype).replace("torch.", ""), tuple(map(int, value.shape)), tuple(map(int, value.stride()))
    except Exception:  # sizes that are symbols
        return str(value.dtype).replace("torch.", ""), (-1,), ()


def _extent(value: Any) -> int:
    try:
        return int(value)
    except Exception:
        return -1


def _kind(node: Any) -> str:
    if type(node).__name__.startswith("Nop"):
        return "nop"
    for kind in ("template", "extern", "foreach", "reduction"):
        if getattr(node, f"is_{kind}", lambda: False)():
            return kind
    return "pointwise"


def _origins(node: Any, numbers: Dict[str, int]) -> List[int]:
    """The graph's nodes that are computed in it; -1 for those that Inductor made itself."""
    found = set()
    for part in node.get_nodes():
        if type(getattr(part, "node", None)).__name__ != "MultiOutput":
            found |= {numbers.get(origin.name, -1) for origin in getattr(part.node, "origins", None) or ()}
    return sorted(found)


def _group(node: Any) -> List[int]:
    """The numbers of results and of what each is reduced over, of the node's widest part."""
    groups = [part.group[1] for part in node.get_nodes() if getattr(part, "group", None)]
    extents = [[_extent(_product(axis)) for axis in group] for group in groups]
    return max(extents, key=lambda extent: (extent[0] * extent[-1], extent[-1]), default=[])


def _product(axis: Any) -> Any:
    if isinstance(axis, (list, tuple)):
        product: Any = 1
        for extent in axis:
            product = product * extent
        return product
    return axis


def _reductions(node: Any) -> List[List[Any]]:
    """Kind and extent of every reduction."""
    found = []
    for part in node.get_nodes():
        data = getattr(getattr(part, "node", None), "data", None)
        kind = getattr(data, "reduction_type", None)
        if kind is not None:
            found.append([str(kind), [_extent(extent) for extent in getattr(data, "reduction_ranges", ())],
                          [_extent(extent) for extent in getattr(data, "ranges", ())]])
    return found


def _described_node(node: Any, numbers: Dict[str, int], problems: List[str]) -> Json:
    kernel: Json = {"node": type(node).__name__, "kind": _attempt(problems, lambda: _kind(node), "unknown")}
    kernel["parts"] = _attempt(problems, lambda: len(node.get_nodes()), 0)
    kernel["origins"] = _attempt(problems, lambda: _origins(node, numbers), [])
    if kernel["kind"] in ("extern", "template"):
        kernel["call"] = _attempt(problems, lambda: str(_called(node)), "")
    else:
        kernel["extents"] = _attempt(problems, lambda: _group(node), [])
        reductions = _attempt(problems, lambda: _reductions(node), [])
        if reductions:
            kernel["reductions"] = reductions
    kernel["bytes"] = _attempt(problems, lambda: _extent(node.get_read_write_buffers_sizes()), -1)
    kernel["outputs"] = _attempt(problems, lambda: list(node.get_buffer_names()), [])
    return kernel


def _called(node: Any) -> Any:
    inner = node.node
    return (
        getattr(inner, "python_kernel_name", None) or getattr(inner, "op_overload", None) or type(inner).__name__
    )


class Watched:
    """The graphs that were compiled, in order."""

    def __init__(self) -> None:
        self.sources: Dict[str, str] = {}  # Triton's code, by kernel
        self.graphs: List[Json] = []
        self.problems: List[str] = []
        self._names: List[Json] = []

    def scheduled(self, graph: Any, nodes: Sequence[Any]) -> None:
        """Before code is generated of a graph's scheduler."""
        self._names = []
        kind = "backward" if getattr(graph, "is_backward", False) else "forward"
        if getattr(graph, "is_inference", False):
            kind = "inference"
        made: Json = {"kind": kind}
        numbers: Dict[str, int] = {}
        module: Any = getattr(graph, "orig_gm", None) or getattr(graph, "module", None)
        if module is not None:
            made.update(_attempt(self.problems, lambda: graph_nodes(module.graph, numbers), {}))
        made["kernels"] = [_described_node(node, numbers, self.problems) for node in nodes]
        made["generated"] = self._names
        self.graphs.append(made)

    def generated(self, name: str, source: str, kernel: Any, parts: Sequence[Any]) -> None:
        """A kernel's code was generated, or found to be that of an earlier one."""
        made: Json = {"name": name}
        self.sources.setdefault(name, source)
        made["extents"] = _attempt(self.problems, lambda: {str(k): _extent(v) for k, v in kernel.numels.items()}, {})
        made["bytes"] = _attempt(self.problems, lambda: _extent(kernel.estimate_kernel_num_bytes()), -1)
        made["persistent"] = bool(getattr(kernel, "persistent_reduction", False))
        made["cooperative"] = bool(getattr(kernel, "cooperative_reduction", False))
        counts = ("num_load", "num_store", "num_reduction")
        made["counts"] = [_extent(getattr(kernel, count, -1)) for count in counts]
        made["buffers"] = _attempt(
            self.problems, lambda: [part.get_name() for part in parts if hasattr(part, "get_name")], []
        )
        self._names.append(made)


@contextlib.contextmanager
def watch() -> Iterator[Watched]:
    """Notes what is compiled meanwhile; the compiler works as ever. Graphs that come from a cache are not seen."""
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.scheduler import Scheduler
    from torch._inductor.virtualized import V

    watched = Watched()
    codegen, define = Scheduler.codegen, TritonScheduling.define_kernel

    def watched_codegen(self: Any, *given: Any, **named: Any) -> Any:
        _attempt(watched.problems, lambda: watched.scheduled(V.graph, self.nodes))
        return codegen(self, *given, **named)

    def watched_define(self: Any, source: Any, schedule: Any, kernel: Any, *given: Any, **named: Any) -> Any:
        name = define(self, source, schedule, kernel, *given, **named)
        _attempt(watched.problems, lambda: watched.generated(str(name), str(source), kernel, schedule))
        return name

    Scheduler.codegen, TritonScheduling.define_kernel = watched_codegen, watched_define
    try:
        yield watched
    finally:
        Scheduler.codegen, TritonScheduling.define_kernel = codegen, define
