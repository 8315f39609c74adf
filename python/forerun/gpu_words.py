"""Programs that name the GPU, recorded where there is none: ``torch.autocast("cuda")``, ``.cuda()``, ``device="cuda"``.

PyTorch without a GPU switches such an autocast off with a mere warning, which would leave half precision out of the
record. While inside ``autocast_for_gpu``, autocast of CUDA is that of the tensors that stand in for CUDA's. A context
that was made before, and is off, is told (``notes``), as is a GradScaler that is off.
"""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, Optional

import torch
from torch.overrides import TorchFunctionMode

from .source_line import source_line


class GpuWords:
    """What the program said of half precision."""

    def __init__(self) -> None:
        self.notes: Dict[str, None] = {}
        self.autocast: Optional[torch.dtype] = None  # that the program entered itself

    def note(self, text: str) -> None:
        self.notes[text] = None


@contextlib.contextmanager
def autocast_for_gpu(words: GpuWords) -> Iterator[None]:
    autocast, scaler = torch.amp.autocast_mode.autocast, torch.amp.grad_scaler.GradScaler
    init, enter, scale = autocast.__init__, autocast.__enter__, scaler.scale
    is_enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype

    def new_init(
        self: Any,
        device_type: str,
        dtype: Optional[torch.dtype] = None,
        enabled: bool = True,
        cache_enabled: Optional[bool] = None,
    ) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or dtype_of("cuda")
        init(self, device_type, dtype, enabled, cache_enabled)
        self._forerun = True

    def new_enter(self: Any) -> Any:
        if self.device == "cuda" and not self._enabled and not hasattr(self, "_forerun"):
            words.note(
                f"{source_line()} enters an autocast of CUDA that is off, as it is where one is made without a GPU, "
                "and what is recorded runs without it; make it where it is entered, or give precision"
            )
        if self._enabled and self.device == "cpu":
            words.autocast = self.fast_dtype
        return enter(self)

    def new_scale(self: Any, outputs: Any) -> Any:
        if not self._enabled:
            words.note(
                f"{source_line()} scales the loss by a GradScaler that is off, as it is where one is made without a "
                "GPU, and what is recorded runs without it; leave scaling to precision amp_fp16"
            )
        return scale(self, outputs)

    autocast.__init__, autocast.__enter__, scaler.scale = new_init, new_enter, new_scale
    torch.is_autocast_enabled = lambda device_type="cpu": is_enabled(_stands_for(device_type))
    torch.get_autocast_dtype = lambda device_type: dtype_of(_stands_for(device_type))
    try:
        yield
    finally:
        autocast.__init__, autocast.__enter__, scaler.scale = init, enter, scale
        torch.is_autocast_enabled, torch.get_autocast_dtype = is_enabled, dtype_of


def _stands_for(device_type: str) -> str:
    return "cpu" if device_type == "cuda" else device_type


class GpuNamedMode(TorchFunctionMode):
    """Tensors that the program puts on the GPU stay where the stand-ins are."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        named = {key: _off_gpu(value) for key, value in (kwargs or {}).items()}
        return func(*map(_off_gpu, args), **named)


def _off_gpu(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.partition(":")[0] == "cuda" else value
