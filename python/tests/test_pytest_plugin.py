"""The pytest plugin, in sessions of pytest's own (`pytester`), and `forerun.check`."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import needs_native  # noqa: F401
import pytest

import forerun as fr

pytest_plugins = ["pytester"]
PACKAGE = str(Path(fr.__file__).resolve().parents[1])

GUARDED = """
import pytest

@pytest.mark.forerun(gpu="t4", fits=True, slower_than_baseline="10%", memory_above_baseline="5%")
@pytest.mark.parametrize("model", ["resnet18", "resnet34"])
def test_step(forecast, model):
    assert forecast(model, batch=BATCH).fits
"""


def needs(package: str) -> Any:
    """Skips without a package, which is not imported here: `pytester` forgets modules that a test imports."""
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


@pytest.fixture
def session(pytester: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs pytest with the plugin as an installed package has it, in a process of its own."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([PACKAGE, os.environ.get("PYTHONPATH", "")]))
    plugins = [] if _installed() else ["-p", "forerun.pytest_plugin"]

    def run(*options: str) -> Any:
        return pytester.runpytest_subprocess(*plugins, "-p", "no:cacheprovider", *options)

    return run


def _installed() -> bool:
    from importlib.metadata import entry_points

    found: Any = entry_points()
    names = found.select(group="pytest11") if hasattr(found, "select") else found.get("pytest11", [])
    return any(entry.name == "forerun" for entry in names)


def written(pytester: Any, text: str, batch: int = 8) -> Path:
    path: Path = pytester.makepyfile(test_net=text.replace("BATCH", str(batch)))
    return path


def test_a_test_is_held_to_its_baseline(pytester: Any, session: Any) -> None:
    written(pytester, GUARDED)
    lock = pytester.path / "forerun.lock"
    first = session()
    first.assert_outcomes(failed=2)
    first.stdout.fnmatch_lines(["*no baseline*", "*--forerun-update*"])
    assert not lock.exists()
    session("--forerun-update").assert_outcomes(passed=2)
    kept = lock.read_text()
    assert "test_net.py::test_step[resnet18]" in kept
    again = session()
    again.assert_outcomes(passed=2)
    again.stdout.fnmatch_lines(["*= forerun =*", "2 guards hold"])
    written(pytester, GUARDED, 16)
    slower = session()
    slower.assert_outcomes(failed=2)
    slower.stdout.fnmatch_lines(["*slower_than_baseline*+10.0 %*fails*"])
    assert lock.read_text() == kept
    session("--forerun-update", "-k", "resnet34").assert_outcomes(passed=1, deselected=1)
    assert '"batch\\":16' in lock.read_text() and '"batch\\":8' in lock.read_text()


@needs("xdist")
def test_workers_never_write(pytester: Any, session: Any) -> None:
    written(pytester, GUARDED)
    session("-n", "2", "--forerun-update").assert_outcomes(passed=2)
    kept = (pytester.path / "forerun.lock").read_text()
    (pytester.path / "forerun.lock").unlink()
    session("--forerun-update").assert_outcomes(passed=2)
    assert (pytester.path / "forerun.lock").read_text() == kept
    done = session("-n", "2")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["2 guards hold"])


def test_another_foreruns_baseline_blames_nobody(pytester: Any, session: Any) -> None:
    written(pytester, GUARDED)
    session("--forerun-update").assert_outcomes(passed=2)
    lock = pytester.path / "forerun.lock"
    faster = re.sub(r"iteration_ms = .*", "iteration_ms = 0.5", lock.read_text())
    lock.write_text(re.sub(r"models \w+", "models 0", faster))
    done = session()
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["2 guards hold; 2 not judged*", "*the baseline is of other models*"])


@needs("torch")
def test_own_modules_are_guarded(pytester: Any, session: Any) -> None:
    written(
        pytester,
        """
import pytest
import torch

@pytest.mark.forerun(gpu="t4")
class TestNet:
    @pytest.mark.forerun(iteration_ms_at_most=MOST)
    def test_net(self, forecast):
        model = torch.nn.Linear(512, 512)
        example = (torch.randn(BATCH, 512), torch.randn(BATCH, 512))
        loss = lambda model, batch: torch.nn.functional.mse_loss(model(batch[0]), batch[1])
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        assert "T4" in forecast(model, optimizer=optimizer, batch=example, loss_fn=loss).gpu
        with pytest.raises(ValueError, match="one name"):
            forecast("resnet18")
        forecast("resnet18", batch=BATCH, name="other")
""".replace("MOST", "1e6"),
    )
    done = session()
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["2 guards hold"])


def test_it_says_what_is_wrong(pytester: Any, session: Any) -> None:
    written(
        pytester,
        """
import pytest

@pytest.mark.forerun(fits=True)
def test_without_forecast(): pass

@pytest.mark.forerun(slower_then_baseline="10%")
def test_misspelt(forecast): forecast("resnet18")

@pytest.mark.forerun(gpu="t4")
def test_without_rule(forecast): forecast("resnet18")

@pytest.mark.forerun(fits=True, gpu="t5")
def test_gpu(forecast): forecast("resnet18")

@pytest.mark.forerun(fits=True, gpu="t4")
def test_too_large(forecast): forecast("llama2_7b")

def test_unmarked(forecast): assert forecast("resnet18").fits
""",
    )
    done = session("-rA")
    done.assert_outcomes(failed=4, errors=1, passed=1)
    for said in ["made none", "did you mean slower_than_baseline", "no rule says what must hold", "t5", "does not fit"]:
        done.stdout.fnmatch_lines([f"*{said}*"])


def test_a_lock_that_cannot_be_read_fails_the_session(pytester: Any, session: Any) -> None:
    written(pytester, GUARDED)
    (pytester.path / "forerun.lock").write_text("<<<<<<< HEAD\n")
    done = session()
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*forerun.lock, line 1*"])


def test_check_answers_with_types(tmp_path: Path) -> None:
    file = tmp_path / "forerun.toml"
    file.write_text('[guard.small]\nmodel = "resnet18"\nbatch = 4\nslower_than_baseline = "10%"\nfits = true\n')
    missing = fr.check(file)
    assert not missing.passes and [rule.verdict for rule in missing.failing[0].rules] == ["holds", "no_baseline"]
    assert missing.guards[0].baseline is None
    assert fr.check(file, update=True).passes
    answer = fr.check(file)
    rule = answer.guards[0].rules[1]
    assert answer.passes and rule.passes and rule.change == 0
    assert rule.before == fr.predict("resnet18", batch=4).iteration.ms
    assert "1 guard holds" in repr(answer)
    with pytest.raises(fr.InputError, match="nothere.toml"):
        fr.check(tmp_path / "nothere.toml")
