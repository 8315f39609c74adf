"""A timer without a device, for the tests of `forerun.microbench`: what it gives follows from the sample alone."""

from __future__ import annotations

import os
import signal
import time
from typing import Dict, List, Optional, Sequence

from forerun.grids.sampling import Sample
from forerun.op_measurement import DeviceOutOfMemory, Kernels, Measurement

ENVIRONMENT: Dict[str, object] = {"gpu": "none", "torch": "", "cuda": "", "cudnn": 0, "driver": "", "cpu": "",
                                  "host": "", "date": ""}


class FakeOpTimer:
    """Takes half a millisecond a sample; counts what it was asked for."""

    keep_limit_bytes = 1 << 30

    def __init__(self, seconds: float = 0.0005) -> None:
        self._seconds = seconds
        self.batches = 0
        self.measured: List[str] = []
        self.profiled: List[int] = []
        self.recoveries = 0
        self.out_of_memory: List[str] = []
        self.raises: Dict[str, Exception] = {}
        self.fatal: List[str] = []
        self.kept_bytes = 0
        self._lost = False

    def environment(self) -> Dict[str, object]:
        return ENVIRONMENT

    def begin_batch(self) -> None:
        self.batches += 1

    def measure(self, sample: Sample) -> Measurement:
        time.sleep(self._seconds)
        self.measured.append(sample.id)
        if sample.id in self.out_of_memory:
            raise DeviceOutOfMemory("too large")
        if sample.id in self.fatal:
            self._lost = True
        if sample.id in self.raises or self._lost:
            raise self.raises.get(sample.id, RuntimeError("device-side assert"))
        return Measurement(us=sample.cost_us, spread=0.01, workspace=0, inputs=[], outputs=[], replay=sample.op,
                           kept_bytes=self.kept_bytes)

    def profile(self, replays: Sequence[object]) -> List[Optional[Kernels]]:
        self.profiled.append(len(replays))
        return [[(f"kernel of {replay}", 1.0)] for replay in replays]

    def recover(self) -> bool:
        self.recoveries += 1
        return not self._lost


class CrashingOpTimer(FakeOpTimer):
    """Dies, in one of several ways, of the samples named in the environment."""

    def measure(self, sample: Sample) -> Measurement:
        if sample.id == os.environ.get("CRASH_AT"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if sample.id == os.environ.get("HANG_AT"):
            time.sleep(600)
        if sample.id == os.environ.get("LOSE_AT"):
            self.fatal.append(sample.id)
        return super().measure(sample)

    def profile(self, replays: Sequence[object]) -> List[Optional[Kernels]]:
        mark = os.environ.get("CRASH_PROFILE_ONCE")
        if mark and not os.path.exists(mark):
            with open(mark, "w"):
                os.kill(os.getpid(), signal.SIGSEGV)
        return super().profile(replays)


class SlowOpTimer(FakeOpTimer):
    """Would take minutes for any plan."""

    def __init__(self) -> None:
        super().__init__(seconds=0.3)


class SteadyOpTimer(FakeOpTimer):
    """Says the same of every sample, those of a list too, which nobody has estimated."""

    def measure(self, sample: Sample) -> Measurement:
        measured = super().measure(sample)
        measured.us = 5.0
        return measured
