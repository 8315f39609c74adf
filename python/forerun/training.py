"""One training iteration, the same for a capture and for a measurement.

    zero_grad, then for each micro-batch: forward and loss, backward; then clipping, and the optimizer's step
"""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional

import torch

from .training_loop import autocast_as_in

# Gives the loss, or a tuple that begins with it. The rest of the tuple is what the loop still holds during backward
# (most loops keep the model's output in a variable).
LossFunction = Callable[[torch.nn.Module, Any], Any]


def default_loss(model: torch.nn.Module, batch: Any) -> Any:
    """A mapping is a model's keyword arguments and its output has a loss; otherwise inputs and class labels, cross
    entropy."""
    if isinstance(batch, Mapping):
        return model(**batch).loss
    *inputs, targets = batch
    output = model(*inputs)
    classes = output.shape[-1] if output.dim() == targets.dim() + 1 and output.dim() == 3 else None
    if classes is not None:  # tokens: a class at each position
        return torch.nn.functional.cross_entropy(output.reshape(-1, classes), targets.reshape(-1)), output
    return torch.nn.functional.cross_entropy(output, targets), output


@dataclasses.dataclass
class TrainingTask:
    """What is trained, and how."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    batch: Any
    loss_fn: LossFunction = default_loss
    autocast: Optional[torch.dtype] = None
    accumulate: int = 1
    clip_grad: Optional[float] = None  # the largest norm of all gradients together
    scaler: Optional[torch.amp.GradScaler] = None  # of the loss, for float16
    average: Optional[torch.optim.swa_utils.AveragedModel] = None  # of the weights, updated with each step
    loop: str = "plain"  # training_loop.py
    loss_steps: bool = False  # the loss function runs the backward pass and the optimizer's step itself

    def iterate(self, device_type: str, on_phase: Optional[Callable[[str], None]] = None) -> None:
        """One iteration; `on_phase` hears "u", "f", "b", "u" as the phases begin."""
        begin = on_phase or (lambda letter: None)
        if self.loss_steps:
            begin("f")
            self.loss_fn(self.model, self.batch)
            begin("u")
            return
        begin("u")
        self.optimizer.zero_grad()
        for _ in range(self.accumulate):
            begin("f")
            with autocast_as_in(self.loop, self.model, device_type, self.autocast):
                result = self.loss_fn(self.model, self.batch)
            loss = result[0] if isinstance(result, tuple) else result
            if self.accumulate > 1:
                loss = loss / self.accumulate
            if self.scaler is not None:
                loss = self.scaler.scale(loss)
            begin("b")
            loss.backward()
        begin("u")
        self._update()

    def _update(self) -> None:
        if self.clip_grad is not None:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_grad, foreach=True)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.average is not None:
            self.average.update_parameters(self.model)
