"""Replaces the tensors of a training task by fake ones on a device, and puts the originals back.

A fake tensor has type, shape, strides and a storage that is counted but never allocated. Sharing is kept: tied
parameters stay tied. Values of buffers and of the batch are told to who follows them.
"""
from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import Any, Callable, Dict, Iterator, List, MutableMapping, Optional, Tuple

import torch

from .generic_rnn import cudnn_order
from .host_values import CaptureError, HostValues, Origin
from .quantized import quantization_of, quantization_with, refuse_int8
from .training import TrainingTask


class StandIns:
    """Makes one stand-in for each tensor, under the fake mode that is active.

    :param dtype: what floating-point tensors become, as ``model.to(dtype)`` makes them; None: as they are
    """

    def __init__(self, device: torch.device, values: HostValues, dtype: Optional[torch.dtype] = None) -> None:
        self._device = device
        self._values = values
        self._dtype = dtype
        self._made: Dict[int, Any] = {}
        self._originals: List[Any] = []  # keeps ids from being reused

    def of(self, tensor: torch.Tensor) -> Any:
        if id(tensor) not in self._made:
            dtype = self._type_of(tensor)
            copy: Any = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=self._device)
            if isinstance(tensor, torch.nn.Parameter):
                copy = torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
            if quantization_of(tensor) is not None:
                copy.quant_state = quantization_with(quantization_of(tensor), self._as_it_is)
            self._keep(tensor, copy)
        return self._made[id(tensor)]

    def _keep(self, tensor: torch.Tensor, stand_in: torch.Tensor) -> None:
        _take_hooks(tensor, stand_in)
        self._made[id(tensor)] = stand_in
        self._originals.append(tensor)

    def has(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self._made

    def _as_it_is(self, tensor: torch.Tensor) -> Any:
        dtype, self._dtype = self._dtype, None
        try:
            return self.of(tensor)
        finally:
            self._dtype = dtype

    def known(self, tensor: torch.Tensor, origin: Optional[Origin] = None) -> Any:
        """The stand-in of a tensor whose value, where there is one, does not change with training."""
        stand_in = self.of(tensor)
        value = self._values.value_of(tensor)
        if value is not None:
            self._values.tell(stand_in, value[0], origin)
        return stand_in

    def _type_of(self, tensor: torch.Tensor) -> torch.dtype:
        return self._dtype if self._dtype is not None and tensor.is_floating_point() else tensor.dtype

    def flatten(self, weights: List[torch.nn.Parameter]) -> None:
        """Gives the weights of a recurrent layer stand-ins in one buffer, as they lie on a GPU."""
        if any(id(weight) in self._made for weight in weights) or len({weight.dtype for weight in weights}) != 1:
            return
        size = sum(weight.numel() for weight in weights)
        flat = torch.empty(size, dtype=self._type_of(weights[0]), device=self._device)
        offset = 0
        for weight in cudnn_order(weights):
            part = flat[offset : offset + weight.numel()].view(weight.shape)
            offset += weight.numel()
            self._keep(weight, torch.nn.Parameter(part, requires_grad=weight.requires_grad))

    def within(self, value: Any) -> Any:
        """The same batch of lists, tuples, mappings and dataclasses, with stand-ins for tensors."""
        if isinstance(value, torch.Tensor):
            return self.known(value, Origin.batch)
        if isinstance(value, dict):
            return {key: self.within(item) for key, item in value.items()}
        if isinstance(value, MutableMapping):
            replaced = copy.copy(value)  # a type of its own, with further methods
            replaced.update({key: self.within(item) for key, item in value.items()})
            return replaced
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            replaced = copy.copy(value)
            for field in dataclasses.fields(value):
                object.__setattr__(replaced, field.name, self.within(getattr(value, field.name)))
            return replaced
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.within(item) for item in value))
        if isinstance(value, (list, tuple)):
            return type(value)(self.within(item) for item in value)
        return value


def _take_hooks(tensor: Any, stand_in: torch.Tensor) -> None:
    """The hooks of a parameter's gradient run for its stand-in."""
    if not stand_in.requires_grad:
        return
    for hook in (tensor._backward_hooks or {}).values():
        stand_in.register_hook(hook)
    for hook in (getattr(tensor, "_post_accumulate_grad_hooks", None) or {}).values():
        stand_in.register_post_accumulate_grad_hook(_with_original(hook, tensor))


def _with_original(hook: Callable[[Any], None], tensor: Any) -> Callable[[Any], None]:
    """Calls a hook with the parameter that it knows, which has the gradient meanwhile."""

    def call(stand_in: Any) -> None:
        before, tensor.grad = tensor.grad, stand_in.grad
        try:
            hook(tensor)
            if tensor.grad is None:
                stand_in.grad = None
        finally:
            tensor.grad = before

    return call


@contextlib.contextmanager
def stand_ins(
    task: TrainingTask, device: torch.device, values: HostValues, dtype: Optional[torch.dtype] = None
) -> Iterator[Tuple[TrainingTask, Callable[[torch.optim.Optimizer], None]]]:
    """The task with stand-ins in the same modules and optimizer; both are themselves again on leaving.

    The function beside it gives further optimizers of the same parameters their stand-ins.
    """
    made = StandIns(device, values, dtype)
    with contextlib.ExitStack() as undo:
        for module in task.model.modules():
            refuse_int8(module)
            if isinstance(module, torch.nn.RNNBase):
                made.flatten([weight for weight in module._flat_weights if weight is not None])
            _replace(module._parameters, made.of, undo)
            _replace(module._buffers, made.known, undo)
            if isinstance(module, torch.nn.RNNBase):
                _replace_flat_weights(module, undo)
        _replace_in_optimizer(task.optimizer, made, undo)

        def adopt(optimizer: torch.optim.Optimizer) -> None:
            _replace_in_optimizer(optimizer, made, undo)

        yield dataclasses.replace(task, batch=made.within(task.batch)), adopt


def _replace(table: Dict[str, Any], stand_in: Callable[[torch.Tensor], Any], undo: contextlib.ExitStack) -> None:
    originals = dict(table)
    undo.callback(table.update, originals)
    table.update({name: stand_in(tensor) for name, tensor in originals.items() if tensor is not None})


def _replace_flat_weights(module: torch.nn.RNNBase, undo: contextlib.ExitStack) -> None:
    undo.callback(setattr, module, "_flat_weights", module._flat_weights)
    module._flat_weights = [getattr(module, name, None) for name in module._flat_weights_names]
    module.flatten_parameters()  # as moving a model to a GPU does


def _replace_in_optimizer(optimizer: torch.optim.Optimizer, made: StandIns, undo: contextlib.ExitStack) -> None:
    strangers = [p for group in optimizer.param_groups for p in group["params"] if not made.has(p)]
    if strangers:
        raise CaptureError(
            f"{type(optimizer).__name__} holds {len(strangers)} parameters that the model does not have, such as one "
            f"of shape {list(strangers[0].shape)}; make it of the parameters of the model that is recorded, which has "
            'all that is trained, such as torch.nn.ModuleDict({"model": ..., "head": ...})'
        )
    for group in optimizer.param_groups:
        undo.callback(group.__setitem__, "params", group["params"])
        group["params"] = [made.of(parameter) for parameter in group["params"]]
        for switch in ("foreach", "fused"):
            if switch in group:
                undo.callback(group.__setitem__, switch, group[switch])
    state = dict(optimizer.state)
    undo.callback(_restore, optimizer.state, state)
    optimizer.state.clear()


def _restore(table: Dict[Any, Any], originals: Dict[Any, Any]) -> None:
    table.clear()
    table.update(originals)
