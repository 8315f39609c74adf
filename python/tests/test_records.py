"""Records as lines, and what `check` finds."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest

from fake_instrument import ENVIRONMENT, whole_record
from forerun.records import HEAD, RecordError, check, encode, head

OP: Dict[str, Any] = {
    "schema": "op/1", "id": "0123", "grid": "gemm", "op": "aten.mm.default", "attributes": {}, "precision": "tf32",
    "inputs": [["float32", [8, 4], None], None], "outputs": [["float32", [8, 2], [1, 8]]], "us": 3.5, "spread": 0.01,
    "kernels": [["gemm", 3.4]], "workspace": 0, "status": "ok",
}


def test_a_line_is_compact_and_begins_with_schema_id_status() -> None:
    line = encode({"family": "vit", "status": "ok", "id": "a", "schema": "run/2", "args": {"x": [1, 2.5, None]}})
    assert line == b'{"schema":"run/2","id":"a","status":"ok","family":"vit","args":{"x":[1,2.5,null]}}\n'


def test_text_stays_on_one_line_and_comes_back() -> None:
    record = {"schema": "run/2", "id": "a\nb \u00e9 \u2028 \"q\" \\"}
    line = encode(record)
    assert line.count(b"\n") == 1
    assert json.loads(line) == record
    assert json.loads(encode({"name": "lone \ud800 half"})) == {"name": "lone ? half"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), object(), {1, 2}, b"bytes"])
def test_what_json_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(RecordError, match="'r7'"):
        encode({"schema": "run/2", "id": "r7", "deep": [{"x": value}]})


def test_the_head_is_read_alone() -> None:
    record = {**whole_record('a "quoted" \\ id,"status":"oom"'), "args": {"deep": [{"\u00e9": "},{"}]}}
    assert head(encode(record)) == {name: record[name] for name in HEAD}
    cut = encode(record).index(b'"env"') + 5
    assert head(encode(record)[:cut] + b"what follows is not read}\n") == {name: record[name] for name in HEAD}
    assert head(encode(OP)) == {"schema": "op/1", "id": "0123", "status": "ok"}


def test_the_head_of_other_writers_and_of_long_lines_is_found() -> None:
    record = {**whole_record(), "args": {"long": "\u00e9" * 50000}}
    assert head(encode(record)) == {name: record[name] for name in HEAD}
    backwards = json.dumps(dict(reversed(list(record.items())))).encode() + b"\n"
    assert head(backwards) == {name: record[name] for name in HEAD}
    assert head(b'{"schema":"env/1","gpu":"x"}\n') == {"schema": "env/1"}
    for broken in (b"", b"\n", b"[1]\n", b"{}}\n", b'{"id":"a","status"}\n', encode(record)[:-9] + b"\n"):
        with pytest.raises(ValueError):
            head(broken)


def test_whole_records_have_no_problems() -> None:
    assert check(whole_record()) == []
    assert check(OP) == []
    assert check({"schema": "env/1", **ENVIRONMENT}) == []


def test_a_capture_needs_nothing_measured() -> None:
    capture = whole_record()
    for name in ("host_us", "status", "mem", "mem_init", "base_allocated", "time_ms", "kernel_names", "kernels",
                 "profile", "alloc_trace", "cost_s", "env"):
        del capture[name]
    assert check({**capture, "backend": "generic"}) == []
    del capture["ops"]
    assert check(capture) == ["ops is missing"]


@pytest.mark.parametrize("name", sorted(set(whole_record()) - {"schema", "status", "alloc_trace"}))
def test_every_field_of_a_measured_record_is_required(name: str) -> None:
    record = whole_record()
    del record[name]
    assert f"{name} is missing" in check(record)


def test_oom_and_failed_need_their_reasons_only() -> None:
    base = {name: whole_record()[name] for name in ("schema", "id", "backend", "family", "args", "input", "run", "env")}
    assert check({**base, "status": "oom", "tried": {}, "cost_s": 1}) == []
    assert check({**base, "status": "failed", "error": "raised"}) == []
    assert check({**base, "status": "oom"}) == ["tried is missing", "cost_s is missing"]
    assert check({**base, "status": "failed"}) == ["error is missing"]


@pytest.mark.parametrize("path, value, problem", [
    (["backend"], "tpu", "backend is 'tpu', not one of cuda, generic"),
    (["status"], "fine", "status is 'fine', not one of ok, oom, failed"),
    (["run", "precision"], "fp8", "run.precision is 'fp8', not one of fp32, tf32, amp_bf16"),
    (["ops", "phase"], "fxu", "ops.phase has letters other than 'fbu': 'x'"),
    (["ops", "phase"], "fb", "columns of ops differ in length: name 3, phase 2, module 3, inputs 3"),
    (["kernels", "captured_ns"], [1], "columns of kernels differ in length"),
    (["frees", "op"], 3, "frees.op is no column"),
    (["tensors", "strides"], [-1, 4, -1, -1], "tensors.strides points outside shapes: -1 to 4 of 4"),
    (["tensors", "storage"], [0, 1, 2, -1], "tensors.storage points outside storages: -1 to 2 of 4"),
    (["ops", "inputs"], [[0, 1], [2], [4]], "ops.inputs points outside tensors: 0 to 4 of 4"),
    (["kernels", "op"], [0, -1, 3], "kernels.op points outside ops: -1 to 3 of 3"),
    (["frees", "op"], [2, 4], "frees.op points outside ops: 2 to 4 of 3"),
    (["storages", "host"], [4], "storages.host points outside storages: 4 to 4 of 4"),
    (["alloc_trace", "action"], "Saqf", "alloc_trace.action has letters other than 'arfSXMUO': 'q'"),
])
def test_what_is_wrong_with_a_run_is_said(path: List[str], value: object, problem: str) -> None:
    record = whole_record()
    place: Any = record
    for name in path[:-1]:
        place[name] = dict(place[name])
        place = place[name]
    place[path[-1]] = value
    problems = check(record)
    assert any(found.startswith(problem) for found in problems), problems


def test_what_is_wrong_with_an_op_is_said() -> None:
    assert check({**OP, "inputs": [["float32", [8, 4]]]}) == ["inputs[0] is not [dtype, shape, strides]"]
    assert check({**OP, "status": "failed"}) == ["error is missing"]
    assert "us is missing" in check({name: OP[name] for name in OP if name != "us"})
    assert check({"schema": "run/9"}) == ["schema is 'run/9', not one of 'run/2', 'run/3', 'op/1', 'env/1'"]
