"""Times single ops on a CUDA GPU: GPU microseconds, workspace, and the kernels that ran.

How a call is timed:
- Inputs are views of large buffers of normal numbers (`tensor_pool`); nothing is filled or copied in between.
- The first call warms up (cuDNN picks its plan, modules load) and shows the workspace: the peak of requested bytes
  beyond those before the call and those of its outputs. cuBLAS keeps its workspace from its first use on; it is taken
  before any sample and shows in none.
- The second call tells how often the op can be repeated (3 to 8 times) and how long the host needs to launch it.
- The repetitions are queued behind a kernel that only waits, long enough for the host to have queued all of them, with
  events in between. The time of an event itself, taken at the start, is subtracted. If the wait was too short, all is
  done again behind a longer one. Ops of more kernels than the launch queue holds (some RNNs) show the host all the
  same; the sum of their kernels does not.
- The L2 cache: the operand that training has just written stays where it is, all others lie elsewhere in each
  repetition, so they come from memory (`PreparedCall.vary`).

Kernels come from one profile of a whole batch, a call each, told apart by waiting kernels launched between the calls.
Where a call runs very many (RNNs, grouped convolutions), those of one name are put together.
Clocks are left alone; the GPU is kept busy for a moment at the start.
"""

from __future__ import annotations

import re
import statistics
import time
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from forerun.environment import environment
from forerun.grids.sampling import Sample
from forerun.op_calls import PreparedCall, describe, flatten, make_call, own_storages
from forerun.op_measurement import DeviceOutOfMemory, Kernels, Measurement
from forerun.tensor_pool import PoolTooSmall, TensorPool

_GIB = 1 << 30
_POOL_BYTES = 4 * _GIB
_ARENA_BYTES = 24 * _GIB
_KEPT_BYTES = 8 * _GIB
_REPEAT_US = 1500.0
_REPEATS = (3, 8)
_SLOW_US = 30_000.0
_MAX_WAIT_US = 12_000.0
_MANY_LAUNCHES_US = 2000.0  # the launch queue holds no more than about a thousand
_MARK = "spin_kernel"
_OUT_OF_MEMORY = re.compile(r"out of memory|ALLOC_FAILED", re.IGNORECASE)
_KERNELS_SHOWN = 32
_NOT_WORK = ("Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event")


