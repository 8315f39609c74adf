"""Tensors that take part in an iteration and belong neither to the model nor to the batch: a teacher's weights,
averages kept by hand, tables in a closure.

Each gets a stand-in when an op first meets it, so that it is counted once, and so that what the program writes there
stays without effect. What is trained must be in the model: a gradient for an outsider is refused.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .host_values import CaptureError, HostValues
from .source_line import source_line


class Outsiders:
    """Stand-ins by storage; views of one storage are views of one stand-in.

    :param mode: the FakeTensorMode whose tensors are no outsiders
    :param device: where stand-ins lie if it is the CPU; otherwise they lie where the tensors do
    """

    def __init__(self, mode: Any, device: torch.device, values: HostValues) -> None:
        self.lines: Dict[str, None] = {}  # that met one first
        self._mode = mode
        self._device = device
        self._values = values
        self._flat: Dict[int, Tuple[Tensor, Tensor]] = {}  # the first tensor of a storage, and the storage's stand-in
        self._trained: List[Tuple[Tensor, Any, str]] = []  # leaves, their gradients before, and lines

    def holds(self, tensor: Tensor) -> bool:
        return not isinstance(tensor, FakeTensor) or tensor.fake_mode is not self._mode

    def stand_in(self, tensor: Tensor) -> Tensor:
        """Of an outsider; call it below all modes but the fake one."""
        if tensor.layout is not torch.strided or tensor.device.type == "meta":
            return tensor
        flat = self._flat_of(tensor)
        if flat.dtype is not tensor.dtype:
            flat = flat.view(tensor.dtype)
        return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _flat_of(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._flat:
            line = source_line()
            self.lines[line] = None
            size = storage.nbytes() // tensor.dtype.itemsize
            device = self._device if self._device.type == "cpu" else tensor.device
            flat = torch.empty(size, dtype=tensor.dtype, device=device)
            self._flat[storage._cdata] = tensor, flat
            with _disable_current_modes():
                known = self._values.value_of(tensor.detach().as_strided((size,), (1,), 0))
            if known is not None:
                self._values.tell(flat, known[0])
        if tensor.requires_grad and tensor.is_leaf and not any(tensor is leaf for leaf, _, _ in self._trained):
            self._trained.append((tensor, tensor.grad, source_line()))
        return self._flat[storage._cdata][1]

    def take_gradients(self) -> None:
        """No outsider keeps a gradient of this iteration; raises CaptureError where one got one."""
        given: List[Tuple[Tensor, str]] = []
        for leaf, before, line in self._trained:
            if leaf.grad is not before:
                leaf.grad = before
                given.append((leaf, line))
        if given:
            leaf, line = given[0]
            raise CaptureError(
                f"{line}: a parameter of shape {list(leaf.shape)} that is not in the model gets a gradient; give all "
                'that is trained as one model, such as torch.nn.ModuleDict({"model": ..., "head": ...})'
            )


def with_stand_ins(outsiders: Outsiders, value: Any, made: Callable[[Tensor], None]) -> Any:
    """The arguments of a call with stand-ins in the place of outsiders, each of which `made` is told."""
    if isinstance(value, Tensor):
        if not outsiders.holds(value):
            return value
        stand_in = outsiders.stand_in(value)
        made(stand_in)
        return stand_in
    if isinstance(value, (list, tuple)):
        return type(value)([with_stand_ins(outsiders, item, made) for item in value])
    if isinstance(value, dict):
        return {key: with_stand_ins(outsiders, item, made) for key, item in value.items()}
    return value
