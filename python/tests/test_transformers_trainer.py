"""forerun.transformers with transformers' Trainer itself: what is captured, what stays as it was, what is refused."""
from __future__ import annotations

import os
import pathlib
from typing import Any, Dict, List

import needs_native  # noqa: F401
import needs_torch  # noqa: F401
import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers: Any = pytest.importorskip("transformers")
accelerate: Any = pytest.importorskip("accelerate")

from framework_models import iteration  # noqa: E402

import forerun as fr  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*mkldnn.*", "ignore::DeprecationWarning")
_VOCABULARY, _LENGTH = 64, 16


@pytest.fixture(autouse=True)
def _one_state_each(monkeypatch: Any) -> Any:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")  # before transformers 5 arguments set it for all
    yield
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


class Tokens(torch.utils.data.Dataset[Any]):
    def __init__(self, count: int = 64) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Dict[str, Any]:
        tokens = torch.randint(_VOCABULARY, (_LENGTH,), generator=torch.Generator().manual_seed(index % 64))
        return {"input_ids": tokens, "labels": tokens}


class Stream(torch.utils.data.IterableDataset[Any]):
    """Samples that come once."""

    def __init__(self) -> None:
        data = Tokens()
        self._samples = iter([data[index] for index in range(len(data))])

    def __iter__(self) -> Any:
        return self._samples


def model() -> Any:
    torch.manual_seed(2)
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": _VOCABULARY, "n_positions": _LENGTH}
    made = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ends))
    made.config.use_cache = False  # as the Trainer sets it
    return made


def trainer(folder: pathlib.Path, *callbacks: Any, kind: Any = None, data: Any = None, **settings: Any) -> Any:
    given: Dict[str, Any] = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "logging_steps": 1}
    given.update(use_cpu=True, per_device_train_batch_size=4, max_steps=7)
    arguments = transformers.TrainingArguments(str(folder), **{**given, **settings})
    made = (kind or transformers.Trainer)(model(), arguments, train_dataset=data or Tokens(), callbacks=list(callbacks))
    made.remove_callback(transformers.PrinterCallback)
    return made


def example(run: Any) -> Any:
    return next(iter(run.get_train_dataloader()))


@pytest.mark.parametrize(
    "settings, words",
    [
        (
            {"bf16": True, "max_grad_norm": 0.0, "gradient_checkpointing": True},
            {"precision": "amp_bf16", "clip_grad": 0, "checkpoint": "block"},
        ),
        ({"gradient_accumulation_steps": 2, "max_steps": 2, "optim": "adamw_torch"}, {"accumulate": 2}),
    ],
)
def test_the_step_is_captured_as_the_trainer_runs_it(tmp_path: pathlib.Path, settings: Any, words: Any) -> None:
    forecast = fr.transformers.Forecast(gpu="a100")
    run = trainer(tmp_path, forecast, **settings)
    run.train()
    batch, twin = example(run), model().train()
    count = (batch["labels"] != -100).sum()
    decaying = set(run.get_decay_parameter_names(twin))
    groups = [[p for name, p in twin.named_parameters() if (name in decaying) is decays] for decays in (True, False)]
    fused = True if "optim" not in settings else None
    optimizer = torch.optim.AdamW([{"params": group} for group in groups], 5e-5, weight_decay=0.0, fused=fused)

    def loss(model: Any, batch: Any) -> Any:
        outputs = model(**batch, num_items_in_batch=count)
        found = outputs["loss"]
        found *= 1  # processes
        return found

    own = fr.capture(twin, optimizer, dict(batch), loss, loop="trainer", **words)
    assert forecast.record is not None and forecast.prediction is not None
    assert iteration(forecast.record) == iteration(own)
    assert forecast.prediction.iteration == fr.predict(own, gpu="a100").iteration


