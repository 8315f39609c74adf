"""Figures with their ranges: times in milliseconds, memory in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

GIB = float(1 << 30)


class Bytes(int):
    """A number of bytes; `gib` and `mib` are the same in larger units."""

    @property
    def gib(self) -> float:
        """In GiB."""
        return self / GIB

    @property
    def mib(self) -> float:
        """In MiB."""
        return self / float(1 << 20)

    def __repr__(self) -> str:
        return f"{self.gib:.2f} GiB" if self >= 1 << 30 else f"{self.mib:.1f} MiB"

    __str__ = __repr__


@dataclass(frozen=True)
class TimeRange:
    """A time in milliseconds; eight of ten measured iterations lie between `low_ms` and `high_ms`."""

    ms: float
    low_ms: float
    high_ms: float

    def __repr__(self) -> str:
        return f"{self.ms:.4g} ms ({self.low_ms:.4g} to {self.high_ms:.4g})"


@dataclass(frozen=True)
class MemoryRange:
    """Memory in bytes; eight of ten measured runs lie between `low` and `high`."""

    bytes: Bytes
    low: Bytes
    high: Bytes

    @property
    def gib(self) -> float:
        """As expected, in GiB."""
        return self.bytes.gib

    @staticmethod
    def of(entry: Mapping[str, Any]) -> MemoryRange:
        """From the JSON of a range."""
        return MemoryRange(Bytes(entry["expected"]), Bytes(entry["low"]), Bytes(entry["high"]))

    def __repr__(self) -> str:
        return f"{self.bytes!r} ({self.low!r} to {self.high!r})"
