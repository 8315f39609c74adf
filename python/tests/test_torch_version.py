"""What tools and tests say where PyTorch is absent or too old."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
from typing import Any, Optional

import pytest
from forerun import torch_version


def with_torch(monkeypatch: pytest.MonkeyPatch, version: Optional[str]) -> None:
    spec: Any = None if version is None else object()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)


@pytest.mark.parametrize("version, word", [(None, "not installed"), ("1.13.0a0", "1.13.0a0"), ("2.3.1", "2.3.1")])
def test_refuses(monkeypatch: pytest.MonkeyPatch, version: Optional[str], word: str) -> None:
    with_torch(monkeypatch, version)
    assert word in str(torch_version.problem())
    with pytest.raises(ImportError, match="2.4 or later"):
        torch_version.require("forerun.capture")
    with pytest.raises(SystemExit, match="2.4 or later"):
        torch_version.require("__main__")


@pytest.mark.parametrize("version", ["2.4.0", "2.13.0+cpu", "3.0"])
def test_accepts(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    with_torch(monkeypatch, version)
    assert torch_version.problem() is None
    torch_version.require("__main__")


def test_a_version_that_was_never_tried_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torch(monkeypatch, "2.13.1+cpu")
    assert torch_version.untried() is None
    with_torch(monkeypatch, "2.14.0")
    assert "PyTorch 2.14.0 is newer" in str(torch_version.untried())


def test_a_tool_without_torch_ends_with_one_sentence() -> None:
    if torch_version.problem() is None:
        pytest.skip("this Python has a PyTorch that will do")
    command = [sys.executable, "-m", "forerun.capture", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("forerun: PyTorch")
    assert "Traceback" not in done.stderr
