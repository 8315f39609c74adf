"""Answers in columns are as docs/schema/ask says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

import needs_native  # noqa: F401
import pytest

from forerun.api.asking import ask

ROOT = Path(__file__).resolve().parents[2]
CASES: Dict[str, Dict[str, Any]] = {
    "ops": {"model": "resnet18", "batch": 4},
    "memory": {"model": "resnet18", "batch": 4},
    "sweep": {"model": "resnet18", "over": {"batch": [4, 8]}, "samples": 1e6, "price": {"h200": 3}},
    "sweep/shard": {"model": "resnet18", "over": {"batch": [4, 8]}, "shard": "1/2"},
    "trace": {"files": [str(ROOT / "tests/corpus/kineto/small.json")]},
}


def answer_to(case: str) -> Any:
    return json.loads(ask(case.split("/")[0], CASES[case]))


@pytest.mark.parametrize("case", CASES)
def test_an_answer_has_its_schema(case: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    answer = answer_to(case)
    name = answer["schema"].split(".", 1)[1].split("/")[0]
    schema = json.loads((ROOT / f"docs/schema/ask/{name}.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(answer)


def test_every_schema_is_held_to() -> None:
    named = {answer_to(case)["schema"] for case in CASES}
    kept = [json.loads(path.read_text()) for path in (ROOT / "docs/schema/ask").glob("*.json")]
    assert named == {schema["properties"]["schema"]["const"] for schema in kept}
