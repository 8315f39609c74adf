"""Which ops of a model Dynamo traces together, and where it cannot go on: read off Dynamo itself, without a GPU.

The model's forward pass runs on stand-ins under ``torch.compile``, with a backend that runs each graph as it came and
notes the ops in it. What runs between the graphs is heard too. Held against the ops that were recorded of the eager
model, in their order, this tells of each into which graph it goes. Dynamo decides by Python code (a logger, a lock, a
value that is read) and by its own version; both are those of the machine that records. What a model's author compiled
(a part of it, with options of its own) is taken as it is; a model that is not compiled is compiled whole, with fixed
sizes.

A graph that runs several times, as that of a layer does where the calls of layers are not traced, is a piece each time.
The same op may be recorded and heard as different ones (a mask that is made only while a model is traced, a cast that
autocast makes for a GPU alone): such an op goes with those beside it.
"""
from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import itertools
import pathlib
import random
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from .gpu_words import GpuNamedMode
from .host_arrays import arrays_read
from .host_values import HostValues
from .kept_state import random_state_kept
from .stand_ins import stand_ins
from .training import TrainingTask
from .training_loop import autocast_as_in
from .wrappers import is_compiled

Json = Dict[str, Any]
Key = Tuple[str, Tuple[Any, ...]]  # an op's name without its overload, and the shapes of its results

_ITERATIONS = 3  # the first compiles, a warning is given, guards fail; then all stands still
_OUTSIDE, _EAGER = -1, 0  # of the model; in it, between graphs, which count from 1


@dataclasses.dataclass
class _Heard:
    """What an iteration ran, in its order."""

    whole: bool  # whether all of the model is compiled, as far as Dynamo goes
    keys: List[Key] = dataclasses.field(default_factory=list)
    pieces: List[int] = dataclasses.field(default_factory=list)  # by op: which run of a graph it is in
    graphs: List[int] = dataclasses.field(default_factory=list)  # by run: which graph that is
    masks: List[bool] = dataclasses.field(default_factory=list)  # by call of attention that is traced: it gets one
    ends: List[Tuple[int, Any]] = dataclasses.field(default_factory=list)  # where a graph broke off: ops before, why


def _masks_of(module: Any) -> List[bool]:
    """Of each call of attention in one of Dynamo's graphs, whether it gets a mask."""
    calls = [node for node in module.graph.nodes
             if getattr(node.target, "__name__", "") == "scaled_dot_product_attention"]
    return [node.kwargs.get("attn_mask", node.args[3] if len(node.args) > 3 else None) is not None for node in calls]


class _Ear(TorchDispatchMode):
    """Hears ops; counts as one of PyTorch's own modes, since Dynamo traces nothing under those of others."""

    def __init__(self, values: HostValues) -> None:
        super().__init__()
        self.heard = _Heard(False)
        self.piece = _OUTSIDE
        self._values = values

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> Any:
        named = kwargs or {}
        result = self._values.run(func, args, named, lambda: func(*args, **named))
        if func.namespace not in ("profiler", "prim") and torch._C._current_autograd_node() is None:
            results = result if isinstance(result, (list, tuple)) else [result]
            shapes = tuple(tuple(item.shape) for item in results if isinstance(item, torch.Tensor))
            self.heard.keys.append((_base(str(func)), shapes))
            self.heard.pieces.append(self.piece)
        return result


class _Backend:
    """Takes Dynamo's graphs and runs them as they are."""

    def __init__(self, ear: _Ear) -> None:
        self._ear = ear
        self._count = 0

    def __call__(self, module: Any, _inputs: Sequence[Any], **_options: Any) -> Callable[..., Any]:
        self._count += 1
        number = self._count
        reason = getattr(module, "compile_subgraph_reason", None)
        masks = _masks_of(module)

        def run(*arguments: Any) -> Any:
            ear, heard = self._ear, self._ear.heard
            heard.graphs.append(number)
            heard.masks.extend(masks)
            before, ear.piece = ear.piece, len(heard.graphs)
            try:
                return module.forward(*arguments)
            finally:
                ear.piece = before
                if reason is not None and getattr(reason, "graph_break", False):
                    heard.ends.append((len(heard.keys), reason))

        return run


def dynamo_graphs(
    task: TrainingTask,
    backend: str,
    values: HostValues,
    dtype: Optional[torch.dtype],
    seed: int,
    record: Json,
) -> Json:
    """The field `dynamo` of a record (docs/records.md) of the same task."""
    told: Json = {"torch": str(torch.__version__)}
    try:
        heard, reasons = _heard(task, backend, values, dtype, seed)
    except Exception as error:  # whatever Dynamo, or the program under it, does
        told["problem"] = f"{type(error).__name__}: {_first_line(error)}"[:300]
        return told
    if heard.whole and not heard.graphs and not reasons:  # PyTorch before 2.6 traces nothing while ops are heard
        told["problem"] = f"Dynamo of PyTorch {torch.__version__} traced nothing and gave no reason"
        return told
    told.update(_placed(record, heard, reasons))
    return told


