"""Who runs the iterations: a loop written by hand, or a library's.

What a library's loop does differently is told in docs/loops.md. Here is what changes the ops of an iteration; where the
host waits, how long gradients live and what the loop itself takes, `forerun` knows from the record's ``run.loop``.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping, Optional

import torch

LOOPS = ("plain", "trainer", "lightning", "accelerate")
_WIDENS = ("trainer", "accelerate")
_CLIPS = {"trainer": 1.0}  # TrainingArguments.max_grad_norm
_HALF = (torch.float16, torch.bfloat16)


def clip_norm(loop: str, asked: Optional[float]) -> Optional[float]:
    """To which norm gradients are clipped, where the user says nothing too; None: they are not. 0 asks for none."""
    return (_CLIPS.get(loop) if asked is None else asked) or None


@contextlib.contextmanager
def results_as_in(loop: str, model: torch.nn.Module, autocast: Optional[torch.dtype]) -> Iterator[None]:
    """While inside, the model hands out its results as the loop's wrapper around it does."""
    if loop not in _WIDENS or autocast is None:
        yield
        return
    forward, own = model.forward, "forward" in vars(model)

    def widened(*arguments: Any, **named: Any) -> Any:
        return _in_float32(forward(*arguments, **named))

    model.forward = widened
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
