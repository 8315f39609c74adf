"""Forecasts of what Lightning's Trainer runs, and a batch size for it that needs no trial.

    import forerun as fr

    trainer = lightning.Trainer(callbacks=[fr.lightning.BatchSize(), fr.lightning.Forecast(fail_if_oom=True)])
    trainer.fit(module, datamodule)

What is captured is Lightning's own step: `training_step` on the first batch as it is on the device, in the Trainer's
precision, accumulation and clipping, with the optimizer that `configure_optimizers` made.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

try:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers.logger import DummyLogger
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
        from pytorch_lightning.loggers.logger import DummyLogger
    except ImportError as missing:
        raise ImportError(f"forerun.lightning needs Lightning ({missing}): pip install lightning") from missing

import torch

from .errors import InputError
from .forecaster import Forecaster
from .framework_step import COMPILED, FrameworkStep, Margin, data_parallel, first_batch, largest_batch, run_gpu
from .framework_step import samples_in
from .kept_state import random_state_kept

__all__ = ["BatchSize", "Forecast"]

Json = Dict[str, Any]

_PRECISIONS = {
    "32-true": None,
    "bf16-mixed": "amp_bf16",
    "16-mixed": "amp_fp16",
    "bf16-true": "bf16",
    "16-true": "fp16",
}
_AUTOCAST = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
_PLUGINS = ("Precision", "MixedPrecision", "HalfPrecision", "FSDPPrecision")
_OWN_HOOKS = ("backward", "optimizer_step", "optimizer_zero_grad", "configure_gradient_clipping")


class Forecast(Forecaster, Callback):
    """Forecasts a run of Lightning's Trainer before its first step, and says in the end what it took.

    Both go to the Trainer's loggers, as `forerun/...`. `prediction`, `measured` and `record` are the forecast, what was
    measured, and the captured iteration; on other ranks than the first they stay None.
    """

    _steps = 0

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._forget()
        self._steps = trainer.global_step

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if trainer.is_global_zero:
            self._see(batch)
            self._begin(lambda: step_of(trainer, pl_module, batch, batch_idx), lambda figures: _log(trainer, figures))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step != self._steps:
            self._steps = trainer.global_step
            self._iteration_ended()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end(lambda figures: _log(trainer, figures))


class BatchSize(Callback):
    """Sets the batch size of the LightningModule or its data module to the largest that surely fits, without trying.

    In place of Lightning's BatchSizeFinder, which runs out of memory to find it. `batch_size` is what was found.
    """

    def __init__(
        self,
        margin: Margin = "range",
        batch_arg_name: str = "batch_size",
        gpu: Optional[str] = None,
        at_most: Optional[int] = None,
        batch: Any = None,
    ) -> None:
        """
        :param margin: how far a run may be above its prediction and must still fit: 0.05, "range" (what eight of ten
            measured runs keep), "none"
        :param batch_arg_name: the attribute or hyperparameter of the module or data module that holds the batch size
        :param gpu: by default the GPU of the run
        :param at_most: not more than this; by default the samples of the data set
        :param batch: an example; by default the first of the data loader, which an IterableDataset does not give
        """
        self.margin, self.batch_arg_name, self.gpu, self.at_most = margin, batch_arg_name, gpu, at_most
        self.batch_size: Optional[int] = None
        self._example = batch

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        holders = _holders(trainer, pl_module, self.batch_arg_name)
        fit_loop = trainer.fit_loop
        if not fit_loop._data_source.is_module():
            raise InputError(
                "a data loader that was given to fit() keeps its batch size",
                "forerun.lightning.BatchSize",
                "make the loader in train_dataloader() of the LightningModule or a LightningDataModule",
            )
        loader = _loader(trainer) if self._example is None else None
        found = self._largest(trainer, pl_module, loader) if trainer.is_global_zero else None
        self.batch_size = trainer.strategy.broadcast(found)
        for holder in holders:
            if isinstance(holder, dict):
                holder[self.batch_arg_name] = self.batch_size
            else:
                setattr(holder, self.batch_arg_name, self.batch_size)
        fit_loop._combined_loader = None  # loaders are made anew, with that batch size
        if trainer.is_global_zero:
            print(f"forerun: {self.batch_arg_name} is {self.batch_size}", flush=True)

    def _largest(self, trainer: Any, module: Any, loader: Any) -> int:
        example = self._example if loader is None else _on_device(trainer, module, first_batch(loader))
        most = samples_in(loader) if self.at_most is None else self.at_most
        return largest_batch(step_of(trainer, module, example, 0), self.gpu or run_gpu(module), self.margin, most)


def _holders(trainer: Any, module: Any, name: str) -> List[Any]:
    """Who has a batch size, as Lightning looks for it: module and data module, and their hyperparameters."""
    holders: List[Any] = []
    for owner in (module, trainer.datamodule):
        if owner is None:
            continue
        if hasattr(owner, name):
            holders.append(owner)
        if name in getattr(owner, "hparams", {}):
            holders.append(owner.hparams)
    if not holders:
        what = f"neither the module nor the data module has {name}, nor do their hparams"
        remedy = f"use self.{name} in train_dataloader(), or give batch_arg_name"
        raise InputError(what, "forerun.lightning.BatchSize", remedy)
    return holders


def _loader(trainer: Any) -> Any:
    """The one that gives batches of training."""
    with random_state_kept():
        trainer.fit_loop.setup_data()
    loaders = trainer.fit_loop._combined_loader.flattened
    if len(loaders) != 1:
        what = f"{len(loaders)} data loaders have no one batch size"
        raise InputError(what, "train_dataloader", "give one loader, or set batch sizes by hand")
    return loaders[0]


def _on_device(trainer: Any, module: Any, batch: Any) -> Any:
    """As a step gets it."""
    batch = trainer.precision_plugin.convert_input(batch)
    batch = module._on_before_batch_transfer(batch, dataloader_idx=0)
    return trainer.strategy.batch_to_device(batch, dataloader_idx=0)


def _log(trainer: Any, figures: Dict[str, float]) -> None:
    for logger in trainer.loggers:
        logger.log_metrics(figures, step=trainer.global_step)


# -- the step ----------------------------------------------------------------------------------------------------------


def step_of(trainer: Any, module: Any, batch: Any, batch_idx: int) -> FrameworkStep:
    """The iteration that Lightning runs on such batches. Raises InputError."""
    parallel, remarks = _parallel_words(trainer)
    if batch is None:
        what = "takes its batches itself (dataloader_iter), so that none is there to forecast with"
        raise InputError(what, "training_step", "take batch and batch_idx")
    if getattr(module, "_compiler_ctx", None) is not None:
        remarks.append(COMPILED)
    words = (_automatic if module.automatic_optimization else _manual)(trainer, module, batch_idx)
    words["batch"] = batch
    remarks += _own_words(trainer, module)
    owners = tuple(trainer.optimizers)
    return FrameworkStep(module, words, parallel, remarks, owners, lambda: _quiet(trainer, module, remarks))


def _automatic(trainer: Any, module: Any, batch_idx: int) -> Json:
    def loss(module: Any, batch: Any) -> Any:
        output = module.training_step(*_arguments(trainer, batch, batch_idx))
        if output is None:
            raise InputError("returned None, which skips the step", "training_step", "the first step must give a loss")
        return (output["loss"], output) if isinstance(output, Mapping) else output

    by_norm = str(trainer.gradient_clip_algorithm or "norm") in ("norm", "GradClipAlgorithmType.NORM")
    return {
        "optimizer": trainer.optimizers[0],
        "loss_fn": loss,
        "precision": _precision(trainer),
        "accumulate": trainer.accumulate_grad_batches,
        "clip_grad": (trainer.gradient_clip_val or 0) if by_norm else 0,
        "loop": "lightning",
    }


def _manual(trainer: Any, module: Any, batch_idx: int) -> Json:
    """The module steps its optimizers itself, and so nothing is added to what it does."""
    precision = str(trainer.precision)
    if precision == "16-mixed":
        what = "manual optimization in 16-mixed scales the loss out of sight of a capture"
        raise InputError(what, type(module).__name__, 'train in "bf16-mixed"')
    _precision(trainer)  # refuses what is unknown
    dtype = _AUTOCAST.get(precision)

    def step(module: Any, batch: Any) -> Any:
        with torch.autocast("cuda", dtype) if dtype is not None else contextlib.nullcontext():
            return module.training_step(*_arguments(trainer, batch, batch_idx))

    return {"optimizer": trainer.optimizers[0], "loss_fn": step, "loop": "plain"}


def _arguments(trainer: Any, batch: Any, batch_idx: int) -> List[Any]:
    """Those that the module's training_step takes, whatever it calls them."""
    return list(trainer.fit_loop.epoch_loop._build_kwargs({}, batch, batch_idx).values())


