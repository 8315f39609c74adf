"""Which line of the user's program is at work: the nearest frame outside PyTorch, Forerun and Python's own library."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Optional

import torch

_PACKAGES = ("site-packages", "dist-packages")
_FOREIGN = tuple(
    os.path.join(os.path.dirname(os.path.abspath(file)), "") for file in (torch.__file__, __file__)
)
_SESSION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capture_session.py")
_STDLIB = os.path.join(sysconfig.get_paths()["stdlib"], "")


def source_line() -> str:
    """``"model.py:12"``, with the path within its package or below the working directory.

    What a capture runs outside the program's code is its backward pass.
    """
    frame: Optional[object] = sys._getframe(1)
    while frame is not None:
        code = frame.f_code  # type: ignore[attr-defined]
        if code.co_filename == _SESSION:
            return "the backward pass"
        if not _is_foreign(code.co_filename):
            return f"{_short(code.co_filename)}:{frame.f_lineno}"  # type: ignore[attr-defined]
        frame = frame.f_back  # type: ignore[attr-defined]
    return "an unknown line"


def _is_foreign(file: str) -> bool:
    if file.startswith("<") or file.startswith(_FOREIGN):
        return True
    return file.startswith(_STDLIB) and not any(part in file for part in _PACKAGES)


def _short(file: str) -> str:
    for part in _PACKAGES:
        _, found, rest = file.rpartition(f"{os.sep}{part}{os.sep}")
        if found:
            return rest
    below = os.path.relpath(file)
    return os.path.basename(file) if below.startswith("..") else below
