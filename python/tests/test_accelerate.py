"""forerun.accelerate with Accelerate itself: what is captured, what stays as it was, what is refused."""
from __future__ import annotations

import types
from typing import Any, Dict, List

import needs_native  # noqa: F401
import needs_torch  # noqa: F401
import pytest
import torch

accelerate: Any = pytest.importorskip("accelerate")

from framework_models import cross_entropy, iteration, network, samples  # noqa: E402

import forerun as fr  # noqa: E402
from forerun.accelerate import parallel_words  # noqa: E402


@pytest.fixture(autouse=True)
def _one_state_each() -> Any:
    yield
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


class Tracker(accelerate.tracking.GeneralTracker):
    """Keeps what is logged."""

    name = "notes"
    requires_logging_directory = False

    def __init__(self) -> None:
        super().__init__()
        self.figures: Dict[str, Any] = {}

    @property
    def tracker(self) -> Any:
        return self.figures

    def store_init_configuration(self, values: Any) -> None:
        pass

    def log(self, values: Dict[str, Any], step: Any = None, **_: Any) -> None:
        self.figures.update(values)


class Run:
    """A loop as people write it."""

    def __init__(self, **settings: Any) -> None:
        torch.manual_seed(2)
        self.tracker = Tracker()
        self.accelerator = accelerate.Accelerator(cpu=True, log_with=self.tracker, **settings)
        self.accelerator.init_trackers("run")
        net = network()
        self.loader = torch.utils.data.DataLoader(samples(), 8, shuffle=True)
        optimizer = torch.optim.Adam(net.parameters())
        self.model, self.optimizer, self.loader = self.accelerator.prepare(net, optimizer, self.loader)
        self.batch = [entry[:8] for entry in samples().tensors]
        self.losses: List[float] = []

    def forecast(self, **words: Any) -> Any:
        return fr.accelerate.Forecast(
            self.accelerator, self.model, self.optimizer, self.batch, cross_entropy, **words
        )

    def train(self) -> None:
        for batch in self.loader:
            with self.accelerator.accumulate(self.model):
                loss = cross_entropy(self.model, batch)
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self.losses.append(loss.item())


@pytest.mark.parametrize(
    "settings, words",
    [
        ({}, {}),
        ({"mixed_precision": "bf16"}, {"precision": "amp_bf16"}),
        ({"gradient_accumulation_steps": 2}, {"accumulate": 2, "clip_grad": 0.5}),
    ],
)
def test_the_step_is_captured_as_accelerate_runs_it(settings: Any, words: Any) -> None:
    run = Run(**settings)
    clip = {key: value for key, value in words.items() if key == "clip_grad"}
    with run.forecast(gpu="a100", **clip) as forecast:
        run.train()
    twin = network()
    own = fr.capture(twin, torch.optim.Adam(twin.parameters()), run.batch, cross_entropy, loop="accelerate", **words)
    assert forecast.record is not None and iteration(forecast.record) == iteration(own)
    assert forecast.prediction is not None and forecast.prediction.json == fr.predict(own, gpu="a100").json
    assert len(run.losses) == 8


@pytest.mark.parametrize("settings", [{}, {"mixed_precision": "bf16", "gradient_accumulation_steps": 2}])
def test_training_goes_as_without_a_forecast(settings: Any) -> None:
    plain, watched = Run(**settings), Run(**settings)
    for run in (plain, watched):
        torch.manual_seed(3)
        if run is watched:
            with run.forecast():
                run.train()
        else:
            run.train()
    assert plain.losses == watched.losses and len(plain.losses) == 8
    state = watched.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in plain.model.state_dict().items())


def test_trackers_get_the_forecast_and_what_was_measured(capsys: Any) -> None:
    run = Run()
    with run.forecast() as forecast:
        run.train()
    figures = run.tracker.figures
    assert forecast.prediction is not None and forecast.measured is not None
    assert figures["forerun/predicted_iteration_ms"] == forecast.prediction.iteration.ms
    assert figures["forerun/measured_iteration_ms"] == forecast.measured.iteration_ms
    said = capsys.readouterr().out
    assert "the run is on no GPU: the forecast is for NVIDIA H200" in said and "nothing is compared with it" in said


