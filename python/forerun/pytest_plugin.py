"""A pytest plugin that guards predictions: no GPU is needed, and no noise makes a test flake (docs/check.md).

    @pytest.mark.forerun(gpu="a100", fits=True, slower_than_baseline="10%")
    def test_training_step(forecast):
        model = Net()
        forecast(model, optimizer=torch.optim.AdamW(model.parameters()), batch=example)

The mark says what must hold, and words of `forerun.predict` that the test does not give itself; the test's fixture
`forecast` predicts, judges and fails the test where a rule does not hold. The guard's name is the test's id. Baselines
are in forerun.lock of pytest's rootdir; `pytest --forerun-update` writes them. Worker processes of pytest-xdist only
read the lock: the process that started them writes it.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

import pytest

from .api.quantities import Bytes
from .errors import InputError

if TYPE_CHECKING:
    from .api.prediction import Prediction

LOCK = "forerun.lock"
_RULES = ("fits", "slower_than_baseline", "memory_above_baseline", "iteration_ms_at_most", "reserved_gib_at_most")
_PROPERTY = "forerun"  # of a test's report, which workers send home
_FORECASTS = pytest.StashKey[List[str]]()  # of a test: the names that it gave its guards


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("forerun", "predictions of training runs")
    group.addoption(
        "--forerun-update",
        action="store_true",
        help=f"keep the figures that tests marked `forerun` predict now as their baseline, in {LOCK} of the rootdir",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "forerun(gpu=..., fits=True, slower_than_baseline='10%', ...): what must hold of the runs that the test gives "
        "to the fixture `forecast`, and words of forerun.predict",
    )
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary(config), "forerun-summary")


def _lock_of(config: pytest.Config) -> Path:
    return Path(config.rootpath) / LOCK


class Forecast:
    """Predicts a run and holds it to the rules of the test's mark."""

    def __init__(self, item: pytest.Item) -> None:
        marks = list(item.iter_markers("forerun"))
        words: Dict[str, Any] = {}
        for mark in reversed(marks):  # the closest one last: it has the last word
            if mark.args:
                pytest.fail("@pytest.mark.forerun takes words: gpu=..., fits=True", pytrace=False)
            words.update(mark.kwargs)
        self._item = item
        self._judges = bool(marks)
        self._rules = {name: words.pop(name) for name in _RULES if name in words}
        self._words = words
        self._names: List[str] = []
        item.stash[_FORECASTS] = self._names
        for word in words:
            for rule in difflib.get_close_matches(word, _RULES, 1, 0.8):
                pytest.fail(f"@pytest.mark.forerun has no {word}: did you mean {rule}?", pytrace=False)

    def __call__(self, model: Any, *, name: str = "", **words: Any) -> Prediction:
        """The prediction, where the rules hold; fails the test where one does not.

        :param model: as `forerun.predict` takes it
        :param name: tells several forecasts of one test apart
        :param words: those of `forerun.predict`; they go before the mark's
        """
        __tracebackhide__ = True
        from .api.prediction import predict

        given = {**self._words, **words}
        guard = _test_id(self._item) + (f" {name}" if name else "")
        if guard in self._names:
            remedy = 'give each its own: forecast(..., name="large")'
            raise InputError("two forecasts of one test have one name", guard, remedy)
        self._names.append(guard)
        prediction = predict(model, **given)
        if self._judges:
            self._judge(
                {
                    "name": guard,
                    "asked": _asked(prediction, given),
                    "gpu": prediction.gpu,
                    "iteration_ms": prediction.iteration.ms,
                    "reserved_gib": Bytes(prediction.json["peak_reserved"]).gib,
                    "verdict": prediction.verdict,
                    **self._rules,
                }
            )
        return prediction

    def _judge(self, guarded: Dict[str, Any]) -> None:
        __tracebackhide__ = True
        from .api.guards import judge

        config = self._item.config
        answer = judge(_lock_of(config), [guarded])
        self._item.user_properties.append((_PROPERTY, json.dumps(guarded)))
        updating = config.getoption("forerun_update")
        failing = [rule for rule in answer.guards[0].rules if not rule.passes]
        if any(not (updating and rule.rule.endswith("_baseline")) for rule in failing):
            pytest.fail(f"{answer}\n(pytest --forerun-update takes the figures of now as baseline)", pytrace=False)


def _test_id(item: pytest.Item) -> str:
    """The same with and without pytest-xdist, whose workers add the group of a test."""
    grouped = hasattr(item.config, "workerinput") and item.get_closest_marker("xdist_group") is not None
    return item.nodeid.rpartition("@")[0] or item.nodeid if grouped else item.nodeid


def _asked(prediction: Prediction, words: Mapping[str, Any]) -> str:
    """What was predicted, in words that a file can keep: modules, optimizers and tensors are left out."""
    kept = {word: value for word, value in words.items() if isinstance(value, (str, int, float, bool, list, dict))}
    try:
        return json.dumps({"model": prediction.id, **kept}, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError):
        return json.dumps({"model": prediction.id})


@pytest.fixture
def forecast(request: pytest.FixtureRequest) -> Forecast:
    """forecast(model, **words): the prediction of a training run, held to what @pytest.mark.forerun says."""
    return Forecast(request.node)


@pytest.hookimpl(trylast=True)  # behind the test itself, and only where that passed
def pytest_runtest_call(item: pytest.Item) -> None:
    if item.get_closest_marker("forerun") is not None and not item.stash.get(_FORECASTS, []):
        pytest.fail(
            "@pytest.mark.forerun says what must hold of a prediction, and the test made none: "
            "take the fixture `forecast` and call forecast(model, ...)",
            pytrace=False,
        )


class _Summary:
    """What all tests predicted: told at the end, and written where the user asked for it. Not in worker processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._guards: Dict[str, Dict[str, Any]] = {}
        self._told: Optional[str] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _PROPERTY:
                guarded = json.loads(str(value))
                self._guards[guarded["name"]] = guarded

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._guards:
            return
        from .api.guards import judge

        guards = [self._guards[name] for name in sorted(self._guards)]
        try:
            answer = judge(_lock_of(self._config), guards, update=self._config.getoption("forerun_update"))
        except InputError as error:
            self._told = f"ERROR: {error}"
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        else:
            self._told = repr(answer)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._told is not None:
            terminalreporter.section("forerun")
            terminalreporter.write_line(self._told)
