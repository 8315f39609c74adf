"""forerun.lightning with Lightning itself: what is captured, what stays as it was, what is refused."""
from __future__ import annotations

import pathlib
from typing import Any, Dict, List, Optional

import needs_native  # noqa: F401
import needs_torch  # noqa: F401
import pytest
import torch

lightning: Any = pytest.importorskip("lightning")
torchmetrics: Any = pytest.importorskip("torchmetrics")

from framework_models import Endless, F, Stream, cross_entropy, iteration, network, samples  # noqa: E402

import forerun as fr  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning:lightning", "ignore::DeprecationWarning")


class Module(lightning.LightningModule):
    """Keeps losses, counts steps, logs, and draws random numbers."""

    def __init__(self, data: Any = None) -> None:
        super().__init__()
        self.net = network()
        self.batch_size = 8
        self.losses: List[Any] = []
        self.steps = 0
        self._data = data

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = cross_entropy(self.net, batch)
        self.log("loss", loss)
        if self.logger is not None:
            self.logger.log_metrics({"own": loss.item()})
        self.losses.append(loss.detach())
        self.steps += 1
        return {"loss": loss, "index": batch_idx}

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), 1e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    def train_dataloader(self) -> Any:
        data = samples() if self._data is None else self._data
        return torch.utils.data.DataLoader(data, self.batch_size, shuffle=isinstance(data, type(samples())))


class Notes(lightning.pytorch.loggers.logger.DummyLogger):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.figures: Dict[str, List[float]] = {}

    def log_metrics(self, metrics: Dict[str, float], step: Optional[int] = None) -> None:
        for name, value in metrics.items():
            self.figures.setdefault(name, []).append(value)


def trainer(*callbacks: Any, **settings: Any) -> Any:
    quiet = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(
        **{"max_steps": 8, "accelerator": "cpu", "logger": False, **quiet, **settings}, callbacks=list(callbacks)
    )


def fitted(module: Any, *callbacks: Any, **settings: Any) -> Any:
    torch.manual_seed(3)
    trainer(*callbacks, **settings).fit(module)
    return module


class Example(lightning.pytorch.Callback):
    """Keeps the first batch."""

    batch: Any = None

    def on_train_batch_start(self, _trainer: Any, _module: Any, batch: Any, batch_idx: int) -> None:
        self.batch = batch if self.batch is None else self.batch


@pytest.mark.parametrize(
    "settings, words",
    [
        ({}, {}),
        ({"precision": "bf16-mixed", "gradient_clip_val": 0.5}, {"precision": "amp_bf16", "clip_grad": 0.5}),
        ({"precision": "bf16-true"}, {"precision": "bf16"}),
        ({"accumulate_grad_batches": 2, "max_steps": 2}, {"accumulate": 2}),
    ],
)
def test_the_step_is_captured_as_lightning_runs_it(settings: Any, words: Any) -> None:
    forecast, example = fr.lightning.Forecast(gpu="a100"), Example()
    fitted(Module(), forecast, example, **settings)
    twin = Module()

    def loss(module: Any, batch: Any) -> Any:
        found = cross_entropy(module.net, batch)
        module.losses.append(found.detach())
        return found

    own = fr.capture(
        twin,
        torch.optim.Adam(twin.parameters(), 1e-3),
        example.batch,
        loss,
        loop="lightning",
        **words,
    )
    assert forecast.record is not None and iteration(forecast.record) == iteration(own)
    assert forecast.prediction is not None and forecast.prediction.json == fr.predict(own, gpu="a100").json


