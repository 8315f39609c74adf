"""Records the ops of one training iteration as PyTorch dispatches them.

``OpRecorder`` is a dispatch mode: every aten op below autograd passes through it, on real, fake or meta tensors
alike. It keeps names, phases, modules, operands, attributes and the links between forward and backward, and learns
from weak references when a storage dies. ``OpRecorder.columns()`` gives the fields of a ``run/2`` record
(docs/records.md) that describe the iteration.
"""
from __future__ import annotations

import itertools
import json
import weakref
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .host_values import CaptureError, HostValues
from .outsiders import Outsiders, with_stand_ins
from .quantized import quantization_parts
from .source_line import source_line
from .torch_version import installed

Json = Dict[str, Any]
RootKind = str  # "p" parameter, "b" buffer, "s" optimizer state, "i" input

# Arguments that say where a result lives, not what is computed.
_PLACEMENT = frozenset({"device", "layout", "out", "generator"})

# What a tensor made from numbers on the host passes through.
_TAKES_REAL = frozenset({torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default})

_DETACHES_TWICE = installed() < (2, 10)


class Interned:
    """Values numbered in order of first appearance."""

    def __init__(self) -> None:
        self._index: Dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self._index.setdefault(value, len(self._index))

    def values(self) -> List[Any]:
        return list(self._index)


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _plain(value: Any) -> Any:
    """An argument as JSON, or ``None`` for what has no such form."""
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, torch.dtype):
        return dtype_name(value)
    if isinstance(value, torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None


def _tensors(value: Any, found: List[torch.Tensor]) -> bool:
    """Appends the tensors in an argument or result; tells whether it is made of tensors (and so no attribute)."""
    if isinstance(value, torch.Tensor):
        found.append(value)
        return True
    if isinstance(value, (list, tuple)):
        any_tensor = False
        for item in value:
            any_tensor = _tensors(item, found) or any_tensor
        return any_tensor
    return False


class OpRecorder(TorchDispatchMode):
    """Records what is dispatched while it is entered and not paused.

    :param model: gives ops their module names
    :param mark: called with the number of each op; the op runs inside the context it returns (a profiler's mark)
    :param pretend_gpu: all tensors are stand-ins for GPU ones, but for those that ``on_host`` named and what is made
        from them alone
    :param values: what is known of tensors without data
    :param outsiders: stand-ins for tensors of neither model nor batch
    """

    def __init__(
        self,
        model: torch.nn.Module,
        mark: Optional[Callable[[int], ContextManager[Any]]] = None,
        pretend_gpu: bool = False,
        values: Optional[HostValues] = None,
        outsiders: Optional[Outsiders] = None,
    ) -> None:
        super().__init__()
        self.phase = "f"
        self.called: Set[str] = set()  # modules, by name
        self.outside_bytes = 0  # of what takes part and is of neither model nor batch
        self._model_names = {module: name for name, module in model.named_modules()}
        self._module_types = {name: type(module).__name__ for name, module in model.named_modules()}
        self._mark = mark
        self._pretend_gpu = pretend_gpu
        self._values = values
        self._outsiders = outsiders
        self._host: Set[int] = set()
        self._names, self._modules, self._dtypes, self._shapes = Interned(), Interned(), Interned(), Interned()
        self._attributes, self._nodes, self._tensors = Interned(), Interned(), Interned()
        self._modules("")
        self._module_stack: List[int] = []
        self._module_of_sequence: Dict[int, int] = {}
        self._argument_names: Dict[Any, List[str]] = {}
        self._ops: Dict[str, List[Any]] = {
            key: [] for key in ("name", "phase", "module", "inputs", "outputs", "attributes", "sequence", "node")
        }
        self._storage_ids: Dict[int, int] = {}
        self._storage_refs: List[Any] = []
        self._storage_bytes: List[int] = []
        self._frees: List[Tuple[int, int]] = []
        self._roots: List[Tuple[int, RootKind, str]] = []
        self._root_ids: Set[int] = set()
        self._read: Optional[Set[int]] = None
        self._hooks: List[Any] = []
        self._written: List[int] = []  # what the last op but views wrote into, where it works in place
        # Views of one another, by the last ops: whether each is of a write into a view, and its inputs and outputs.
        self._views: List[Tuple[bool, List[int], List[int]]] = []
        self._running = 0  # 1 while an op runs: what dies then (set_ lets go of its old storage) dies behind it
        self._detached: Optional[Any] = None  # a weak reference to what the last op gave, if it was a detach
        self._closed = False

    # -- what exists before the iteration ------------------------------------------------------------------------------

    def root(self, tensor: torch.Tensor, kind: RootKind, name: str, on_host: bool = False) -> None:
        storage = self._storage(tensor, on_host)
        if storage not in self._root_ids:
            self._root_ids.add(storage)
            self._roots.append((storage, kind, name))

    def root_model(self, model: torch.nn.Module, *optimizers: torch.optim.Optimizer) -> None:
        names: Dict[torch.Tensor, str] = {}
        for name, parameter in model.named_parameters():
            names[parameter] = name
            self.root(parameter, "p", name)
            for part, tensor in quantization_parts(parameter):
                self.root(tensor, "b", f"{name}.{part}")
        for name, buffer in model.named_buffers():
            self.root(buffer, "b", name)
        for optimizer in optimizers:
            for parameter, state in optimizer.state.items():
                for key, value in state.items():
                    if isinstance(value, torch.Tensor):
                        host = key == "step" and self._pretend_gpu and not _steps_on_device(optimizer)
                        self.root(value, "s", f"{names.get(parameter, '')}.{key}", on_host=host)

    def root_scaler(self, scaler: Optional[torch.amp.GradScaler]) -> None:
        """What a scaler of the loss keeps between iterations."""
        for name in ("_scale", "_growth_tracker"):
            tensor = getattr(scaler, name, None)
            if isinstance(tensor, torch.Tensor):
                self.root(tensor, "s", f"scaler.{name[1:]}")

    # -- the iteration -------------------------------------------------------------------------------------------------

    def __enter__(self) -> "OpRecorder":
        self._hooks = [
            torch.nn.modules.module.register_module_forward_pre_hook(self._enter_module),
            torch.nn.modules.module.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def _enter_module(self, module: torch.nn.Module, _inputs: Any) -> None:
        name = self._model_names.get(module)
        if name is not None:
            self.called.add(name)
        if self.phase == "u":
            self.phase = "f"  # a step lies before it
        self._module_stack.append(self._modules(name) if name is not None else (self._module_stack or [0])[-1])

    def _leave_module(self, _module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        if self._module_stack:
            self._module_stack.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Optional[Mapping[str, Any]] = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace in ("profiler", "prim"):
            return func(*args, **kwargs)
        number = len(self._ops["name"])
        inputs: List[torch.Tensor] = []
        attributes = self._arguments(func, args, kwargs, inputs)
        if self._outsiders is not None and any(map(self._outsiders.holds, inputs)) and func not in _TAKES_REAL:
            args = with_stand_ins(self._outsiders, args, self._root_outsider)
            kwargs = dict(with_stand_ins(self._outsiders, kwargs, self._root_outsider))
            inputs.clear()
            self._arguments(func, args, kwargs, inputs)
        lifted = func is torch.ops.aten.lift_fresh.default  # a tensor made from numbers on the host
        input_ids = [self._tensor(tensor, lifted) for tensor in inputs]
        self._running = 1
        try:
            result = self._run(number, func, args, kwargs)
        finally:
            self._running = 0
        outputs: List[torch.Tensor] = []
        _tensors(result, outputs)
        output_ids = [self._tensor(tensor) for tensor in outputs]
        if self._is_second_detach(func, args, result):
            return result
        if self._pretend_gpu:
            self._follow_host(inputs, outputs, func)
            copied = func.is_view and self._in_copied_slice()
            follows = func.is_view and self._follow_views(copied, input_ids, output_ids)
            if func.is_view and output_ids == self._written and output_ids != input_ids:
                self._take_back(len(self._views) - 1)
                return result  # autograd replays the views that were written into; for tensors with data it does not
            if copied:
                if follows:
                    self._take_back(1)
                    input_ids = self._views[0][1]
                func = torch.ops.aten.as_strided.default
                attributes = self._strides_of(outputs[0])
        if not func.is_view:
            self._views.clear()
            self._written = output_ids if func._schema.is_mutable else []
        self._append(func, input_ids, output_ids, attributes)
        return result

    def _follow_views(self, copied: bool, inputs: List[int], outputs: List[int]) -> bool:
        """Keeps the views of one another that the last ops took; tells whether this one is of the last."""
        follows = bool(self._views) and (self._views[-1][0], self._views[-1][2]) == (copied, inputs)
        if not follows:
            self._views.clear()
        self._views.append((copied, inputs, outputs))
        return follows

    def _take_back(self, count: int) -> None:
        """The last ops were none."""
        for column in self._ops.values():
            del column[len(column) - count :]
        last = len(self._ops["name"])
        self._frees = [(min(op, last), storage) for op, storage in self._frees]

    def _is_second_detach(self, func: Any, args: Any, result: Any) -> bool:
        """Before PyTorch 2.10 a mode sees every detach of the program, and of the engine, twice."""
        if not _DETACHES_TWICE or func is not torch.ops.aten.detach.default:
            self._detached = None
            return False
        second = self._detached is not None and self._detached() is args[0]
        self._detached = None if second else weakref.ref(result)
        return second

    def _root_outsider(self, stand_in: torch.Tensor) -> None:
        known = len(self._roots)
        self.root(stand_in, "b", "outside the model")
        if len(self._roots) > known:
            self.outside_bytes += stand_in.untyped_storage().nbytes()

    @staticmethod
    def _in_copied_slice() -> bool:
        """Whether the gradient of a write into a view is being made, which finds its part by its strides."""
        node = torch._C._current_autograd_node()
        return node is not None and node.name() == "torch::autograd::CopySlices"

    @staticmethod
    def _strides_of(part: torch.Tensor) -> str:
        described = {"size": list(part.shape), "stride": list(part.stride()), "storage_offset": part.storage_offset()}
        return json.dumps(described, separators=(",", ":"))

    def _run(self, number: int, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        if self._mark is not None:
            with self._mark(number):
                return func(*args, **kwargs)
        if self._values is not None:
            return self._values.run(func, args, kwargs, lambda: func(*args, **kwargs))
        return func(*args, **kwargs)

    def _append(self, func: Any, inputs: List[int], outputs: List[int], attributes: str) -> None:
        node = torch._C._current_autograd_node()
        if node is None or self._module_stack:  # within a module also where checkpointing runs it again
            sequence, node_index = torch.autograd._get_sequence_nr() - 1, -1
            module = self._module_stack[-1] if self._module_stack else 0
            if self.phase != "u":
                self._module_of_sequence.setdefault(sequence, module)
        else:
            sequence, node_index = node._sequence_nr(), self._nodes(node.name())
            module = self._module_of_sequence.get(sequence, 0)
        ops = self._ops
        ops["name"].append(self._names(func))
        ops["phase"].append(self.phase)
        ops["module"].append(module)
        ops["inputs"].append(inputs)
        ops["outputs"].append(outputs)
        ops["attributes"].append(self._attributes(attributes))
        ops["sequence"].append(sequence if sequence < 2**32 else -1)
        ops["node"].append(node_index)

    def _arguments(self, func: Any, args: Any, kwargs: Mapping[str, Any], inputs: List[torch.Tensor]) -> str:
        """Collects the tensors of a call and gives the rest, by the names of its schema, as JSON."""
        names = self._argument_names.get(func)
        if names is None:
            names = self._argument_names[func] = [argument.name for argument in func._schema.arguments]
        attributes: Json = {}
        for name, value in itertools.chain(zip(names, args), kwargs.items()):
            if value is None or _tensors(value, inputs) or name in _PLACEMENT:
                continue
            plain = _plain(value)
            if plain is not None:
                attributes[name] = plain
        return json.dumps(attributes, separators=(",", ":"))

    def _tensor(self, tensor: torch.Tensor, on_host: bool = False) -> int:
        strides = -1 if tensor.is_contiguous() else self._shapes(tensor.stride())
        return self._tensors(
            (
                self._storage(tensor, on_host),
                self._dtypes(tensor.dtype),
                self._shapes(tuple(tensor.shape)),
                strides,
                tensor.storage_offset(),
            )
        )

    def _storage(self, tensor: torch.Tensor, on_host: bool = False) -> int:
        if tensor.layout is not torch.strided:
            raise CaptureError(
                f"{source_line()}: a sparse tensor, of whose size only a real run tells; record a variant of the model "
                "with dense ones (sparse=False of an embedding)"
            )
        storage = tensor.untyped_storage()
        address = storage._cdata
        number = self._storage_ids.get(address)
        if number is None:
            number = len(self._storage_refs)
            self._storage_ids[address] = number
            self._storage_bytes.append(storage.nbytes())
            if on_host if self._pretend_gpu else tensor.device.type == "cpu":
                self._host.add(number)
            self._storage_refs.append(weakref.ref(storage, self._death_of(address, number)))
        return number

    def _death_of(self, address: int, number: int) -> Callable[[Any], None]:
        def died(_: Any) -> None:
            if not self._closed:
                self._storage_ids.pop(address, None)
                self._frees.append((len(self._ops["name"]) + self._running, number))

        return died

    def _follow_host(self, inputs: List[torch.Tensor], outputs: List[torch.Tensor], func: Any) -> None:
        if func is torch.ops.aten._to_copy.default or not inputs:
            return
        if all(self._storage(tensor) in self._host for tensor in inputs):
            self._host.update(self._storage(tensor) for tensor in outputs)

    # -- the result ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The iteration is over: what dies from now on belongs to its end."""
        self._closed = True
        phases = self._ops["phase"]
        passes = [number for number, phase in enumerate(phases) if phase != "u"]
        if passes:  # steps of the loss function's own lie between passes; only what is behind them is the update
            first, last = passes[0], passes[-1]
            phases[:first] = ["f"] * first
            phases[first:last] = ["b" if phase == "u" else phase for phase in phases[first:last]]

    def outline(self) -> List[Tuple[str, str, Tuple[Any, ...]]]:
        """Name, phase and results' shapes of each op: what two iterations are compared by."""
        extents = self._shapes.values()
        shapes = [extents[tensor[2]] for tensor in self._tensors.values()]
        rows = zip(self._ops["name"], self._ops["phase"], self._ops["outputs"])
        names = [str(func) for func in self._names.values()]
        return [(names[name], phase, tuple(shapes[tensor] for tensor in outputs)) for name, phase, outputs in rows]

    def pass_ops(self) -> int:
        """How many ops the forward and backward passes have."""
        return sum(phase != "u" for phase in self._ops["phase"])

    def has_grouped_products(self) -> bool:
        return any(str(func).startswith("aten._grouped_mm") for func in self._names.values())

    def takes_part(self, tensor: torch.Tensor) -> bool:
        """Whether a forward op reads the storage of a tensor that is still there."""
        if self._read is None:
            storages = [tensor[0] for tensor in self._tensors.values()]
            rows = zip(self._ops["phase"], self._ops["inputs"])
            self._read = {storages[number] for phase, inputs in rows if phase == "f" for number in inputs}
        return self._storage_ids.get(tensor.untyped_storage()._cdata) in self._read

    def columns(self) -> Json:
        """The fields of a run/2 record that describe the iteration."""
        ops: Json = dict(self._ops)
        ops["phase"] = "".join(self._ops["phase"])
        tensors = self._tensors.values()
        return {
            "op_names": [str(func) for func in self._names.values()],
            "modules": self._modules.values(),
            "module_types": self._module_types,
            "dtypes": [dtype_name(dtype) for dtype in self._dtypes.values()],
            "shapes": [list(shape) for shape in self._shapes.values()],
            "attributes": [json.loads(text) for text in self._attributes.values()],
            "nodes": self._nodes.values(),
            "tensors": {
                key: [tensor[i] for tensor in tensors]
                for i, key in enumerate(("storage", "dtype", "shape", "strides", "offset"))
            },
            "ops": ops,
            "storages": {"bytes": self._storage_bytes, "host": sorted(self._host)},
            "frees": {"op": [op for op, _ in self._frees], "storage": [storage for _, storage in self._frees]},
            "roots": {
                "storage": [root[0] for root in self._roots],
                "kind": "".join(root[1] for root in self._roots),
                "name": [root[2] for root in self._roots],
            },
        }


def _steps_on_device(optimizer: torch.optim.Optimizer) -> bool:
    return any(group.get("capturable") or group.get("fused") for group in optimizer.param_groups)
