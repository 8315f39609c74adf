"""Forecasts of what transformers' Trainer runs, and the largest batch for it without trying it.

    import forerun as fr

    forecast = fr.transformers.Forecast(fail_if_oom=True)
    trainer = transformers.Trainer(model, args, train_dataset=data, callbacks=[forecast])
    trainer.train()

What is captured is the Trainer's own step: `compute_loss` with its label smoothing or your own loss, on the first batch
that the collator made, in the precision, accumulation, clipping and optimizer that TrainingArguments ask for.
"""
from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional, Tuple

try:
    import transformers
except ImportError as missing:
    raise ImportError(f"forerun.transformers needs transformers ({missing}): pip install transformers") from missing

import torch

from .accelerate import as_before_preparing, inner_optimizer, parallel_words, precision_of, unwrapped
from .api import prediction as _prediction
from .errors import InputError
from .forecaster import Forecaster
from .framework_step import FrameworkStep, Margin, first_batch, largest_batch, run_gpu, samples_in
from .run_options import is_checkpointing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .api.prediction import Prediction
    from .api.words import PredictWords

__all__ = ["Forecast", "batch_size", "predict"]

Json = Dict[str, Any]


class Forecast(Forecaster, transformers.TrainerCallback):
    """Forecasts a Trainer's run before its first step, and says in the end what it took.

    Both are written where the Trainer's logs go, as `forerun/...`. `prediction`, `measured` and `record` are the
    forecast, what was measured, and the captured iteration; on other processes than the first they stay None.
    """

    _trainer: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._forget()
        if not state.is_world_process_zero:
            return
        trainer = _calling_trainer()
        if trainer is None:
            self._begin(_without_trainer, lambda figures: None)
        else:
            self._watch(trainer)

    def _watch(self, trainer: Any) -> None:
        """Looks at batches when they are trained on: a callback is not given them."""
        self._unwatch()
        self._trainer, train = trainer, trainer.training_step

        def training_step(model: Any, inputs: Any, *others: Any, **named: Any) -> Any:
            count = others[0] if others else named.get("num_items_in_batch")
            self._see(inputs)
            self._begin(lambda: step_of(trainer, model, trainer.optimizer, inputs, count), trainer.log)
            return train(model, inputs, *others, **named)

        trainer.training_step = training_step

    def _unwatch(self) -> None:
        if self._trainer is not None:
            vars(self._trainer).pop("training_step", None)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._iteration_ended()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._trainer is not None:
            self._end(self._trainer.log)
            self._unwatch()
            self._trainer = None


def batch_size(
    trainer: Any,
    *,
    batch: Any = None,
    gpu: Optional[str] = None,
    margin: Margin = "range",
    at_most: Optional[int] = None,
    apply: bool = False,
) -> int:
    """The largest `per_device_train_batch_size` that surely fits, told before `trainer.train()`, without trying it.

    :param batch: an example, of any size; by default the first of the Trainer's data loader, which an IterableDataset
        does not give
    :param gpu: by default the GPU that the model is on
    :param margin: how far a run may be above its prediction and must still fit: 0.05, "range" (what eight of ten
        measured runs keep), "none"
    :param at_most: not more than this; by default the samples of the data set
    :param apply: have the Trainer train with it
    :raises DoesNotFit: where no batch fits
    :raises InputError: where the step cannot be captured, or not moved to other batches
    """
    step, samples = _step_before_training(trainer, batch)
    largest = largest_batch(step, gpu or run_gpu(step.model), margin, samples if at_most is None else at_most)
    if apply:
        trainer.args.per_device_train_batch_size = trainer._train_batch_size = largest
    return largest


def predict(trainer: Any, **words: Unpack[PredictWords]) -> Prediction:
    """What `trainer.train()` will take, told before it; of training that FSDP shards, one GPU's share.

    :param words: `batch`, an example (by default the first of the data loader, which an IterableDataset does not give),
        `gpu` (by default the one that the model is on), and what else forerun.predict takes of a capture
    :raises InputError: where the step cannot be captured
    """
    given: Json = dict(words)
    step, _ = _step_before_training(trainer, given.pop("batch", None))
    given = {"gpu": run_gpu(step.model), **step.parallel, **given}
    return _prediction.predict(step.record(), **given)


def _step_before_training(trainer: Any, batch: Any) -> Tuple[FrameworkStep, Optional[int]]:
    """The step that it will run, and the samples of its data set where they are known."""
    if "layerwise" in str(trainer.args.optim):
        what = "hangs the optimizer's steps on the parameters when it is made, which can be done once"
        raise InputError(what, str(trainer.args.optim), "give the Trainer a forerun.transformers.Forecast instead")
    loader = trainer.get_train_dataloader() if batch is None else None
    example = first_batch(loader) if batch is None else batch
    micro_batches = [example] * trainer.args.gradient_accumulation_steps
    counted = trainer._get_num_items_in_batch(micro_batches, trainer.args.device)
    before, optimizer = trainer.optimizer, trainer.create_optimizer()
    trainer.optimizer = before  # it makes its own all the same
    return step_of(trainer, trainer.model, optimizer, example, counted), samples_in(loader)


def step_of(trainer: Any, model: Any, optimizer: Any, inputs: Any, num_items_in_batch: Any) -> FrameworkStep:
    """The iteration that the Trainer runs on such inputs. Raises InputError."""
    args = trainer.args
    parallel, remarks = parallel_words(trainer.accelerator)
    if args.n_gpu > 1:
        what = f"DataParallel spreads a batch over {args.n_gpu} GPUs, which is not forecast"
        raise InputError(what, "TrainingArguments", "start a process for each GPU, with torchrun or accelerate launch")
    if type(trainer)._prepare_inputs is not transformers.Trainer._prepare_inputs:
        what = "_prepare_inputs is its own, and may run the model to make a batch"
        raise InputError(what, type(trainer).__name__, "forerun.predict(model, ...) forecasts a step that you write")
    bare, compiled = unwrapped(trainer.accelerator, model)

    def loss(model: Any, batch: Any) -> Any:
        return trainer.compute_loss(model, dict(batch), num_items_in_batch=num_items_in_batch)

    words: Json = {
        "optimizer": inner_optimizer(optimizer),
        "batch": dict(trainer._prepare_inputs(inputs)),
        "loss_fn": loss,
        "precision": precision_of(trainer.accelerator),
        "accumulate": args.gradient_accumulation_steps,
        "clip_grad": args.max_grad_norm or 0,
        "loop": "trainer",
    }
    if args.gradient_checkpointing and not is_checkpointing(bare):
        words["checkpoint"] = "block"
    owners = (trainer, trainer.state, trainer.control)
    return FrameworkStep(bare, words, parallel, [*remarks, *compiled], owners, lambda: _quiet(trainer, bare))


@contextlib.contextmanager
def _quiet(trainer: Any, model: torch.nn.Module) -> Iterator[None]:
    """As in a step of training, but that what is logged goes nowhere. What is set here is put back by who calls."""
    trainer.log = lambda *_arguments, **_named: None
    model.train()
    with as_before_preparing(model):
        yield


def _calling_trainer() -> Any:
    """The Trainer that called the callback, which is not told it; None: there is none."""
    frame = inspect.currentframe()
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, transformers.Trainer):
            return owner
        frame = frame.f_back
    return None


def _without_trainer() -> FrameworkStep:
    raise InputError("is called by no transformers.Trainer", "forerun.transformers.Forecast", "give it to one")
