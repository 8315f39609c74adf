"""What the callbacks of all frameworks do: forecast the step before it is run, time the run, and tell how both compare.

A forecast never breaks a run. Where it cannot be made there is one warning, unless the run must fit (`fail_if_oom`).
"""
from __future__ import annotations

import collections
import dataclasses
import statistics
import time
import warnings
from typing import Any, Callable, Deque, Dict, List, Optional

import torch

from .api.catalogue import devices
from .api.prediction import Prediction, predict
from .api.quantities import Bytes
from .errors import InputError
from .framework_step import FrameworkStep, elements_of, run_gpu

Json = Dict[str, Any]
Log = Callable[[Dict[str, float]], None]

_WARM = 5  # iterations before the first that is timed
_KEPT = 200  # iterations whose ends are kept


@dataclasses.dataclass(frozen=True)
class Measured:
    """What the run took."""

    iteration_ms: Optional[float]  # median, without the first iterations; None: there were too few
    reserved: Optional[Bytes]  # peak; None: not on a GPU, or more was reserved before training began
    gpu: Optional[str]  # None: on the CPU


class Forecaster:
    """A forecast of a run and, in the end, what it took."""

    record: Optional[Json] = None  # the captured iteration
    prediction: Optional[Prediction] = None
    measured: Optional[Measured] = None

    def __init__(self, gpu: Optional[str] = None, fail_if_oom: bool = False) -> None:
        """
        :param gpu: what to forecast for; by default the GPU of the run
        :param fail_if_oom: raise DoesNotFit before the first iteration where it does not surely fit
        """
        self.gpu = gpu
        self.fail_if_oom = fail_if_oom
        self._forget()

    def _forget(self) -> None:
        self.record = self.prediction = self.measured = None
        self._begun = False
        self._clock = _Clock(on_gpu=False)
        self._run_gpu: Optional[str] = None
        self._reserved_before = 0
        self._smallest = self._largest = self._first = 0  # elements of batches

    # -- before the first iteration ------------------------------------------------------------------------------------

    def _begin(self, make_step: Callable[[], FrameworkStep], log: Log) -> None:
        """Forecasts, the first time it is called."""
        if self._begun:
            return
        self._begun = True
        try:
            remarks = self._forecast(make_step())
        except Exception as error:  # of a framework whose insides are others, too: the run comes first
            told = str(error) if isinstance(error, (InputError, ImportError)) else f"{type(error).__name__}: {error}"
            if self.fail_if_oom:
                what = f"whether the run fits could not be judged: {told}"
                raise InputError(what, "fail_if_oom", "leave fail_if_oom out to train without knowing") from error
            warnings.warn(f"forerun: no forecast of this run: {told}", stacklevel=3)
            return
        assert self.prediction is not None
        _say("forecast of this run", *repr(self.prediction).splitlines(), *(f"  note: {text}" for text in remarks))
        log(predicted_figures(self.prediction))
        if self.fail_if_oom:
            self.prediction.must_fit()

    def _forecast(self, step: FrameworkStep) -> List[str]:
        self._run_gpu = run_gpu(step.model)
        self._clock = _Clock(on_gpu=self._run_gpu is not None)
        self._reserved_before = _reserved_peak()
        self.record = step.record()
        gpu = self.gpu or self._run_gpu
        words: Json = {**step.parallel, **({"gpu": gpu} if gpu is not None else {})}
        self.prediction = predict(self.record, **words)
        remarks = list(step.remarks)
        if gpu is None:
            remarks.append(f"the run is on no GPU: the forecast is for {self.prediction.gpu}; gpu= names another")
        return remarks

    # -- iterations ----------------------------------------------------------------------------------------------------

    def _see(self, batch: Any) -> None:
        """A batch that is trained on."""
        size = elements_of(batch)
        self._first = self._first or size
        self._smallest = min(self._smallest or size, size)
        self._largest = max(self._largest, size)

    def _iteration_ended(self) -> None:
        if self.prediction is not None:
            self._clock.read()

    # -- after the last ------------------------------------------------------------------------------------------------

    def _end(self, log: Log) -> None:
        prediction = self.prediction
        if prediction is None:
            return
        reserved = _reserved_peak() if self._run_gpu is not None else 0
        peak = Bytes(reserved) if reserved > self._reserved_before else None
        self.measured = Measured(self._clock.median_ms(), peak, self._run_gpu)
        lines = [_comparison(prediction, self.measured)]
        if self._smallest != self._largest:
            sizes = f"from {self._smallest:,} to {self._largest:,} numbers"
            lines.append(f"  note: batches differ in size, {sizes}; the forecast is of the first, with {self._first:,}")
        _say(*lines)
        log(measured_figures(prediction, self.measured))