def _precision(trainer: Any) -> Optional[str]:
    """In the word of forerun.capture; None: as the model is."""
    name, plugin = str(trainer.precision), type(trainer.precision_plugin).__name__
    if name not in _PRECISIONS or plugin not in _PLUGINS:
        raise InputError(f"{name} by {plugin} is not forecast", "precision", f"known: {', '.join(_PRECISIONS)}")
    return _PRECISIONS[name]


def _parallel_words(trainer: Any) -> Tuple[Json, List[str]]:
    strategy = type(trainer.strategy).__name__
    if strategy in ("SingleDeviceStrategy", "DDPStrategy"):
        return data_parallel(trainer.world_size)
    if "FSDP" in strategy:
        what = "the model's parameters are sharded over GPUs when Lightning begins to train"
        gpus = trainer.world_size
        remedy = f"before fit: forerun.predict(module, optimizer=..., batch=..., loss_fn=..., zero=3, gpus={gpus})"
        raise InputError(what, strategy, remedy)
    what = f"training by {strategy} is not forecast: it runs other steps than the module's own"
    raise InputError(what, "strategy", "known: a single device, DDP; ask forerun.scale about plans for many GPUs")


def _own_words(trainer: Any, module: Any) -> List[str]:
    """What the module or the Trainer does to the step that is not captured."""
    base = next(cls for cls in type(module).__mro__ if cls.__name__ == "LightningModule")
    own = [hook for hook in _OWN_HOOKS if getattr(type(module), hook) is not getattr(base, hook)]
    words = [f"{hook}() of {type(module).__name__} is not counted" for hook in own]
    if trainer.gradient_clip_val and "value" in str(trainer.gradient_clip_algorithm).lower():
        words.append("clipping gradients by value is not counted")
    if not module.automatic_optimization:
        words.append("manual optimization: what Lightning's loop itself takes is not counted")
    return words