@pytest.mark.parametrize("stream", [False, True])
def test_training_goes_as_without_a_forecast(stream: bool) -> None:
    def run(*callbacks: Any) -> Any:
        notes = Notes()
        torch.manual_seed(2)
        module = fitted(Module(Stream() if stream else None), *callbacks, logger=notes, log_every_n_steps=1)
        own = {name: values for name, values in notes.figures.items() if not name.startswith("forerun/")}
        return module.losses, module.steps, own, module.state_dict(), torch.rand(2)

    plain, watched = run(), run(fr.lightning.Forecast(gpu="t4"))
    assert torch.equal(torch.stack(plain[0]), torch.stack(watched[0])) and len(plain[0]) == 8
    assert plain[1:3] == watched[1:3]
    assert all(torch.equal(value, watched[3][name]) for name, value in plain[3].items())
    assert torch.equal(plain[4], watched[4])


class Unlike(torchmetrics.Metric):
    """How many results differ: of tensors without data nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.add_state("found", torch.zeros(()), "sum")

    def update(self, given: Any) -> None:
        self.found += len(torch.unique(given))

    def compute(self) -> Any:
        return self.found


class Metered(Module):
    def __init__(self) -> None:
        super().__init__()
        self.accuracy, self.unlike = torchmetrics.classification.MulticlassAccuracy(4), Unlike()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        out = self.net(batch[0])
        self.accuracy(out, batch[1])
        self.log("unlike", self.unlike(out))
        return F.cross_entropy(out, batch[1])


def test_metrics_are_counted_where_they_can_be(capsys: Any) -> None:
    def run(*callbacks: Any) -> Any:
        torch.manual_seed(2)
        module = fitted(Metered(), *callbacks)
        return float(module.accuracy.compute()), float(module.unlike.compute())

    forecast = fr.lightning.Forecast()
    assert run() == run(forecast)
    said = capsys.readouterr().out
    assert "the metric unlike looks at values, and is not counted" in said and "accuracy" not in said
    assert forecast.record is not None and any("accuracy" in name for name in forecast.record["modules"])


def test_loggers_get_the_forecast_and_what_was_measured(capsys: Any) -> None:
    notes, forecast = Notes(), fr.lightning.Forecast()
    fitted(Module(), forecast, logger=notes)
    assert forecast.prediction is not None and forecast.measured is not None
    assert notes.figures["forerun/predicted_iteration_ms"] == [forecast.prediction.iteration.ms]
    assert notes.figures["forerun/measured_iteration_ms"] == [forecast.measured.iteration_ms]
    assert "forerun/iteration_error" not in notes.figures
    said = capsys.readouterr().out
    assert "fits in" in said and "the run is on no GPU: the forecast is for NVIDIA H200" in said
    assert "on the CPU; the forecast is for NVIDIA H200, so nothing is compared" in said


class Vast(Module):
    """Fits nowhere."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.steps += 1
        return cross_entropy(self.net, [entry.repeat_interleave(1 << 26, 0) for entry in batch])


def test_a_run_that_does_not_fit_ends_before_its_first_step() -> None:
    module = Vast()
    with pytest.raises(fr.DoesNotFit, match="does not fit in"):
        fitted(module, fr.lightning.Forecast(gpu="t4", fail_if_oom=True))
    assert module.steps == 0
    with pytest.raises(fr.DoesNotFit, match="not even a batch of 1 surely fits"):
        fitted(Vast(), fr.lightning.BatchSize(gpu="t4"))


class Choosy(Module):
    """What it trains on depends on what it computes."""

    def training_step(self, given: Any) -> Any:  # type: ignore[override]
        out = self.net(given[0])
        self.steps += 1
        return out[out > 0].sum()


class ByClosure(Module):
    def configure_optimizers(self) -> Any:
        return torch.optim.LBFGS(self.parameters(), 1e-3, max_iter=1)


