"""Imported first by tests that need PyTorch: skips the whole module where there is none that will do."""

from __future__ import annotations

import pytest
from forerun import torch_version

if torch_version.problem() is not None:
    pytest.skip(f"needs PyTorch: {torch_version.problem()}", allow_module_level=True)