class Weighted(transformers.Trainer):
    """A loss of its own, outside the model, that keeps figures and logs."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.own: Dict[str, List[float]] = {"losses": []}

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        labels = inputs.pop("labels")
        logits = model(**inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) * (1 + 0.1 * torch.rand(()))
        self.own["losses"].append(loss.item())
        self.log({"own": loss.item()})
        return loss


@pytest.mark.parametrize("kind, data", [(transformers.Trainer, Tokens), (Weighted, Stream)])
def test_training_goes_as_without_a_forecast(tmp_path: pathlib.Path, kind: Any, data: Any) -> None:
    def train(*callbacks: Any) -> Any:
        smoothing = 0.0 if kind is Weighted else 0.1
        run = trainer(tmp_path, *callbacks, kind=kind, data=data(), label_smoothing_factor=smoothing)
        run.train()
        history = run.state.log_history
        logged = [(entry[name], entry["step"]) for entry in history for name in ("loss", "own") if name in entry]
        return logged, getattr(run, "own", None), run.model.state_dict(), torch.rand(2), run.state.global_step

    plain, watched = train(), train(fr.transformers.Forecast(gpu="t4"))
    assert plain[:2] == watched[:2] and len(plain[0]) >= 7 and plain[4] == watched[4] == 7
    assert all(torch.equal(value, watched[2][name]) for name, value in plain[2].items())
    assert torch.equal(plain[3], watched[3])


def test_logs_get_the_forecast_and_what_was_measured(tmp_path: pathlib.Path, capsys: Any) -> None:
    forecast = fr.transformers.Forecast()
    run = trainer(tmp_path, forecast)
    for _ in range(2):  # a callback may be used again
        run.train()
        figures = {name: value for entry in run.state.log_history for name, value in entry.items()}
        assert forecast.prediction is not None and forecast.measured is not None
        assert figures["forerun/predicted_iteration_ms"] == forecast.prediction.iteration.ms
        assert figures["forerun/measured_iteration_ms"] == forecast.measured.iteration_ms
        assert "training_step" not in vars(run)
    said = capsys.readouterr().out
    assert "the run is on no GPU: the forecast is for NVIDIA H200" in said and "nothing is compared with it" in said


class Vast(transformers.Trainer):
    """Fits nowhere."""

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        return model(**{name: value.repeat_interleave(1 << 20, 0) for name, value in inputs.items()}).loss


def test_a_run_that_does_not_fit_ends_before_its_first_step(tmp_path: pathlib.Path) -> None:
    run = trainer(tmp_path, fr.transformers.Forecast(gpu="t4", fail_if_oom=True), kind=Vast)
    with pytest.raises(fr.DoesNotFit, match="does not fit in"):
        run.train()
    assert run.state.global_step == 0
    with pytest.raises(fr.DoesNotFit, match="not even a batch of 1 surely fits"):
        fr.transformers.batch_size(trainer(tmp_path, kind=Vast), gpu="t4")


class Choosy(transformers.Trainer):
    """What it trains on depends on what it computes."""

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        logits = model(**inputs).logits
        return logits[logits > 0].sum()


def test_what_cannot_be_forecast_is_told_and_trained(tmp_path: pathlib.Path) -> None:
    run = trainer(tmp_path, fr.transformers.Forecast(), kind=Choosy, max_steps=2)
    with pytest.warns(UserWarning, match="no forecast of this run: GPT2LMHeadModel: cannot be captured: .*shape"):
        run.train()
    assert run.state.global_step == 2
    run = trainer(tmp_path, fr.transformers.Forecast(fail_if_oom=True), kind=Choosy)
    with pytest.raises(fr.InputError, match="fail_if_oom: whether the run fits could not be judged: .*shape"):
        run.train()

    class Preparing(transformers.Trainer):
        def _prepare_inputs(self, inputs: Any) -> Any:
            return super()._prepare_inputs(inputs)

    with pytest.warns(UserWarning, match="Preparing: _prepare_inputs is its own"):
        trainer(tmp_path, fr.transformers.Forecast(), kind=Preparing, max_steps=1).train()
    forecast = fr.transformers.Forecast()
    with pytest.warns(UserWarning, match="is called by no transformers.Trainer"):
        forecast.on_train_begin(None, transformers.TrainerState(), None)
    run = trainer(tmp_path, fr.transformers.Forecast(), max_steps=1)
    run.accelerator.state._mixed_precision = "fp8"
    with pytest.warns(UserWarning, match="mixed_precision: cannot be fp8; known: no, bf16, fp16"):
        run.train()


def test_the_batch_size_is_what_fit_says(tmp_path: pathlib.Path) -> None:
    run = trainer(tmp_path)
    found = fr.transformers.batch_size(run, gpu="t4", margin=0.05, at_most=10**9)
    batch, twin = example(run), model().train()
    wanted = fr.fit(
        twin,
        optimizer=torch.optim.AdamW(twin.parameters(), fused=True),
        batch=dict(batch),
        loss_fn=lambda model, batch: model(**batch, num_items_in_batch=torch.tensor(60)).loss,
        loop="trainer",
        gpu="t4",
        margin="5%",
    ).batch
    assert wanted is not None and found == wanted > 1000
    assert run.optimizer is None and run.args.per_device_train_batch_size == 4


def test_what_a_run_will_take_is_told_before_it(tmp_path: pathlib.Path) -> None:
    forecast = fr.transformers.Forecast(gpu="l4")
    run = trainer(tmp_path, forecast, max_steps=1, gradient_accumulation_steps=2, bf16=True)
    before = fr.transformers.predict(run, gpu="l4")
    one = fr.transformers.predict(run, gpu="l4", zero=3, gpus=4)
    run.train()
    assert forecast.prediction is not None and before.json == forecast.prediction.json
    assert one.memory.allocated.bytes < before.memory.allocated.bytes


def test_training_is_in_batches_of_that_size(tmp_path: pathlib.Path) -> None:
    run = trainer(tmp_path, max_steps=2, data=Tokens(16))
    assert fr.transformers.batch_size(run, apply=True) == 16  # all samples there are
    run.train()
    assert run.state.epoch == 2 and len(example(run)["labels"]) == 16
    stream = trainer(tmp_path, data=Stream())
    with pytest.raises(fr.InputError, match="IterableDataset may not give a batch twice.*batch="):
        fr.transformers.batch_size(stream)
    assert fr.transformers.batch_size(stream, batch=example(run), at_most=8) == 8


def test_profiles_of_a_run_are_read(tmp_path: pathlib.Path) -> None:
    """A CPU's profile has no kernels of a GPU: ops alone."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        trainer(tmp_path, max_steps=2).train()
    profile.export_chrome_trace(str(tmp_path / "run.json"))
    trace = fr.trace(tmp_path / "run.json")
    assert "aten::addmm" in trace.columns("ops")["name"] and trace.columns("kernels").height == 0
    assert any("no work on a GPU was recorded" in warning for warning in trace.warnings)
