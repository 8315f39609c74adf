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


def test_what_cannot_be_used_is_named(tmp_path: Any, capsys: Any) -> None:
    def said(*arguments: str) -> str:
        assert setup_pairs.main(arguments) == 1
        return str(capsys.readouterr().err)

    out = str(tmp_path / "pairs.jsonl")
    assert "nobody.py: there is no such file" in said(str(tmp_path / "nobody.py"), "-o", out)
    set_ups = tmp_path / "set_ups.py"
    broken = {"x = 1": "defines no SETUPS", "import nobody": "ModuleNotFoundError", "(": "SyntaxError"}
    for text, word in broken.items():
        set_ups.write_text(text)
        assert word in said(str(set_ups), "-o", out)
    assert "no set-up nobody; there are images, tokens" in said(EXAMPLE, "nobody", "-o", out)
    if not torch.cuda.is_available():
        assert "no CUDA GPU" in said(EXAMPLE, "-o", out)
    pairs = tmp_path / "pairs.jsonl"
    for text, word in (("", "holds no pairs"), ("{\n", "pairs.jsonl:1: this is no JSON"), ("[1]\n", ":1: a row has"),
                       ('{"name": "a", "error": "x"}\n{"name": "b", "capture": {}}\n', ":2: a row has")):
        pairs.write_text(text)
        assert word in said("--table", str(pairs))
    assert "No such file" in said("--table", str(tmp_path / "nobody.jsonl"))
    (tmp_path / "broken.jsonl.gz").write_bytes(b"no gzip")
    assert "broken.jsonl.gz" in said("--table", str(tmp_path / "broken.jsonl.gz"))
    pairs.write_text(json.dumps({"name": "a", "measured": MEASURED, "capture": {}}) + "\n")
    assert "there is no such program" in said("--table", str(pairs), "--program", str(tmp_path / "nobody"))


def test_a_process_that_dies_is_one_row(tmp_path: Any) -> None:
    set_ups = tmp_path / "set_ups.py"
    set_ups.write_text("import os\nSETUPS = {'dies': lambda device: os._exit(7)}\n")
    rows = [{"name": "dies"}]
    assert list(setup_pairs.each_done("capture", str(set_ups), rows, 1)) == [
        ({"name": "dies"}, {"error": "capture: its process ended with exit code 7"})]
