"""The stub of the native part says what is there, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Dict, Set

import needs_native  # noqa: F401

import forerun
from forerun.api.asking import native

STUB = Path(forerun.__file__).with_name("_native.pyi")


def stubbed() -> Dict[str, Set[str]]:
    """Names of the stub; of classes, their members."""
    names: Dict[str, Set[str]] = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ClassDef):
            members: Set[str] = set()
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    members.add(part.name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    members.add(part.target.id)
            names[node.name] = members - {"__init__", "__len__"}
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = set()
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = set()
    return names


def test_the_stub_has_what_the_module_has() -> None:
    module = native()
    names = stubbed()
    assert {name for name in vars(module) if not name.startswith("__")} == {n for n in names if not n.startswith("__")}
    for name, members in names.items():
        if isinstance(getattr(module, name), type):
            there = {member for member in vars(getattr(module, name)) if not member.startswith("_")}
            assert there == members, name


def test_the_package_says_it_is_typed() -> None:
    assert STUB.with_name("py.typed").is_file()