class _Clock:
    """Reads the time at the ends of iterations; on a GPU its own, so that nobody waits for it."""

    def __init__(self, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        self._read = 0
        self._ends: Deque[Any] = collections.deque(maxlen=_KEPT)

    def read(self) -> None:
        self._read += 1
        if self._read < _WARM:
            return
        if self._on_gpu:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._ends.append(event)
        else:
            self._ends.append(time.perf_counter())

    def median_ms(self) -> Optional[float]:
        """Of what lies between two ends: longer pauses, as for validation, do not count."""
        ends = list(self._ends)
        if len(ends) < 2:
            return None
        if self._on_gpu:
            ends[-1].synchronize()
        pairs = zip(ends, ends[1:])
        return statistics.median(a.elapsed_time(b) if self._on_gpu else 1000 * (b - a) for a, b in pairs)


def _reserved_peak() -> int:
    return int(torch.cuda.max_memory_reserved()) if torch.cuda.is_available() else 0


# -- in words and figures ----------------------------------------------------------------------------------------------


def predicted_figures(prediction: Prediction) -> Dict[str, float]:
    """As loggers get them before the first iteration."""
    return {
        "forerun/predicted_iteration_ms": prediction.iteration.ms,
        "forerun/predicted_iteration_low_ms": prediction.iteration.low_ms,
        "forerun/predicted_iteration_high_ms": prediction.iteration.high_ms,
        "forerun/predicted_reserved_gib": prediction.memory.reserved.gib,
        "forerun/fits": float(prediction.fits),
    }


def measured_figures(prediction: Prediction, measured: Measured) -> Dict[str, float]:
    """As loggers get them after the last iteration; errors are shares of what was measured."""
    figures: Dict[str, float] = {}
    comparable = _same_gpu(prediction, measured)
    if measured.iteration_ms is not None:
        figures["forerun/measured_iteration_ms"] = measured.iteration_ms
        if comparable:
            figures["forerun/iteration_error"] = prediction.iteration.ms / measured.iteration_ms - 1
    if measured.reserved is not None:
        figures["forerun/measured_reserved_gib"] = measured.reserved.gib
        if comparable:
            figures["forerun/reserved_error"] = prediction.memory.reserved.bytes / measured.reserved - 1
    return figures


def _comparison(prediction: Prediction, measured: Measured) -> str:
    if measured.iteration_ms is None:
        return f"fewer than {_WARM + 1} iterations were run: nothing is compared with the forecast"
    took = f"an iteration took {measured.iteration_ms:.4g} ms"
    if not _same_gpu(prediction, measured):
        place = f"on {measured.gpu}" if measured.gpu is not None else "on the CPU"
        return f"{took} {place}; the forecast is for {prediction.gpu}, so nothing is compared with it"
    figures = measured_figures(prediction, measured)
    text = f"{took}, predicted were {prediction.iteration!r} ({100 * figures['forerun/iteration_error']:+.1f} %)"
    if measured.reserved is None:
        return f"{text}; more memory was reserved before training began than in it"
    error = 100 * figures["forerun/reserved_error"]
    return f"{text}; it reserved {measured.reserved!r}, predicted were {prediction.memory.reserved!r} ({error:+.1f} %)"


def _same_gpu(prediction: Prediction, measured: Measured) -> bool:
    if measured.gpu is None:
        return False
    names = next(((one.name, *one.aliases) for one in devices() if one.name == prediction.gpu), (prediction.gpu,))
    return _bare(measured.gpu) in {_bare(name) for name in names}


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in " -_")


def _say(first: str, *others: str) -> None:
    print("\n".join([f"forerun: {first}", *others]), flush=True)
