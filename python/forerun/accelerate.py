"""Forecasts of loops that Accelerate prepares, and the largest batch for one without trying it.

    import forerun as fr

    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with fr.accelerate.Forecast(accelerator, model, optimizer, batch, fail_if_oom=True):
        for batch in loader:
            ...                                           # your loop

Mixed precision, accumulation and sharding are read off the Accelerator; `loss_fn(model, batch)` gives the loss where
the model does not.
"""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

try:
    import accelerate  # noqa: F401
except ImportError as missing:
    raise ImportError(f"forerun.accelerate needs Accelerate ({missing}): pip install accelerate") from missing

import torch

from .errors import InputError
from .forecaster import Forecaster
from .framework_step import COMPILED, FrameworkStep, Margin, data_parallel, largest_batch, run_gpu
from .training import LossFunction, default_loss
from .wrappers import is_sharded

__all__ = ["Forecast", "find_batch_size"]

Json = Dict[str, Any]

_PRECISIONS = {"no": None, "bf16": "amp_bf16", "fp16": "amp_fp16"}
_FULL_SHARD = ("FULL_SHARD", "HYBRID_SHARD")


class Forecast(Forecaster):
    """Forecasts a loop when it is entered, and says on leaving what it took.

    `prediction`, `measured` and `record` are the forecast, what was measured, and the captured iteration; on other
    processes than the main one they stay None.
    """

    def __init__(
        self,
        accelerator: Any,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        batch: Any,
        loss_fn: LossFunction = default_loss,
        *,
        clip_grad: float = 0,
        gpu: Optional[str] = None,
        fail_if_oom: bool = False,
    ) -> None:
        """
        :param model: prepared or not; one that is sharded (FSDP) before it is prepared
        :param batch: an example, as the loop gets it
        :param loss_fn: `loss_fn(model, batch)` gives the loss, where the model's result has none
        :param clip_grad: the norm to which the loop clips gradients; 0: it does not
        :param gpu: what to forecast for; by default the GPU of the run
        :param fail_if_oom: raise DoesNotFit before the loop is entered where it does not surely fit
        """
        super().__init__(gpu, fail_if_oom)
        self._accelerator = accelerator
        self._optimizer = inner_optimizer(optimizer)
        self._hooks: List[Any] = []
        self._make_step = lambda: step_of(accelerator, model, optimizer, batch, loss_fn, clip_grad)

    def __enter__(self) -> Forecast:
        self._forget()
        if self._accelerator.is_main_process:
            self._begin(self._make_step, self._accelerator.log)
            self._hooks = [self._optimizer.register_step_post_hook(lambda *_: self._iteration_ended())]
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        if kind is None:
            self._end(self._accelerator.log)


def find_batch_size(
    accelerator: Any,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    loss_fn: LossFunction = default_loss,
    *,
    clip_grad: float = 0,
    gpu: Optional[str] = None,
    margin: Margin = "range",
    at_most: Optional[int] = None,
) -> int:
    """The largest batch of a process that surely fits, without trying it: `train(find_batch_size(...))` is what
    `accelerate.utils.find_executable_batch_size` comes to by running out of memory.

    :param batch: an example, of any size; the first dimension of its tensors is the batch
    :param margin: how far a run may be above its prediction and must still fit: 0.05, "range" (what eight of ten
        measured runs keep), "none"
    :param at_most: not more than this, as the data set has
    :raises DoesNotFit: where no batch fits
    :raises InputError: where the step cannot be captured, or not moved to other batches
    """
    step = step_of(accelerator, model, optimizer, batch, loss_fn, clip_grad)
    return largest_batch(step, gpu or run_gpu(model), margin, at_most)


def step_of(
    accelerator: Any,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    loss_fn: LossFunction,
    clip_grad: float,
) -> FrameworkStep:
    """The iteration of a loop around what the Accelerator prepares."""
    parallel, remarks = parallel_words(accelerator)
    words: Json = {
        "optimizer": inner_optimizer(optimizer),
        "batch": batch,
        "loss_fn": loss_fn,
        "precision": precision_of(accelerator),
        "accumulate": accelerator.gradient_accumulation_steps,
        "clip_grad": clip_grad,
        "loop": "accelerate",
    }
    bare, compiled = unwrapped(accelerator, model)
    return FrameworkStep(bare, words, parallel, [*remarks, *compiled], quiet=lambda: as_before_preparing(bare))


def precision_of(accelerator: Any) -> Optional[str]:
    """In the word of forerun.capture; None: as the model is."""
    name = str(accelerator.mixed_precision)
    if name not in _PRECISIONS:
        raise InputError(f"cannot be {name}", "mixed_precision", f"known: {', '.join(_PRECISIONS)}")
    return _PRECISIONS[name]


def unwrapped(accelerator: Any, model: torch.nn.Module) -> Tuple[torch.nn.Module, List[str]]:
    """The model without what data parallelism and compilation put around it, and a word where it was compiled."""
    if is_sharded(model):
        raise InputError(
            "the model's parameters are already sharded over GPUs",
            type(model).__name__,
            "ask before it is prepared: forerun.accelerate.Forecast, or forerun.transformers.predict(trainer)",
        )
    bare = accelerator.unwrap_model(model, keep_fp32_wrapper=True, keep_torch_compile=False)
    around = accelerator.unwrap_model(model, keep_fp32_wrapper=True, keep_torch_compile=True)
    return bare, [COMPILED] if around is not bare else []


@contextlib.contextmanager
def as_before_preparing(model: Any) -> Iterator[None]:
    """The forward pass as it was written; a capture adds itself what Accelerate wraps around it. What is set here is
    put back by who calls."""
    if "_original_forward" in vars(model):
        model.forward = model._original_forward
    yield


def parallel_words(accelerator: Any) -> Tuple[Json, List[str]]:
    """One GPU's share in the words of forerun.predict, and what is not counted. Raises InputError."""
    kind = str(getattr(accelerator.distributed_type, "value", accelerator.distributed_type)).upper()
    gpus = int(accelerator.num_processes)
    if kind in ("NO", "MULTI_GPU", "MULTI_CPU"):
        return data_parallel(gpus)
    if kind == "FSDP":
        strategy = getattr(accelerator.state.fsdp_plugin, "sharding_strategy", None)
        name = str(getattr(strategy, "name", strategy or "FULL_SHARD"))
        return data_parallel(gpus, 3 if name in _FULL_SHARD else 2)
    raise InputError(
        f"training by {kind} is not forecast: it runs other steps than the model's own",
        "distributed_type",
        "ask forerun.scale about plans for many GPUs",
    )


def inner_optimizer(optimizer: Any) -> torch.optim.Optimizer:
    """The optimizer that Accelerate wraps."""
    return optimizer.optimizer if type(optimizer).__name__ == "AcceleratedOptimizer" else optimizer
