"""Finds the program `forerun-testbed`, or builds it from src/monitor: it needs nothing but a C++20 compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import List, Optional

_NAME = "forerun-testbed"
_SOURCES = Path(__file__).resolve().parents[3] / "src"


class NoProgram(Exception):
    """There is no such program here; the text says what to do."""


def find_program(given: Optional[str], build_in: Path) -> Path:
    """`given`, FORERUN_TESTBED, one on the path, one built before in the folder, or a new one there."""
    named = given or os.environ.get("FORERUN_TESTBED")
    if named:
        if not os.access(named, os.X_OK):
            raise NoProgram(f"{named} is no program that can be run")
        return Path(named)
    found = shutil.which(_NAME)
    if found:
        return Path(found)
    built = build_in / _NAME
    return built if os.access(built, os.X_OK) else build_program(built)


def build_program(target: Path) -> Path:
    """Compiles it to the target. Raises NoProgram where that fails."""
    sources = [path for path in sorted((_SOURCES / "monitor").glob("*.cpp")) if not path.name.endswith("_test.cpp")]
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not sources or not compiler:
        raise NoProgram(f"{_NAME} is not here and cannot be built: it needs src/monitor and g++; "
                        "build it with ./run build and give its path by --program")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    command: List[str] = [compiler, "-O2", "-std=c++20", f"-I{_SOURCES}", *map(str, sources), "-o", str(part), "-ldl",
                          "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoProgram(f"{_NAME} does not compile: {done.stderr[:2000]}")
    part.replace(target)
    return target
