"""Forerun: how a deep-learning training run will go before it is run.

    import forerun as fr
    p = fr.predict("resnet50", gpu="a100", batch=64, precision="amp_bf16")
    p.iteration.ms, p.memory.reserved.gib, p.fits

Questions (predict, fit, compare, sweep, whatif, trace, scale, schedule, check) are answered by the native part, which
the first of them loads; docs/python.md describes them. Beside them stand Forerun's instruments: record a training
iteration (capture), measure many (collect), time single ops (microbench); `python -m forerun` lists them. lightning,
transformers and accelerate forecast what those frameworks run. Importing the package needs neither torch nor pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .api.catalogue import Device, Family, devices, links, models, optimizations
from .api.columns import Columns
from .api.comparison import Comparison, compare
from .api.fitting import Change, Fit, fit
from .api.guards import Check, Guard, Rule, check
from .api.prediction import (
    Compiled,
    FusedKernel,
    GraphBreak,
    HostRemedy,
    Job,
    LibraryCall,
    Memory,
    MemoryTimeline,
    Prediction,
    predict,
    predict_runs,
)
from .api.quantities import Bytes, MemoryRange, TimeRange
from .api.scaling import Scale, scale
from .api.schedules import Schedule, schedule
from .api.sweeping import Sweep, powers, sweep
from .api.traces import Trace, trace
from .api.whatifs import Ranking, WhatIf, WhatIfAnswer
from .errors import DoesNotFit, InputError, LimitReached, Stopped

if TYPE_CHECKING:
    from . import accelerate, lightning, transformers  # noqa: F401
    from .api.whatifs import WhatIfModule
    from .capture import capture as capture

    whatif: WhatIfModule

__version__ = "0.1.0"

__all__ = [
    "Bytes",
    "Change",
    "Check",
    "Columns",
    "Comparison",
    "Compiled",
    "Device",
    "DoesNotFit",
    "Family",
    "Fit",
    "FusedKernel",
    "GraphBreak",
    "Guard",
    "HostRemedy",
    "InputError",
    "Job",
    "LibraryCall",
    "LimitReached",
    "Memory",
    "MemoryRange",
    "MemoryTimeline",
    "Prediction",
    "Ranking",
    "Rule",
    "Scale",
    "Schedule",
    "Stopped",
    "Sweep",
    "TimeRange",
    "Trace",
    "WhatIf",
    "WhatIfAnswer",
    "capture",
    "check",
    "compare",
    "devices",
    "fit",
    "links",
    "models",
    "optimizations",
    "powers",
    "predict",
    "predict_runs",
    "scale",
    "schedule",
    "sweep",
    "trace",
    "whatif",
]

# Modules that are imported when they are asked for: they need torch, the native part, or a framework. Two can be
# called: `fr.capture(...)` and `from forerun.capture import capture` are the same function.
_MODULES = ("accelerate", "capture", "lightning", "transformers", "whatif")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
