"""How an iteration is trained, in the words that the program uses: precision, checkpointing, clipping.

    --precision   fp32      as PyTorch comes
                  tf32      matrix products too
                  amp_bf16  torch.autocast in bfloat16
                  amp_fp16  torch.autocast in float16, the loss scaled by a GradScaler
                  bf16      parameters, buffers and inputs in bfloat16, no autocast; fp16 likewise
    --checkpoint  none      every activation is kept
                  block     each block is computed again in the backward pass (gradient_checkpointing_enable)
    --loop        plain, trainer, lightning or accelerate (training_loop.py)
"""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Iterator, Optional, Union

import torch

from .records import PRECISIONS
from .training_loop import LOOPS, clip_norm

CHECKPOINTS = ("none", "block")
_AUTOCAST = {"bf16": "amp_bf16", "bfloat16": "amp_bf16", "fp16": "amp_fp16", "float16": "amp_fp16"}
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
AUTOCAST_NAMES = {dtype: f"amp_{name}" for name, dtype in _TYPES.items()}  # of precisions


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Of one capture; checked by `run_options`."""

    precision: str
    checkpoint: Optional[str] = None  # None: as the model is
    accumulate: int = 1
    clip_grad: Optional[float] = None
    loop: str = "plain"
    as_built: bool = False  # tensors keep their types, which need not be one: adapters in float32 beside bfloat16

    @property
    def autocast(self) -> Optional[torch.dtype]:
        return _TYPES[self.precision[4:]] if self.precision.startswith("amp_") else None

    @property
    def dtype(self) -> Optional[torch.dtype]:
        """What floating-point tensors are turned into."""
        return None if self.as_built else _TYPES.get(self.precision)

    def scaler(self, device_type: str) -> Optional[torch.amp.GradScaler]:
        return torch.amp.GradScaler(device_type) if self.precision == "amp_fp16" else None


def run_options(
    model: torch.nn.Module,
    precision: Optional[str],
    autocast: Union[None, str, torch.dtype],
    checkpoint: Optional[str],
    accumulate: int,
    clip_grad: Optional[float],
    loop: Optional[str] = None,
) -> RunOptions:
    """Raises ValueError for what is unknown or does not go together."""
    if accumulate < 1:
        raise ValueError(f"accumulate is {accumulate}; it counts micro-batches, so 1 or more")
    if clip_grad is not None and not clip_grad >= 0:
        raise ValueError(f"clip_grad is {clip_grad}; it is the gradients' largest norm, so above 0, or 0 for none")
    loop = loop or "plain"
    if loop not in LOOPS:
        raise ValueError(f'loop is "{loop}"; known: {", ".join(LOOPS)}')
    if checkpoint not in (None, *CHECKPOINTS):
        raise ValueError(f'checkpoint is "{checkpoint}"; known: {", ".join(CHECKPOINTS)}')
    if checkpoint == "block" and not _can_checkpoint(model):
        raise ValueError(
            f"checkpoint is block, but {type(model).__name__} has no gradient_checkpointing_enable(); call "
            "torch.utils.checkpoint.checkpoint around its blocks yourself and record it so"
        )
    own = _precision(model, precision, autocast)
    as_built = precision is None or (own == _own_precision(model) and _has_mixed_types(model))
    return RunOptions(own, checkpoint, accumulate, clip_norm(loop, clip_grad), loop, as_built)


def _precision(model: torch.nn.Module, precision: Optional[str], autocast: Union[None, str, torch.dtype]) -> str:
    if autocast is not None:
        name = str(autocast).replace("torch.", "")
        if name not in _AUTOCAST:
            raise ValueError(f'autocast is "{name}"; known: {", ".join(_AUTOCAST)}')
        if precision not in (None, _AUTOCAST[name]):
            raise ValueError(f'precision "{precision}" and autocast "{name}" contradict each other; give one of them')
        return _AUTOCAST[name]
    own = _own_precision(model)
    if precision is None:
        return own
    if precision not in PRECISIONS:
        raise ValueError(f'precision is "{precision}"; known: {", ".join(PRECISIONS)}')
    if precision in ("fp32", "tf32") and own in _TYPES:
        raise ValueError(f"precision is {precision}, but most parameters are in {own}; build the model in float32")
    return precision


def _own_precision(model: torch.nn.Module) -> str:
    """Of the model as it was built: the type of most of its parameters."""
    sizes = {dtype: 0 for dtype in (torch.float32, *_TYPES.values())}
    for parameter in model.parameters():
        if parameter.dtype in sizes:
            sizes[parameter.dtype] += parameter.numel()
    most = max(sizes, key=lambda dtype: sizes[dtype])
    for name, dtype in _TYPES.items():
        if most is dtype:
            return name
    return "fp32" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def _has_mixed_types(model: torch.nn.Module) -> bool:
    return len({parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}) > 1


def _can_checkpoint(model: torch.nn.Module) -> bool:
    if not hasattr(model, "gradient_checkpointing_enable"):
        return False
    return bool(getattr(model, "supports_gradient_checkpointing", True))


def is_checkpointing(model: torch.nn.Module) -> bool:
    return any(bool(getattr(module, "gradient_checkpointing", False)) for module in model.modules())


@contextlib.contextmanager
def checkpointing(model: Any, checkpoint: Optional[str]) -> Iterator[None]:
    """While inside, the model keeps its activations or computes them again, as asked."""
    before = is_checkpointing(model)
    wanted = before if checkpoint is None else checkpoint == "block"
    if wanted == before:
        yield
        return
    (model.gradient_checkpointing_enable if wanted else model.gradient_checkpointing_disable)()
    try:
        yield
    finally:
        (model.gradient_checkpointing_enable if before else model.gradient_checkpointing_disable)()
