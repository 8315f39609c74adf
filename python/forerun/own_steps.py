"""Backward passes and optimizer steps that the loss function runs itself: adversarial training, accumulation in a loop,
a whole training step.

``steps_followed`` follows them while an iteration is recorded, so that ops get their phase, and hands optimizers that
step to who records. Where the loss function steps the very optimizer that was given, it is taken for the whole step:
``StepsItself`` says so.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .host_values import HostValues
from .recorder import OpRecorder


class StepsItself(Exception):
    """The loss function steps the optimizer that was given."""


@contextlib.contextmanager
def steps_followed(
    recorder: OpRecorder, values: HostValues, on_step: Callable[[torch.optim.Optimizer], None]
) -> Iterator[None]:
    """While inside, the recorder's phase follows calls of backward and step; `on_step` is told who is to step."""
    backward = torch.autograd.backward
    passes: List[None] = []  # that run: reentrant checkpointing runs one within another
    listening: List[bool] = []

    def run_backward(*arguments: Any, **named: Any) -> Any:
        recorder.phase = "b"
        passes.append(None)
        try:
            return backward(*arguments, **named)
        finally:
            passes.pop()
            if not passes:
                recorder.phase = "u"  # until a module is called

    def before(optimizer: torch.optim.Optimizer, _arguments: Any, _named: Any) -> None:
        on_step(optimizer)
        recorder.phase = "u"
        listening.append(values.listening)
        values.listening = False  # what an optimizer reads is its own

    def after(_optimizer: torch.optim.Optimizer, _arguments: Any, _named: Any) -> None:
        recorder.phase = "b" if passes else "u"  # a hook of a gradient may step within the pass
        values.listening = listening.pop()

    hooks = [
        register_optimizer_step_pre_hook(before),
        register_optimizer_step_post_hook(after),
    ]
    torch.autograd.backward = run_backward
    try:
        yield
    finally:
        torch.autograd.backward = backward
        for hook in hooks:
            hook.remove()
