"""Who runs the iterations: a loop written by hand, or a library's.

What a library's loop does differently is told in docs/loops.md. Here is what changes the ops of an iteration; where the
host waits, how long gradients live and what the loop itself takes, `forerun` knows from the record's ``run.loop``.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping, Optional

import torch

LOOPS = ("plain", "trainer", "lightning", "accelerate")
_WRAPS_FORWARD = ("trainer", "accelerate")
_CLIPS = {"trainer": 1.0}  # TrainingArguments.max_grad_norm
_HALF = (torch.float16, torch.bfloat16)


def clip_norm(loop: str, asked: Optional[float]) -> Optional[float]:
    """To which norm gradients are clipped, where the user says nothing too; None: they are not. 0 asks for none."""
    return (_CLIPS.get(loop) if asked is None else asked) or None


@contextlib.contextmanager
def autocast_as_in(
    loop: str, model: torch.nn.Module, device_type: str, dtype: Optional[torch.dtype]
) -> Iterator[None]:
    """While inside, autocast is where the loop has it: around all, or around the model's forward pass alone, which then
    hands out its results in float32."""
    if dtype is None:
        yield
        return
    if loop not in _WRAPS_FORWARD:
        with torch.autocast(device_type, dtype):
            yield
        return
    forward, own = model.forward, "forward" in vars(model)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        with torch.autocast(device_type, dtype):
            result = forward(*arguments, **named)
        return _in_float32(result)

    model.forward = wrapped
    try:
        yield
    finally:
        if own:
            model.forward = forward
        else:
            del model.forward


def _in_float32(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in _HALF else value
    if isinstance(value, (list, tuple)):
        widened = [_in_float32(item) for item in value]
        return type(value)(*widened) if hasattr(value, "_fields") else type(value)(widened)
    if isinstance(value, Mapping):
        return type(value)({key: _in_float32(item) for key, item in value.items()})  # type: ignore[call-arg]
    return value
