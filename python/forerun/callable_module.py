"""A module that can be called as the function it is named after: `forerun.capture` is `forerun.capture.capture`."""

from __future__ import annotations

import sys
import types
from typing import Any, Callable


def make_callable(module: str, function: Callable[..., Any]) -> None:
    """Calls of the module are calls of the function from now on."""

    class Callable_(types.ModuleType):
        __doc__ = function.__doc__

        def __call__(self, *arguments: Any, **words: Any) -> Any:
            return function(*arguments, **words)

    sys.modules[module].__class__ = Callable_
