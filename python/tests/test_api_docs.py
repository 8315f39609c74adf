"""docs/python.md: its reference is that of the docstrings, and its tutorial runs."""

from __future__ import annotations

import re
from typing import Any, Dict, List

import api_reference
import pytest

from forerun import torch_version


def tutorial() -> List[str]:
    page = api_reference.PAGE.read_text(encoding="utf-8").partition(api_reference.MARKER)[0]
    return re.findall(r"<!-- run -->\n```python\n(.*?)```", page, flags=re.DOTALL)


def test_the_reference_is_up_to_date() -> None:
    kept = api_reference.PAGE.read_text(encoding="utf-8").partition(api_reference.MARKER)[2]
    assert kept == api_reference.reference(), "run python3 python/tests/api_reference.py"


def test_the_tutorial_runs() -> None:
    pytest.importorskip("forerun._native", reason="forerun's native part is not built: ./run python, or pip install .")
    pytest.importorskip("pandas")
    blocks = tutorial()
    assert len(blocks) >= 3
    names: Dict[str, Any] = {}
    for block in blocks:
        if "import torch" in block and torch_version.problem() is not None:
            continue
        exec(compile(block, str(api_reference.PAGE), "exec"), names)
