"""Ops taken out of measured iterations."""
import json
import pathlib
from typing import Any, Dict

from forerun import iteration_ops

Json = Dict[str, Any]

RECORD: Json = {
    "schema": "run/2", "id": "own/0", "family": "own", "status": "ok", "run": {"precision": "tf32"},
    "env": {"gpu": "NVIDIA H200"}, "op_names": ["aten.mm.default", "aten._foreach_add_.List"],
    "dtypes": ["float32"], "shapes": [[64, 32], [32, 16], [64, 16], [1, 32]], "attributes": [{}],
    "tensors": {"storage": [0, 1, 2], "dtype": [0, 0, 0], "shape": [0, 1, 2], "strides": [-1, 3, -1],
                "offset": [0, 0, 0]},
    "ops": {"name": [0, 0, 1, 0], "attributes": [0, 0, 0, 0], "inputs": [[0, 1], [0, 1], [0] * 40, [0, 1]],
            "outputs": [[2], [2], [], [2]]},
    # Two kernels of the first op run side by side; the last op has none, and one kernel belongs to nobody.
    "kernels": {"start": [0, 1000, 9000, 1000, 1000, 1000], "ns": [3000, 4000, 900, 600, 50, 70],
                "op": [0, 0, 1, 2, -1, 1]},
}


def test_equal_ops_are_one_sample_with_sum_span_and_count() -> None:
    environment, sample = iteration_ops.samples_of([RECORD])
    assert environment == {"schema": "env/1", "gpu": "NVIDIA H200"}
    assert sample["op"] == "aten.mm.default" and sample["family"] == "own" and sample["precision"] == "tf32"
    assert sample["inputs"] == [["float32", [64, 32], None], ["float32", [32, 16], [1, 32]]]
    assert sample["outputs"] == [["float32", [64, 16], None]]
    # 970 ns and 7,000 ns: the lower of the two in the middle; its kernels lie 3,000 ns apart.
    assert sample["kernels"] == [["", 0.97, 2]] and sample["us"] == 0.97
    times = iteration_ops.times_by_op(RECORD)
    assert (times[0].sum, times[0].span, times[0].count) == (7000, 5000, 2)


def test_a_family_has_samples_of_its_own() -> None:
    other = {**RECORD, "family": "other"}
    assert [entry.get("family") for entry in iteration_ops.samples_of([RECORD, other])] == [None, "own", "other"]


def test_the_command_writes_samples_and_names_what_it_cannot_read(tmp_path: pathlib.Path, capsys: Any) -> None:
    runs, out = tmp_path / "runs.jsonl", tmp_path / "ops.jsonl"
    runs.write_text(json.dumps(RECORD) + "\n" + json.dumps({**RECORD, "status": "oom"}) + "\n")
    assert iteration_ops.main([str(runs), "-o", str(out)]) == 0
    assert [json.loads(line)["schema"] for line in out.read_text().splitlines()] == ["env/1", "op/1"]
    runs.write_text(json.dumps({key: value for key, value in RECORD.items() if key != "kernels"}) + "\n")
    assert iteration_ops.main([str(runs), "-o", str(out)]) == 1
    assert "runs.jsonl:1: a run record without 'kernels'" in capsys.readouterr().err
    runs.write_text(json.dumps({"schema": "op/1"}) + "\n")
    assert iteration_ops.main([str(runs), "-o", str(out)]) == 1
    assert "there are no measured iterations" in capsys.readouterr().err
    assert iteration_ops.main([str(tmp_path / "nobody"), "-o", str(out)]) == 1
    assert "nobody" in capsys.readouterr().err
