"""An iteration as a training framework runs it, in the words of forerun.capture, and the largest batch of it that fits.

lightning.py, transformers.py and accelerate.py read it off the framework's own objects. Capturing it leaves those
objects, and the program's random numbers, as they were.
"""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Tuple, Union

import torch

from .api.asking import as_captured
from .api.fitting import Fit, fit
from .errors import DoesNotFit, InputError
from .kept_state import attributes_kept, random_state_kept

Json = Dict[str, Any]
Margin = Union[str, float]

COMPILED = "torch.compile: the forecast is of the iteration that runs without it"


@dataclasses.dataclass(frozen=True)
class FrameworkStep:
    """What is trained and how, as the framework's objects say."""

    model: torch.nn.Module
    words: Json  # of forerun.capture: optimizer, batch, loss_fn, precision, accumulate, clip_grad, loop, ...
    parallel: Json = dataclasses.field(default_factory=dict)  # of forerun.predict: ddp, zero, gpus
    remarks: List[str] = dataclasses.field(default_factory=list)  # what the forecast does not count; capturing may add
    owners: Tuple[Any, ...] = ()  # objects of the framework that the step may change
    quiet: Callable[[], ContextManager[Any]] = contextlib.nullcontext  # while inside, the step writes no log

    def record(self, resizable: bool = False) -> Json:
        """The captured iteration; `resizable`: for any batch. Raises InputError."""
        owners = (*self.model.modules(), self.words["optimizer"], *self.owners)
        with random_state_kept(), attributes_kept(*owners), self.quiet():
            try:
                record: Any = as_captured(self.model, dict(self.words), resizable)
                return record
            except InputError:
                raise
            except Exception as error:  # whatever the step does where tensors have no data
                told = " ".join(str(error).split())[:300]
                raise InputError(
                    f"the training step cannot be captured: {type(error).__name__}: {told}",
                    type(self.model).__name__,
                    "docs/capture.md says what can",
                ) from error
        raise AssertionError("nothing above keeps an exception to itself")


# -- batches -----------------------------------------------------------------------------------------------------------


def first_batch(loader: Any) -> Any:
    """The batch that comes first, drawn so that the loader gives it again. Raises InputError."""
    if isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset):
        what = "an IterableDataset may not give a batch twice, and so none is taken from it"
        raise InputError(what, type(loader.dataset).__name__, "give an example of a batch: batch=")
    sampler, batches = getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)
    drawing = [getattr(one, "generator", None) for one in (loader, sampler, batches, getattr(batches, "sampler", None))]
    generators = [generator for generator in drawing if isinstance(generator, torch.Generator)]
    states = [generator.get_state() for generator in generators]
    with random_state_kept():
        try:
            return next(iter(loader))
        except StopIteration:
            raise InputError("gives no batch", "the data loader", "give an example of a batch: batch=") from None
        finally:
            for generator, state in zip(generators, states):
                generator.set_state(state)


def elements_of(batch: Any) -> int:
    """Numbers in all its tensors, which tell large batches from small ones."""
    if isinstance(batch, torch.Tensor):
        return batch.numel()
    if isinstance(batch, Mapping):
        return sum(elements_of(entry) for entry in batch.values())
    return sum(elements_of(entry) for entry in batch) if isinstance(batch, (list, tuple)) else 0


def samples_in(loader: Any) -> Optional[int]:
    """Of the loader's data set; None where it does not say."""
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError, NotImplementedError):
        return None


# -- the largest batch -------------------------------------------------------------------------------------------------


def largest_batch(step: FrameworkStep, gpu: Optional[str], margin: Margin, at_most: Optional[int] = None) -> int:
    """Samples of a batch on one GPU. Raises DoesNotFit where there is none, InputError where that cannot be told."""
    words: Json = {"margin": _margin_text(margin), **step.parallel}
    if gpu is not None:
        words["gpu"] = gpu
    record = step.record(resizable=True)
    fixed = record.get("parametric", {}).get("fixed")
    if fixed or "parametric" not in record:
        reason = fixed or "the tensors of its batch do not agree in their first dimension"
        what = f"the step cannot be moved to other batches: {reason}"
        raise InputError(what, type(step.model).__name__, "docs/capture.md, Captures that move, says what can")
    answer = fit(record, brief=True, **words)
    if answer.largest is None:
        raise _nothing_fits(fit(record, **words))
    return min(answer.largest, at_most) if at_most is not None else answer.largest


def _margin_text(margin: Margin) -> str:
    if isinstance(margin, str):
        return margin
    if not 0 <= margin < 1:
        raise InputError(f"cannot be {margin}", "margin", 'give a share of the memory, 0.05, or "range" or "none"')
    return f"{100 * margin:g}%" if margin else "none"


def _nothing_fits(answer: Fit) -> DoesNotFit:
    helping = [f"{change.name} ({change.largest})" for change in answer.changes if change.largest]
    remedy = f"what would let a batch in, and how large: {', '.join(helping[:3])}" if helping else "take a larger GPU"
    at = answer.prediction
    what = f"not even a batch of {at.batch} surely fits in {at.memory.device!r}"
    return DoesNotFit(what, f"{at.id} on {at.gpu}", remedy)


# -- GPUs --------------------------------------------------------------------------------------------------------------


def run_gpu(model: torch.nn.Module) -> Optional[str]:
    """The GPU that the model is on, by its driver's name; None: on none."""
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else None


def data_parallel(gpus: int, zero: int = 0) -> Tuple[Json, List[str]]:
    """Words of forerun.predict for one GPU's share, and what they leave out."""
    if gpus < 2:
        return {}, []
    words: Json = {"zero": zero, "gpus": gpus} if zero else {"ddp": True, "gpus": gpus}
    said = f"memory is that of one of {gpus} GPUs; what they say to each other is not in the time (forerun.scale)"
    return words, [said]