class CudaOpTimer:
    """Times ops on the first visible GPU."""

    def __init__(self, device: str = "cuda:0") -> None:
        if not torch.cuda.is_available():
            raise SystemExit("forerun.microbench: no CUDA GPU is visible to PyTorch; run this on a machine with one")
        self._device = torch.device(device)
        torch.cuda.set_device(self._device)
        torch.cuda.init()
        properties = torch.cuda.get_device_properties(self._device)
        self._cache_bytes = int(getattr(properties, "L2_cache_size", 0)) or 50 << 20
        self._pool = TensorPool(self._device, min(_POOL_BYTES, properties.total_memory // 24))
        self._arena_bytes = min(_ARENA_BYTES, properties.total_memory // 5)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(_REPEATS[1] + 25)]
        self.keep_limit_bytes = min(_KEPT_BYTES, properties.total_memory // 16)
        self._precision = ""
        self._profile_cpu = False
        self._wake()
        self._reserve()
        self._cycles_per_us = self._calibrate_wait()
        self._event_us = self._calibrate_events()

    def environment(self) -> Dict[str, object]:
        return environment(self._device)

    def begin_batch(self) -> None:
        self._pool.refresh()

    def recover(self) -> bool:
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            self._reserve()
            return bool(torch.ones(1, device=self._device).add_(1).item() == 2)
        except RuntimeError:
            return False

    # -- time ----------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def measure(self, sample: Sample) -> Measurement:
        try:
            return self._measure(sample)
        except (RuntimeError, PoolTooSmall) as error:
            if isinstance(error, PoolTooSmall) or _OUT_OF_MEMORY.search(str(error)):
                raise DeviceOutOfMemory(str(error)) from None
            raise

    def _measure(self, sample: Sample) -> Measurement:
        self._set_precision(sample.precision)
        call = make_call(sample, self._pool)
        outputs, workspace = self._first_call(call)
        estimate_us, host_us = self._second_call(call)
        times = self._repeat(call, estimate_us, host_us)
        median = statistics.median(times)
        low, high = times[round(0.1 * (len(times) - 1))], times[round(0.9 * (len(times) - 1))]
        call.forget_variants()
        return Measurement(us=round(median, 3), spread=round((high - low) / median, 4) if median > 0 else 0.0,
                           workspace=workspace, inputs=call.inputs(), outputs=outputs, replay=(call, sample.precision),
                           kept_bytes=call.kept_bytes())

    def _first_call(self, call: PreparedCall) -> Tuple[List[Optional[List[object]]], int]:
        """The outputs, and the workspace in bytes."""
        torch.cuda.reset_peak_memory_stats(self._device)
        before = self._requested_bytes()["current"]
        made = call()
        peak = self._requested_bytes()["peak"]
        outputs = [describe(tensor) for tensor in flatten(made)]
        fixed = call.own_storages()
        own = sum(size for address, size in own_storages(made, self._pool).items() if address not in fixed)
        return outputs, max(0, peak - before - own)

    def _second_call(self, call: PreparedCall) -> Tuple[float, float]:
        """Microseconds on the GPU, the host's included where it is slower, and microseconds on the host."""
        begin, end = self._events[:2]
        begin.record()
        start = time.perf_counter()
        call()
        host_us = (time.perf_counter() - start) * 1e6
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000, host_us

    def _repeat(self, call: PreparedCall, estimate_us: float, host_us: float) -> List[float]:
        """Sorted microseconds of the repetitions."""
        fewest, most = _REPEATS
        repeats = max(fewest, min(most, int(_REPEAT_US / max(estimate_us, 1.0)))) if estimate_us < _SLOW_US else 2
        call.vary(repeats, self._cache_bytes)
        wait_us = 40 + 1.5 * repeats * (host_us + 6)
        for wait in (wait_us, 4 * wait_us):
            times, hidden = self._run_behind_wait(call, repeats, min(wait, _MAX_WAIT_US))
            if hidden or wait > _MAX_WAIT_US or host_us > _MANY_LAUNCHES_US:
                break
        return times

    def _run_behind_wait(self, call: Any, repeats: int, wait_us: float) -> Tuple[List[float], bool]:
        """Sorted microseconds, and whether the host was done before the GPU began."""
        events = self._events
        torch.cuda._sleep(int(wait_us * self._cycles_per_us))
        events[0].record()
        for place in range(repeats):
            call(place)
            events[place + 1].record()
        hidden = not events[0].query()
        events[repeats].synchronize()
        times = [events[place].elapsed_time(events[place + 1]) * 1000 - self._event_us for place in range(repeats)]
        return sorted(max(0.0, duration) for duration in times), hidden

    # -- kernels -------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def profile(self, replays: Sequence[object]) -> List[Optional[Kernels]]:
        kernels = self._profile(replays)
        if kernels is None and not self._profile_cpu:
            self._profile_cpu = True  # this profiler may not trace a device by itself
            kernels = self._profile(replays)
        return [None] * len(replays) if kernels is None else kernels

    def _profile(self, replays: Sequence[object]) -> Optional[List[Optional[Kernels]]]:
        broken = set()
        torch.cuda.synchronize()
        profiler = torch.autograd.profiler.profile(use_cpu=self._profile_cpu, use_device="cuda", use_kineto=True)
        with profiler:
            for place, replay in enumerate(replays):
                torch.cuda._sleep(1)
                if not self._replay(replay):
                    broken.add(place)
            torch.cuda._sleep(1)
            torch.cuda.synchronize()
        spans = split_at_marks(_device_events(profiler.kineto_results), len(replays))
        if spans is None:
            return None
        return [None if place in broken else span for place, span in enumerate(spans)]

    def _replay(self, replay: object) -> bool:
        assert isinstance(replay, tuple)
        call, precision = replay
        self._set_precision(precision)
        try:
            call()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            return False
        return True

    # -- the device ----------------------------------------------------------------------------------------------------

    def _set_precision(self, precision: str) -> None:
        if precision != self._precision:
            torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
            torch.backends.cudnn.benchmark = False
            self._precision = precision

    def _requested_bytes(self) -> Dict[str, int]:
        return torch.cuda.memory_stats_as_nested_dict(self._device)["requested_bytes"]["all"]

    def _wake(self) -> None:
        """Loads the libraries, lets them take what they keep, and brings the clocks up."""
        for dtype in (torch.float32, torch.bfloat16):
            left = torch.randn(2048, 2048, device=self._device, dtype=dtype)
            torch.addmm(left[0], left, left.t())
            torch.bmm(left.view(4, 512, 2048), left.view(4, 2048, 512))
            image = left.view(4, 64, 128, 128)
            torch.conv2d(image, left.flatten()[:64 * 64 * 9].view(64, 64, 3, 3))
            until = time.perf_counter() + 0.25
            while time.perf_counter() < until:
                left @ left
                torch.cuda.synchronize()

    def _reserve(self) -> None:
        """Leaves the allocator a large free segment, so that outputs and workspaces never wait for the driver."""
        try:
            torch.empty(self._arena_bytes, dtype=torch.uint8, device=self._device)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()

    def _calibrate_wait(self) -> float:
        """Cycles of the waiting kernel a microsecond."""
        begin, end = self._events[:2]
        rates = []
        for _ in range(3):
            begin.record()
            torch.cuda._sleep(2_000_000)
            end.record()
            end.synchronize()
            rates.append(2000 / begin.elapsed_time(end))
        return max(rates)

    def _calibrate_events(self) -> float:
        """Microseconds between two events with nothing in between."""
        self._event_us = 0.0
        times, _ = self._run_behind_wait(lambda place: None, len(self._events) - 1, 500.0)
        return statistics.median(times)


def _device_events(results: Any) -> List[Tuple[int, str, float]]:
    """Start (ns), name and microseconds of what ran on the device."""
    found = []
    for event in results.events():
        if "CPU" not in str(event.device_type()) and not event.name().startswith(_NOT_WORK):
            found.append((event.start_ns(), event.name(), round(event.duration_ns() / 1000, 3)))
    return found


def split_at_marks(events: Iterable[Tuple[int, str, float]], count: int) -> Optional[List[Optional[Kernels]]]:
    """The kernels between each two marks; None if there are not count + 1 of them."""
    spans: List[Optional[Kernels]] = []
    span: Optional[List[Tuple[str, float]]] = None
    for _, name, duration in sorted(events, key=lambda event: event[0]):
        if _MARK in name:
            if span is not None:
                spans.append(_condensed(span))
            span = []
        elif span is not None:
            span.append((name, duration))
    return spans if span is not None and len(spans) == count else None


def _condensed(kernels: Sequence[Tuple[str, float]]) -> Kernels:
    """Long lists by name: the name, the microseconds of all kernels of that name, how many there are."""
    if len(kernels) <= _KERNELS_SHOWN:
        return list(kernels)
    times: Dict[str, List[float]] = {}
    for name, duration in kernels:
        times.setdefault(name, []).append(duration)
    return [(name, round(sum(durations), 3), len(durations)) for name, durations in times.items()]
