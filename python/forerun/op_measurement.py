"""What `forerun.microbench` asks of whoever times its ops. Needs no torch, so that a test can stand in for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Protocol, Sequence, Tuple

from forerun.grids.sampling import Sample

Kernels = List[Tuple[object, ...]]
"""The kernels of one call in the order they ran: (name, microseconds), or (name, microseconds of all, how many)."""
TensorShown = Optional[List[object]]
"""[dtype, shape, strides or None]; None for an absent tensor."""


class DeviceOutOfMemory(Exception):
    """A sample does not fit the device. The timer can go on once it has recovered."""


@dataclass
class Measurement:
    """One timed op.

    `replay` makes the call again for the profiler; it keeps `kept_bytes` of device memory until it is dropped.
    """

    us: float
    spread: float
    workspace: int
    inputs: List[TensorShown]
    outputs: List[TensorShown]
    replay: object = None
    kept_bytes: int = 0


class OpTimer(Protocol):
    """Times ops on a device."""

    keep_limit_bytes: int
    """How much device memory the measurements of a batch may keep together."""

    def environment(self) -> Dict[str, object]:
        """The fields of `env/1`."""

    def begin_batch(self) -> None:
        """Called before each batch of samples."""

    def measure(self, sample: Sample) -> Measurement:
        """Raises DeviceOutOfMemory if the sample is too large, anything else if it cannot be run."""

    def profile(self, replays: Sequence[object]) -> List[Optional[Kernels]]:
        """The kernels of one call each; None where they could not be told."""

    def recover(self) -> bool:
        """Called after a sample that raised; False if the device is lost to this process."""
