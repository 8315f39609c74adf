"""Tests marked `sampled` are many and alike. FORERUN_SHARE=I/N runs every N-th of them, others with another I."""

from __future__ import annotations

import os
import zlib
from typing import Any, List

import pytest


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "sampled: many cases alike, of which FORERUN_SHARE=I/N runs every N-th")


def pytest_collection_modifyitems(config: Any, items: List[Any]) -> None:
    share = os.environ.get("FORERUN_SHARE", "")
    if not share:
        return
    try:
        number, parts = (int(word) for word in share.split("/"))
        assert parts > 0
    except (ValueError, AssertionError):
        raise pytest.UsageError(f"FORERUN_SHARE={share}: give I/N, as 3/8") from None
    left_out = [item for item in items if item.get_closest_marker("sampled") and _part(item, parts) != number % parts]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _part(item: Any, parts: int) -> int:
    """By name, so that a case stays in its part when others are added."""
    return zlib.crc32(item.name.encode()) % parts