@pytest.mark.parametrize(
    "module, settings, told",
    [
        (Choosy, {}, "shape"),
        (ByClosure, {}, "LBFGS runs the model as often"),
        (Module, {"precision": "64-true"}, "64-true by DoublePrecision is not forecast; known: 32-true"),
    ],
)
def test_what_cannot_be_forecast_is_told_and_trained(module: Any, settings: Any, told: str) -> None:
    with pytest.warns(UserWarning, match=f"(?s)no forecast of this run: .*{told}") as warned:
        trained = module()
        fitted(trained, fr.lightning.Forecast(), **settings)
    assert trained.steps >= 8 and sum("no forecast" in str(one.message) for one in warned) == 1
    trained.steps = 0
    with pytest.raises(fr.InputError, match="could not be judged"):
        fitted(trained, fr.lightning.Forecast(fail_if_oom=True), **settings)
    assert trained.steps == 0


class Adversaries(lightning.LightningModule):
    """Two optimizers, stepped by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator, self.critic = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)
        self.losses: List[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> None:
        first, second = self.optimizers()
        made = self.generator(torch.randn(len(batch[0]), 4))
        second.zero_grad()
        self.manual_backward((self.critic(made.detach()) - self.critic(batch[0])).mean())
        second.step()
        loss = -self.critic(made).mean()
        first.zero_grad()
        self.manual_backward(loss)
        first.step()
        self.lr_schedulers().step()
        self.losses.append(float(loss))

    def configure_optimizers(self) -> Any:
        both = [torch.optim.Adam(part.parameters()) for part in (self.generator, self.critic)]
        return both, [torch.optim.lr_scheduler.StepLR(both[0], 1, 0.5)]

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(samples(), 8, shuffle=True)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_manual_optimization_of_two_optimizers(precision: str, capsys: Any) -> None:
    def run(*callbacks: Any) -> Any:
        torch.manual_seed(2)
        return fitted(Adversaries(), *callbacks, max_steps=16, precision=precision)

    forecast = fr.lightning.Forecast()
    plain, watched = run(), run(forecast)
    assert plain.losses == watched.losses and plain.trainer.global_step == watched.trainer.global_step == 16
    record = forecast.record
    assert record is not None
    names = [record["op_names"][op] for op in record["ops"]["name"]]
    assert sum(name.startswith("aten._foreach_addcdiv_") for name in names) == 2
    assert record["run"]["precision"] == ("fp32" if precision == "32-true" else "amp_bf16")
    assert "manual optimization: what Lightning's loop itself takes is not counted" in capsys.readouterr().out


def test_what_is_compiled_is_forecast_as_it_was_written(capsys: Any) -> None:
    class Plain(Module):
        def training_step(self, given: Any, number: int) -> Any:
            return cross_entropy(self.net, given)

    eager, compiled = fr.lightning.Forecast(), fr.lightning.Forecast()
    fitted(Plain(), eager, max_steps=1)
    fitted(torch.compile(Plain(), backend="eager"), compiled, max_steps=1)
    assert eager.record is not None and compiled.record is not None
    assert iteration(eager.record) == iteration(compiled.record)
    assert "torch.compile: the forecast is of the iteration that runs without it" in capsys.readouterr().out


class Ragged(Module):
    """Batches of other shapes each."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return cross_entropy(self.net, [entry[: 4 + batch_idx] for entry in batch])

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.steps += 1
        return [entry[: 8 - self.steps % 3] for entry in batch]


def test_batches_that_differ_and_steps_of_ones_own_are_told(capsys: Any) -> None:
    class Own(Ragged):
        def optimizer_step(self, *arguments: Any, **named: Any) -> None:
            super().optimizer_step(*arguments, **named)

    fitted(Own(), fr.lightning.Forecast(), gradient_clip_val=1.0, gradient_clip_algorithm="value")
    said = capsys.readouterr().out
    assert "batches differ in size, from 102 to 136 numbers; the forecast is of the first, with 119" in said
    assert "optimizer_step() of Own is not counted" in said and "clipping gradients by value is not counted" in said


# -- batch sizes -------------------------------------------------------------------------------------------------------