@contextlib.contextmanager
def _quiet(trainer: Any, module: Any, remarks: List[str]) -> Iterator[None]:
    """What the step logs goes nowhere, and its optimizers are PyTorch's, which count nothing. What is set in the module
    is put back by who calls."""
    loggers = trainer.loggers
    module.log = module.log_dict = lambda *_arguments, **_named: None
    for name, part in module.named_modules():
        if "Metric" in (cls.__name__ for cls in type(part).__mro__):  # of torchmetrics
            part.forward = _counted_where_it_can_be(name, part.forward, remarks)
    if not module.automatic_optimization:
        optimizers = list(trainer.optimizers)
        module.optimizers = lambda use_pl_optimizer=True: _one_or_all(optimizers)
        module.manual_backward = lambda loss, *arguments, **named: loss.backward(*arguments, **named)
        schedulers = [_Still(config.scheduler) for config in trainer.lr_scheduler_configs]
        module.lr_schedulers = lambda: _one_or_all(schedulers) if schedulers else None
    trainer.loggers = [DummyLogger() for _ in loggers]
    try:
        yield
    finally:
        trainer.loggers = loggers


def _counted_where_it_can_be(name: str, metric: Callable[..., Any], remarks: List[str]) -> Callable[..., Any]:
    """A metric that looks at values of the model's results gives 0, and a word is said of it."""

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return metric(*arguments, **named)
        except Exception:  # whatever it does where tensors have no data
            said = f"the metric {name} looks at values, and is not counted"
            if said not in remarks:
                remarks.append(said)
            return torch.zeros(())

    return call


def _one_or_all(entries: List[Any]) -> Any:
    return entries[0] if len(entries) == 1 else entries


class _Still:
    """A scheduler that does not step."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def step(self, *_arguments: Any, **_named: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)