def dynamo_words(told: Json) -> str:
    """The field as a sentence for whoever records."""
    if "problem" in told:
        return f"warning: Dynamo could not trace the model, so that breaks are not known: {told['problem']}"
    places = [f"{row['where'] or row['module'] or 'the model'}: {row['why']}" for row in told["breaks"]]
    unlike = list(dict.fromkeys(places))
    if not unlike:
        return f"Dynamo traces {'what is compiled' if told['graphs'] != 1 else 'the model'} without a break"
    more = f"; and {len(unlike) - 4} more" if len(unlike) > 4 else ""
    return f"the graph breaks at {len(places)} places: {'; '.join(unlike[:4])}{more}"


# -- what Dynamo does --------------------------------------------------------------------------------------------------


def _heard(
    task: TrainingTask, backend: str, values: HostValues, dtype: Optional[torch.dtype], seed: int
) -> Tuple[_Heard, List[str]]:
    """What the last of some iterations ran, and why Dynamo could not go on somewhere."""
    dynamo: Any = importlib.import_module("torch._dynamo")
    counters = importlib.import_module("torch._dynamo.utils").counters
    device = torch.device("cpu")
    if backend == "cuda":
        device = next((p.device for p in task.model.parameters() if p.device.type == "cuda"), torch.device("cuda:0"))
    listening, values.listening = values.listening, False
    values.other_outcome_at = ""
    dynamo.reset()
    counters.clear()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(random_state_kept())
            stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            stack.enter_context(arrays_read(values))
            real, _ = stack.enter_context(stand_ins(task, device, values, dtype))
            ear = stack.enter_context(_Ear(values))
            stack.enter_context(_compiled(real.model, ear))
            try:
                _iterate(real, device, ear, seed)
            except (RuntimeError, AssertionError) as error:
                if backend == "cuda" or "cuda" not in str(error).lower():
                    raise
                dynamo.reset()  # the program names the GPU
                stack.enter_context(GpuNamedMode())
            for _ in range(_ITERATIONS - 1):
                _iterate(real, device, ear, seed)
            return ear.heard, [_first_line(reason) for reason in counters["graph_break"]]
    finally:
        values.listening = listening
        dynamo.reset()
    raise AssertionError("nothing above keeps an exception to itself")


def _iterate(task: TrainingTask, device: torch.device, ear: _Ear, seed: int) -> None:
    random.seed(seed)
    torch.random.default_generator.manual_seed(seed)
    with contextlib.suppress(ImportError):
        importlib.import_module("numpy").random.seed(seed)
    ear.heard = _Heard(ear.heard.whole)
    with autocast_as_in(task.loop, task.model, device.type, task.autocast):
        task.loss_fn(task.model, task.batch)


def _calling(model: torch.nn.Module) -> Callable[..., Any]:
    """A frame of its own around a model, for Dynamo leaves out those of torch.nn's own modules."""

    def call(*arguments: Any, **named: Any) -> Any:
        return model._call_impl(*arguments, **named)

    return call


@contextlib.contextmanager
def _compiled(model: torch.nn.Module, ear: _Ear) -> Iterator[None]:
    """While inside, Dynamo's graphs are heard: of what the model's author compiled, or else of all of it."""
    backend = _Backend(ear)
    with contextlib.ExitStack() as stack:
        ear.heard.whole = not any(is_compiled(module) for module in model.modules())
        if ear.heard.whole:
            call: Any = torch.compile(_calling(model), backend=backend, dynamic=False)
        else:
            inductor: Any = importlib.import_module("torch._inductor.compile_fx")
            stack.callback(setattr, inductor, "compile_fx", inductor.compile_fx)
            inductor.compile_fx = backend
            call = model._compiled_call_impl or model._call_impl
        stack.callback(setattr, model, "_compiled_call_impl", model._compiled_call_impl)

        def heard(*arguments: Any, **named: Any) -> Any:
            ear.piece = _EAGER
            try:
                return call(*arguments, **named)
            finally:
                ear.piece = _OUTSIDE

        model._compiled_call_impl = heard
        yield


# -- which recorded ops these are --------------------------------------------------------------------------------------


def _base(name: str) -> str:
    return name.split(".")[1] if "." in name else name


def _first_line(reason: Any) -> str:
    return str(reason).strip().split("\n")[0]


def _placed(record: Json, heard: _Heard, reasons: Sequence[str]) -> Json:
    """Of every forward op the piece of the model that is compiled with it, as stretches, and where graphs broke."""
    numbers: Dict[int, int] = {}  # runs of graphs -> those that ran an op, in their order
    for piece in heard.pieces:
        if piece > _EAGER:
            numbers.setdefault(piece, len(numbers) + 1)
    traced: Dict[str, List[int]] = {"first": [], "end": [], "piece": []}
    breaks: List[Json] = []
    for first, end in _passes(record["ops"]["phase"]):
        pieces, places = _aligned(_keys(record, first, end), heard)
        for begin, behind, piece in _stretches_of(pieces):
            if piece > _EAGER:
                for column, number in zip(traced.values(), (first + begin, first + behind, numbers[piece])):
                    column.append(number)
        if not breaks:
            breaks = _breaks(record, first, pieces, places, heard, reasons)
    graphs = {heard.graphs[piece - 1] for piece in numbers}
    told: Json = {"graphs": len(graphs), "traced": traced, "breaks": breaks}
    if heard.masks and len(heard.masks) == _attention_calls(record):
        told["masks"] = [int(masked) for masked in heard.masks]
    return told