def test_the_batch_size_is_what_fit_says() -> None:
    module, found = Module(Endless()), fr.lightning.BatchSize(margin=0.05, gpu="t4")
    fitted(module, found, max_steps=0)
    twin = Module()
    batch = next(iter(torch.utils.data.DataLoader(Endless(), 8)))
    wanted = fr.fit(
        twin,
        optimizer=torch.optim.Adam(twin.parameters()),
        batch=batch,
        loss_fn=lambda module, batch: cross_entropy(module.net, batch),
        loop="lightning",
        clip_grad=0,
        gpu="t4",
        margin="5%",
    ).batch
    assert wanted is not None and wanted > 10_000 and module.batch_size == found.batch_size == wanted


class Data(lightning.LightningDataModule):
    def __init__(self) -> None:
        super().__init__()
        self.save_hyperparameters({"size": 4})

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(samples(), self.hparams["size"], shuffle=True)


def test_training_is_in_batches_of_that_size() -> None:
    found, example, data = fr.lightning.BatchSize(batch_arg_name="size", at_most=16), Example(), Data()
    trainer(found, example, max_steps=2).fit(Module(), data)
    assert data.hparams["size"] == found.batch_size == len(example.batch[0]) == 16
    whole = fitted(Module(), fr.lightning.BatchSize(), max_steps=1)
    assert whole.batch_size == 64  # all samples there are
    stream, example = Module(Stream()), Example()
    fitted(stream, fr.lightning.BatchSize(batch=[t[:4] for t in samples().tensors], at_most=32), example, max_steps=1)
    assert stream.batch_size == 32 and torch.equal(example.batch[0], samples().tensors[0][:32])


def test_a_batch_size_draws_no_random_numbers() -> None:
    def run(*callbacks: Any) -> Any:
        torch.manual_seed(2)
        return fitted(Module(), *callbacks, max_steps=4).losses

    assert torch.equal(torch.stack(run()), torch.stack(run(fr.lightning.BatchSize(at_most=8))))


def test_where_there_is_no_batch_size_to_set() -> None:
    with pytest.raises(fr.InputError, match="neither the module nor the data module has size"):
        fitted(Module(), fr.lightning.BatchSize(batch_arg_name="size"))
    with pytest.raises(fr.InputError, match="a data loader that was given to fit"):
        trainer(fr.lightning.BatchSize()).fit(Module(), torch.utils.data.DataLoader(samples(), 8))
    with pytest.raises(fr.InputError, match="IterableDataset may not give a batch twice.*batch="):
        fitted(Module(Stream()), fr.lightning.BatchSize())

    class Two(Module):
        def train_dataloader(self) -> Any:
            return [super().train_dataloader(), super().train_dataloader()]

    with pytest.raises(fr.InputError, match="2 data loaders have no one batch size"):
        fitted(Two(), fr.lightning.BatchSize())
    with pytest.raises(fr.InputError, match="margin: cannot be 2"):
        fitted(Module(), fr.lightning.BatchSize(margin=2.0))

    class Fixed(Module):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return F.cross_entropy(self.net(torch.cat([batch[0], batch[0][: len(batch[0]) % 3]]))[:8], batch[1][:8])

    with pytest.raises(fr.InputError, match="cannot be moved to other batches"):
        fitted(Fixed(), fr.lightning.BatchSize())


def test_profiles_of_a_run_are_read(tmp_path: pathlib.Path) -> None:
    """Lightning's profiler is PyTorch's: without kernels of a GPU there are ops alone."""
    profiler = lightning.pytorch.profilers.PyTorchProfiler(dirpath=tmp_path, filename="run", export_to_chrome=True)
    fitted(Module(), profiler=profiler, max_steps=6)
    files = sorted(tmp_path.glob("*.json"))
    assert files
    trace = fr.trace(files[0])
    assert "aten::addmm" in trace.columns("ops")["name"] and trace.columns("kernels").height == 0
    assert "no work on a GPU was recorded" in repr(trace) and "rank" not in repr(trace)
