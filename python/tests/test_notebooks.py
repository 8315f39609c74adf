"""The notebooks of examples/notebooks run to their end, with what they assert, and are kept without outputs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import needs_native  # noqa: F401
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
SECONDS_A_CELL = 120  # a hung kernel ends; each takes a few
NEEDED = ("nbclient", "ipykernel", "pandas")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDED + (("torch",) if "import torch" in path.read_text() else ()):
        pytest.importorskip(package, reason=f"the notebooks need {package}")
    nbclient: Any = pytest.importorskip("nbclient")
    nbformat: Any = pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, 4)
    nbclient.NotebookClient(notebook, timeout=SECONDS_A_CELL, resources={"metadata": {"path": path.parent}}).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_they_are_there_and_kept_without_outputs() -> None:
    assert len(NOTEBOOKS) == 5
    for path in NOTEBOOKS:
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        assert not any(cell["outputs"] or cell["execution_count"] for cell in cells), f"clear {path.name}"
        assert any("assert " in "".join(cell["source"]) for cell in cells), f"{path.name} asserts nothing"
