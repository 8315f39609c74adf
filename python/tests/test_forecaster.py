"""What forecasts of all frameworks have in common: words and figures of a run on a GPU, and state that is put back."""
from __future__ import annotations

import collections
import random
from typing import Any, Dict, List

import needs_native  # noqa: F401
import needs_torch  # noqa: F401
import pytest
import torch
from framework_models import cross_entropy, network, samples

import forerun as fr
from forerun.forecaster import Forecaster, Measured, _Clock, measured_figures
from forerun.framework_step import FrameworkStep, first_batch
from forerun.kept_state import attributes_kept, random_state_kept


class Watched(Forecaster):
    """A run on a GPU that this machine need not have."""

    def __init__(self, gpu: str) -> None:
        super().__init__()
        net = network()
        batch = [entry[:8] for entry in samples().tensors]
        words = {"optimizer": torch.optim.Adam(net.parameters()), "batch": batch, "loss_fn": cross_entropy}
        self.logged: List[Dict[str, float]] = []
        self.gpu = "h200"
        self._begin(lambda: FrameworkStep(net, words), self.logged.append)
        self._run_gpu = gpu

    def end(self, iterations: int) -> None:
        for _ in range(iterations):
            self._iteration_ended()
        self._end(self.logged.append)


def test_figures_are_compared_on_the_same_gpu_alone(capsys: Any) -> None:
    Watched("NVIDIA H200 141GB HBM3e").end(8)
    assert "an iteration took" in capsys.readouterr().out
    prediction = Watched("").prediction
    assert prediction is not None
    took, reserved = 2 * prediction.iteration.ms, fr.Bytes(2 * prediction.memory.reserved.bytes)
    figures = measured_figures(prediction, Measured(took, reserved, "NVIDIA H200"))
    assert figures["forerun/iteration_error"] == figures["forerun/reserved_error"] == -0.5
    assert figures["forerun/measured_iteration_ms"] == took
    for other in ("NVIDIA A100-SXM4-80GB", None):
        assert "forerun/iteration_error" not in measured_figures(prediction, Measured(took, reserved, other))


def test_what_is_said_in_the_end(capsys: Any) -> None:
    run = Watched("NVIDIA A100-SXM4-80GB")
    run.end(8)
    said = capsys.readouterr().out
    assert "on NVIDIA A100-SXM4-80GB; the forecast is for NVIDIA H200, so nothing is compared with it" in said
    assert list(run.logged[1]) == ["forerun/measured_iteration_ms"]
    Watched("NVIDIA H200").end(5)
    assert "fewer than 6 iterations were run" in capsys.readouterr().out
    same = Watched("NVIDIA H200")
    same.end(8)
    assert "predicted were" in capsys.readouterr().out and "forerun/iteration_error" in same.logged[1]


class Event:
    """Of a GPU whose n-th event comes n * n milliseconds after the first."""

    made = 0
    waited: List[int] = []

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.number = 0

    def record(self) -> None:
        Event.made += 1
        self.number = Event.made

    def synchronize(self) -> None:
        self.waited.append(self.number)

    def elapsed_time(self, later: Event) -> float:
        return float(later.number**2 - self.number**2)


def test_a_gpu_tells_times_and_its_peak_itself(monkeypatch: Any) -> None:
    run = Watched("NVIDIA H200")
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: 3 << 30)
    run._clock = _Clock(on_gpu=True)
    run.end(9)
    # Events 1 to 5 are of iterations 5 to 9; 3, 5, 7 and 9 ms lie between them.
    assert run.measured == Measured(6.0, fr.Bytes(3 << 30), "NVIDIA H200") and Event.waited == [5]
    assert set(run.logged[1]) >= {"forerun/iteration_error", "forerun/reserved_error"}
    run._reserved_before = 3 << 30
    run.end(0)
    assert run.measured is not None and run.measured.reserved is None


def test_a_gpu_that_is_not_known_is_told() -> None:
    net = network()
    words = {"optimizer": torch.optim.Adam(net.parameters()), "batch": samples()[:8], "loss_fn": cross_entropy}
    with pytest.warns(UserWarning, match="no forecast of this run: .*h2000.*h200"):
        Forecaster(gpu="h2000")._begin(lambda: FrameworkStep(net, words), lambda figures: None)


def test_a_framework_that_is_another_inside_is_told() -> None:
    def step() -> FrameworkStep:
        raise AttributeError("no _build_kwargs")

    with pytest.warns(UserWarning, match="no forecast of this run: AttributeError: no _build_kwargs"):
        Forecaster()._begin(step, lambda figures: None)
    with pytest.raises(fr.InputError, match="could not be judged: AttributeError"):
        Forecaster(fail_if_oom=True)._begin(step, lambda figures: None)


def test_attributes_lists_and_tables_are_put_back() -> None:
    class Owner:
        def __init__(self) -> None:
            self.lists: Dict[str, List[int]] = collections.defaultdict(list, {"a": [1]})
            self.queue, self.names, self.count = collections.deque([1]), {"a"}, 1

    owner = Owner()
    lists, queue = owner.lists, owner.queue
    with pytest.raises(RuntimeError), attributes_kept(owner):
        owner.lists["a"].append(2)
        owner.lists["b"].append(3)
        owner.queue.append(2)
        owner.names.add("b")
        owner.count, owner.lists = 2, {}
        setattr(owner, "other", 1)
        raise RuntimeError
    assert owner.lists is lists and dict(lists) == {"a": [1]} and owner.queue is queue and list(queue) == [1]
    assert owner.names == {"a"} and owner.count == 1 and not hasattr(owner, "other")


def test_the_first_batch_is_given_again() -> None:
    generator = torch.Generator().manual_seed(5)
    loader = torch.utils.data.DataLoader(samples(), 8, shuffle=True, generator=generator)
    before = random.getstate(), torch.get_rng_state()
    batch = first_batch(loader)
    assert random.getstate() == before[0] and torch.equal(torch.get_rng_state(), before[1])
    assert torch.equal(batch[0], next(iter(loader))[0])
    with random_state_kept():
        drawn = torch.rand(1)
    assert torch.equal(drawn, torch.rand(1))
    with pytest.raises(fr.InputError, match="gives no batch"):
        first_batch([])