def _attention_calls(record: Json) -> int:
    """Of the first forward pass."""
    first, end = next(_passes(record["ops"]["phase"]), (0, 0))
    names = (record["op_names"][name] for name in record["ops"]["name"][first:end])
    return sum(name.startswith("forerun.attention.") or "scaled_dot_product" in name for name in names)


def _passes(phases: str) -> Iterator[Tuple[int, int]]:
    first = None
    for number, letter in enumerate(phases + "u"):
        if letter == "f" and first is None:
            first = number
        elif letter != "f" and first is not None:
            yield first, number
            first = None


def _keys(record: Json, first: int, end: int) -> List[Key]:
    ops, tensors = record["ops"], record["tensors"]
    shapes = [tuple(shape) for shape in record["shapes"]]
    return [
        (
            _base(record["op_names"][ops["name"][op]]),
            tuple(shapes[tensors["shape"][output]] for output in ops["outputs"][op]),
        )
        for op in range(first, end)
    ]


def _aligned(keys: Sequence[Key], heard: _Heard) -> Tuple[List[int], List[int]]:
    """The piece of each recorded op; and of each heard op, with one for the end, the recorded op that it comes to."""
    pieces: List[Optional[int]] = [None] * len(keys)
    places = [-1] * len(heard.keys) + [len(keys)]
    for match in difflib.SequenceMatcher(None, keys, heard.keys, autojunk=False).get_matching_blocks():
        for offset in range(match.size):
            pieces[match.a + offset] = heard.pieces[match.b + offset]
            places[match.b + offset] = match.a + offset
    for number in reversed(range(len(heard.keys))):
        if places[number] < 0:
            places[number] = places[number + 1]
    return _filled(keys, pieces), places


def _filled(keys: Sequence[Key], pieces: Sequence[Optional[int]]) -> List[int]:
    """Ops that were not heard go with those before them; casts, which serve what comes, with those behind."""
    behind: List[int] = []
    for piece in reversed(pieces):
        behind.append(piece if piece is not None else behind[-1] if behind else _OUTSIDE)
    behind.reverse()
    filled: List[int] = []
    for number, piece in enumerate(pieces):
        if piece is None:
            piece = behind[number] if not filled or keys[number][0] == "_to_copy" else filled[-1]
        filled.append(piece)
    return filled


def _breaks(
    record: Json,
    first: int,
    pieces: Sequence[int],
    places: Sequence[int],
    heard: _Heard,
    reasons: Sequence[str],
) -> List[Json]:
    """Where graphs broke off, and where calls were left alone, in the order of the ops."""
    found: List[Tuple[int, str, str]] = []
    for ended, reason in heard.ends:
        stack = getattr(reason, "user_stack", None) or []
        where = f"{pathlib.Path(stack[-1].filename).name}:{stack[-1].lineno}" if stack else ""
        found.append((places[ended], _why(_first_line(reason.reason), reasons), where))
    for begin, end, piece in _stretches_of(pieces):
        if heard.whole and piece == _EAGER and not any(begin <= place <= end for place, _, _ in found):
            found.append((begin, reasons[0] if reasons else "Dynamo does not trace what calls it", ""))
    inside = [(begin, end, piece) for begin, end, piece in _stretches_of(pieces) if piece > _EAGER]
    for (_, end, piece), (begin, _, following) in zip(inside, inside[1:]):
        if heard.whole and piece != following and not any(end <= place <= begin for place, _, _ in found):
            # A frame stays apart from its caller's though what broke in the first call does no more.
            unlike = list(dict.fromkeys(reasons))
            why = f" ({' or '.join(unlike)})" if 1 <= len(unlike) <= 2 else ""
            found.append((begin, f"its caller broke before{why}", ""))
    ops = record["ops"]
    rows = []
    for place, why, where in sorted(found):
        op = first + min(place, len(pieces) - 1)
        module = record["modules"][ops["module"][op]] if ops["module"][op] >= 0 else ""
        rows.append({"module": module, "op": record["op_names"][ops["name"][op]], "why": why, "where": where})
    return rows


def _why(reason: str, reasons: Sequence[str]) -> str:
    """Dynamo's reason without its own names for what it does about it."""
    if reason.startswith("generic_jump"):
        return "Data-dependent branching"
    if reason != "step_unsupported":
        return reason
    return next((other for other in reasons if other != "Data-dependent branching"), "Dynamo cannot trace it")


def _stretches_of(pieces: Sequence[int]) -> Iterator[Tuple[int, int, int]]:
    first = 0
    for piece, stretch in itertools.groupby(pieces):
        end = first + len(list(stretch))
        yield first, end, piece
        first = end
