"""Imported first by tests that need the native part: skips the whole module where it is not built."""

from __future__ import annotations

import pytest

pytest.importorskip("forerun._native", reason="forerun's native part is not built: ./run python, or pip install .")
