"""Packed records against a pair of lines, plain and as the program packs it; src/ingest/capture reads the same pair."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from forerun.packed_records import unpack
from forerun.records import check

Json = Dict[str, Any]

PAIR = Path(__file__).parents[2] / "tests" / "data" / "packed_record.jsonl"
LAUNCHES = ("launch", "launch_ns", "thread", "captured_ns")


@pytest.fixture(name="pair")
def _pair() -> List[Json]:
    return [json.loads(line) for line in PAIR.read_text(encoding="utf-8").splitlines()]


def test_unpacking_gives_the_plain_columns(pair: List[Json]) -> None:
    plain, packed = pair
    unpacked = unpack(packed)
    assert unpacked.pop("launches") == {"count": 4, "ns": 200, "p10_ns": 50, "p50_ns": 50, "p90_ns": 50}
    kernels = {name: column for name, column in plain["kernels"].items() if name not in LAUNCHES}
    expected = {**plain, "kernels": kernels}
    assert _without_tables(unpacked) == _without_tables(expected)
    assert _tensors(unpacked) == _tensors(plain)


def test_a_packed_record_is_whole(pair: List[Json]) -> None:
    assert check(pair[1]) == []
    broken = json.loads(json.dumps(pair[1]))
    broken["tensors"]["storage"]["differences"][0] = 99
    assert check(broken) == ["tensors.storage points outside storages: 99 to 102 of 5"]


def test_other_records_stay_as_they_are(pair: List[Json]) -> None:
    assert unpack(pair[0]) == pair[0]
    assert unpack({"schema": "op/1", "us": 1.5}) == {"schema": "op/1", "us": 1.5}


def _without_tables(record: Json) -> Json:
    """Tables of shapes may be in another order, and so the numbers that point into them."""
    return {name: value for name, value in record.items() if name not in ("shapes", "tensors")}


def _tensors(record: Json) -> List[object]:
    columns, shapes = record["tensors"], record["shapes"]
    return [
        (storage, dtype, shapes[shape], shapes[strides] if strides >= 0 else None, offset)
        for storage, dtype, shape, strides, offset in zip(
            columns["storage"], columns["dtype"], columns["shape"], columns["strides"], columns["offset"])
    ]
