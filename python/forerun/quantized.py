"""Weights that bitsandbytes keeps in 4 bits, as a capture sees them: parameters of packed bytes with a quantization
state beside them, whose tensors are no buffers of any module.

Layers of 8 bits are refused: what they run on a GPU is not what they run without one, and depends on values.
"""
from __future__ import annotations

import copy
from typing import Any, Callable, Iterator, Optional, Tuple

import torch

from .host_values import CaptureError

_PARTS = (("absmax", "absmax"), ("code", "quant_map"), ("offset", "nested_offset"))
_NESTED_PARTS = (("absmax", "nested_absmax"), ("code", "nested_quant_map"))


def quantization_of(tensor: torch.Tensor) -> Any:
    """The QuantState of a weight of 4 bits; None of others."""
    return getattr(tensor, "quant_state", None)


def quantization_with(state: Any, stand_in: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A copy of the state with other tensors."""
    if getattr(state, "packing_format_for_cpu", False):
        raise CaptureError(
            "a weight of 4 bits is packed for inference on this CPU; build the model anew and capture it in training "
            "mode"
        )
    made = copy.copy(state)
    for name, _ in _PARTS:
        tensor = getattr(state, name, None)
        if isinstance(tensor, torch.Tensor):
            setattr(made, name, stand_in(tensor))
    if getattr(state, "state2", None) is not None:
        made.state2 = quantization_with(state.state2, stand_in)
    return made


def quantization_parts(parameter: torch.Tensor) -> Iterator[Tuple[str, torch.Tensor]]:
    """What lies in memory beside a weight of 4 bits, by name."""
    state = quantization_of(parameter)
    for owner, names in ((state, _PARTS), (getattr(state, "state2", None), _NESTED_PARTS)):
        for name, part in names:
            tensor = getattr(owner, name, None)
            if isinstance(tensor, torch.Tensor):
                yield part, tensor


def quantization_text(model: torch.nn.Module) -> Optional[str]:
    """As `forerun predict --quantize` has it: "nf4", "fp4:double"; None where no weight is quantized."""
    states = [quantization_of(parameter) for parameter in model.parameters()]
    state = next((state for state in states if state is not None), None)
    if state is None:
        return None
    return f"{state.quant_type}:double" if state.state2 is not None else str(state.quant_type)


def refuse_int8(module: torch.nn.Module) -> None:
    if type(module).__name__ == "Linear8bitLt":
        raise CaptureError(
            "layers of 8 bits (Linear8bitLt of bitsandbytes) cannot be captured: on a GPU they run other ops than "
            "here, and values decide which; ask for the model by name or config.json: "
            "`forerun predict MODEL --quantize int8 --lora RANK`"
        )
