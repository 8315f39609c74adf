"""Looks whether a PyTorch is here that the package can work with, before anything imports it."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from typing import Optional, Tuple

OLDEST: Tuple[int, int] = (2, 4)
NEWEST: Tuple[int, int] = (2, 13)  # that was tried
_REMEDY = (
    f"install PyTorch {OLDEST[0]}.{OLDEST[1]} or later ({NEWEST[0]}.{NEWEST[1]} is the newest that was tried; a CPU "
    "build is enough to capture)"
)


def problem() -> Optional[str]:
    """What is wrong with the installed PyTorch, and what to do; None where it will do."""
    if importlib.util.find_spec("torch") is None:
        return f"PyTorch is not installed; {_REMEDY}"
    if installed() < OLDEST:
        return f"PyTorch {_version()} is too old; {_REMEDY}"
    return None


def untried() -> Optional[str]:
    """What to know of a PyTorch that is newer than any that was tried; None of others."""
    if installed() <= NEWEST:
        return None
    newest = f"{NEWEST[0]}.{NEWEST[1]}"
    return f"PyTorch {_version()} is newer than any that captures were tried with, the last of which is {newest}"


def installed() -> Tuple[int, int]:
    """Of the PyTorch that is there: (2, 13)."""
    found = re.match(r"(\d+)\.(\d+)", _version())
    return (int(found.group(1)), int(found.group(2))) if found else OLDEST


def _version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:  # distributions build it without metadata
        import torch
        return str(torch.__version__)


def require(module: str) -> None:
    """Ends a program (`module` is "__main__") with one sentence; refuses an import with the same words."""
    wrong = problem()
    if wrong is None:
        return
    if module == "__main__":
        raise SystemExit(f"forerun: {wrong}")
    raise ImportError(wrong)
