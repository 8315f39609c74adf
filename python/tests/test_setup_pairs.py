"""Set-ups measured and predicted: what needs no GPU of it."""
import json
import pathlib
import stat
from typing import Any

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun import setup_pairs  # noqa: E402

EXAMPLE = str(pathlib.Path(__file__).parents[2] / "examples" / "setups.py")
MEASURED = {"gpu": "NVIDIA H200", "gpu_ms": 2.0, "iter_ms": 5.0, "peak_allocated": 1000, "peak_reserved": 2000}


def test_the_examples_are_captured_and_run() -> None:
    set_ups = setup_pairs.set_ups_of(EXAMPLE)
    for name, set_up in set_ups.items():
        record = setup_pairs.captured(set_up, name)
        assert record["id"] == name and "warnings" not in record
    assert setup_pairs.captured(set_ups["tokens"], "tokens")["run"]["accumulate"] == 2
    device = torch.device("cpu")
    task = setup_pairs.task_of(set_ups["tokens"](device), device)
    assert task.accumulate == 2 and task.clip_grad == 1.0 and task.autocast is None
    assert setup_pairs.task_of(set_ups["images"](device), device).autocast is torch.bfloat16


def test_the_table_has_errors_means_and_medians(tmp_path: Any, capsys: Any) -> None:
    program = tmp_path / "forerun"
    said = {"gpu_ms": 2.2, "iter_ms": 4.0, "peak_allocated": 1000, "peak_reserved": 2100}
    program.write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"name": "a", "measured": MEASURED, "capture": {}}, {"name": "b", "error": "measured: no memory"}]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert setup_pairs.main(["--table", str(pairs), "--program", str(program)]) == 1  # one failed
    out, err = capsys.readouterr()
    assert err == "forerun.setup_pairs: b: measured: no memory\n"
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["a", "+10.0", "%", "-20.0", "%", "+0.0", "%", "+5.0", "%"]
    assert lines[2][3:] == ["10.0", "%", "20.0", "%", "0.0", "%", "5.0", "%"]


def test_files_without_set_ups_are_refused(tmp_path: Any) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    with pytest.raises(SystemExit, match="defines no SETUPS"):
        setup_pairs.set_ups_of(str(empty))
    with pytest.raises(SystemExit):
        setup_pairs.main([EXAMPLE, "nobody", "-o", str(tmp_path / "pairs.jsonl")])