def vast(model: Any, batch: Any) -> Any:
    """Fits nowhere."""
    return cross_entropy(model, [entry.repeat_interleave(1 << 26, 0) for entry in batch])


def test_a_run_that_does_not_fit_ends_before_its_first_step() -> None:
    run = Run()
    given = (run.accelerator, run.model, run.optimizer, run.batch, vast)
    with pytest.raises(fr.DoesNotFit, match="does not fit in"):
        with fr.accelerate.Forecast(*given, gpu="t4", fail_if_oom=True):
            run.train()
    assert run.losses == []
    with pytest.raises(fr.DoesNotFit, match="not even a batch of 1 surely fits"):
        fr.accelerate.find_batch_size(*given, gpu="t4")


def test_what_cannot_be_forecast_is_told_and_trained() -> None:
    run = Run()

    def choosy(model: Any, batch: Any) -> Any:
        out = model(batch[0])
        return out[out > 0].sum()

    given = (run.accelerator, run.model, run.optimizer, run.batch, choosy)
    with pytest.warns(UserWarning, match="no forecast of this run: .*shape"):
        with fr.accelerate.Forecast(*given) as forecast:
            run.train()
    assert len(run.losses) == 8 and forecast.measured is None
    with pytest.raises(fr.InputError, match="fail_if_oom: whether the run fits could not be judged"):
        fr.accelerate.Forecast(*given, fail_if_oom=True).__enter__()


def test_the_batch_size_is_what_fit_says() -> None:
    run = Run(mixed_precision="bf16")
    given = (run.accelerator, run.model, run.optimizer, run.batch, cross_entropy)
    found = fr.accelerate.find_batch_size(*given, gpu="l4", margin=0.05)
    twin = network()
    wanted = fr.fit(
        twin,
        optimizer=torch.optim.Adam(twin.parameters()),
        batch=run.batch,
        loss_fn=cross_entropy,
        precision="amp_bf16",
        loop="accelerate",
        gpu="l4",
        margin="5%",
    ).batch
    assert wanted is not None and found == wanted > 10_000
    assert fr.accelerate.find_batch_size(*given, at_most=64) == 64


def test_shares_of_many_gpus_are_told_and_other_ways_refused() -> None:
    def on(kind: str, sharding: str = "") -> Any:
        state = types.SimpleNamespace(fsdp_plugin=types.SimpleNamespace(sharding_strategy=sharding or None))
        return types.SimpleNamespace(distributed_type=kind, num_processes=4, state=state)

    words, said = parallel_words(on("MULTI_GPU"))
    assert words == {"ddp": True, "gpus": 4} and "one of 4 GPUs" in said[0]
    assert parallel_words(on("FSDP"))[0] == {"zero": 3, "gpus": 4}
    assert parallel_words(on("FSDP", "SHARD_GRAD_OP"))[0] == {"zero": 2, "gpus": 4}
    with pytest.raises(fr.InputError, match="training by DEEPSPEED is not forecast.*forerun.scale"):
        parallel_words(on("DEEPSPEED"))
    net = network()
    own = fr.capture(net, torch.optim.Adam(net.parameters()), [entry[:8] for entry in samples().tensors])
    ways: List[Dict[str, Any]] = [{"ddp": True, "gpus": 4}, {"zero": 2, "gpus": 4}, {"zero": 3, "gpus": 4}]
    for way in ways:
        assert fr.predict(own, gpu="t4", **way).memory.allocated != fr.predict(own, gpu="t4").memory.allocated


def test_what_is_compiled_is_forecast_as_it_was_written(capsys: Any) -> None:
    run = Run()
    eager = run.forecast()
    with eager:
        pass
    run.model = torch.compile(run.model, backend="eager")
    compiled = run.forecast()
    with compiled:
        pass
    assert iteration(eager.record) == iteration(compiled.record)
    assert "torch.compile: the forecast is of the iteration that runs without it" in capsys.readouterr().out
