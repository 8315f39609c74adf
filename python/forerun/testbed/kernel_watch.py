"""Watches a worker's kernels by PyTorch's profiler (CUPTI): what kernel_activity.py makes its figures of."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, List, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..kernels import OP_MARK, events_of
from .kernel_activity import Activity, DeviceEvent, RecordedKernel, activities, merged, on_clock, recorded_kernels


class _OperandBytes(TorchDispatchMode):
    """Marks every op for the profiler, and keeps the bytes of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: List[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        number = len(self.bytes)
        self.bytes.append(0)
        with torch._C._profiler._RecordFunctionFast(f"{OP_MARK}{number}"):
            result = func(*args, **(kwargs or {}))
        self.bytes[number] = _bytes_of((args, kwargs, result))
        return result


def _bytes_of(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return 0
    return sum(map(_bytes_of, value))


class KernelWatch:
    """Profiles a worker's training. What it cannot see, it leaves out: training goes on."""

    def __init__(self) -> None:
        self._with_host = False  # some profilers do not trace a device by itself
        self._recorded: List[RecordedKernel] = []
        self.problem = ""

    def warm_up(self, device: torch.device) -> None:
        """Loads the profiler's library, which takes seconds, and learns how it is asked."""
        def work() -> None:
            torch.ones(1, device=device).add_(1)
            torch.cuda.synchronize()

        for self._with_host in (False, True):
            self.problem = ""
            _, results = self._profiled(work)
            if results is not None and _device_events(results):
                return
        self.problem = self.problem or "the profiler saw no kernel"

    def learn(self, iteration: Callable[[], None]) -> None:
        """Records the ops of an iteration and the kernels that they launch."""
        self._recorded = []
        if self.problem:
            return
        operands = _OperandBytes()

        def work() -> None:
            with operands:
                iteration()
            torch.cuda.synchronize()

        _, results = self._profiled(work, host=True)
        if results is not None:
            with contextlib.suppress(LookupError, ValueError):  # no marks: bytes follow the time of kernels
                self._recorded = recorded_kernels(events_of(results), operands.bytes)

    def watch(self, train: Callable[[], Any], host_bytes: int) -> Tuple[Any, List[Activity]]:
        """What `train` returns, a dictionary with the times of its iterations in "steps", and what the GPU did."""
        if self.problem:
            return train(), []
        offset = time.time_ns() - time.monotonic_ns()
        answer, results = self._profiled(train)
        if results is None:
            return answer, []
        events = [(begin - offset, end - offset, name) for begin, end, name in _device_events(results)]
        begins = [times[0] for times in answer["steps"]]
        events = on_clock(events, answer["steps"][-1][-1])
        return answer, merged(activities(events, begins, self._recorded, host_bytes))

    def _profiled(self, work: Callable[[], Any], host: bool = False) -> Tuple[Any, Any]:
        """What it returns, and the profiler's results or None."""
        try:
            profiler = torch.autograd.profiler.profile(use_cpu=host or self._with_host, use_device="cuda",
                                                       use_kineto=True)
            profiler.__enter__()
        except Exception as error:  # no CUPTI, or not allowed: trained without it
            self.problem = f"{type(error).__name__}: {str(error)[:200]}"
            return work(), None
        try:
            answer = work()
        finally:
            try:
                profiler.__exit__(None, None, None)
                results = profiler.kineto_results
            except Exception as error:
                self.problem = f"{type(error).__name__}: {str(error)[:200]}"
                results = None
        return answer, results


def _device_events(results: Any) -> List[DeviceEvent]:
    """Begin, end and name of what ran on the device, in order; marks that profilers draw on its lane left out."""
    return sorted((event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
                  for event in results.events()
                  if "CPU" not in str(event.device_type()) and not event.name().startswith(("forerun.", "Optimizer.")))
