"""What calls of this package raise: the input's fault, work that was ended, runs that do not fit where they must."""

from __future__ import annotations

from typing import Any, Tuple

__all__ = ["DoesNotFit", "InputError", "LimitReached", "Stopped"]


class _Told(Exception):
    """An exception that says what is wrong, where, and what to do about it."""

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.remedy}" if self.remedy else ""
        return f"{place}{self.what}{advice}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.what, self.where, self.remedy)


class InputError(_Told, ValueError):
    """The input is at fault: a word, a file or a model. Says what, where and remedy."""


class Stopped(_Told, RuntimeError):
    """Somebody asked the work to stop."""


class LimitReached(_Told, RuntimeError):
    """`time_limit` or `memory_limit` was reached before there was an answer."""


class DoesNotFit(_Told, RuntimeError):
    """A run that must fit does not, or may not: raised where asked for alone, by `Prediction.must_fit`."""
