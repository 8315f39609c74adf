"""docs/python.md: its reference is that of the docstrings, and its tutorial runs. So do examples of frameworks.md."""

from __future__ import annotations

import pathlib
import re
from typing import Any, Dict, List

import api_reference
import pytest

from forerun import torch_version


def examples(page: pathlib.Path) -> List[str]:
    text = page.read_text(encoding="utf-8").partition(api_reference.MARKER)[0]
    return re.findall(r"<!-- run -->\n```python\n(.*?)```", text, flags=re.DOTALL)


def test_the_reference_is_up_to_date() -> None:
    kept = api_reference.PAGE.read_text(encoding="utf-8").partition(api_reference.MARKER)[2]
    assert kept == api_reference.reference(), "run python3 python/tests/api_reference.py"


def test_the_tutorial_runs() -> None:
    pytest.importorskip("forerun._native", reason="forerun's native part is not built: ./run python, or pip install .")
    pytest.importorskip("pandas")
    blocks = examples(api_reference.PAGE)
    assert len(blocks) >= 3
    names: Dict[str, Any] = {}
    for block in blocks:
        if "import torch" in block and torch_version.problem() is not None:
            continue
        exec(compile(block, str(api_reference.PAGE), "exec"), names)


@pytest.mark.parametrize("framework", ["lightning", "transformers", "accelerate"])
def test_examples_of_frameworks_run(framework: str, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any) -> None:
    pytest.importorskip("forerun._native", reason="forerun's native part is not built: ./run python, or pip install .")
    pytest.importorskip(framework)
    state = pytest.importorskip("accelerate.state") if framework != "lightning" else None
    page = api_reference.ROOT / "docs/frameworks.md"
    (block,) = [block for block in examples(page) if f"import {framework}\n" in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(page), "exec"), {"__name__": "example"})
    assert "fits in" in capsys.readouterr().out
    if state is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)
