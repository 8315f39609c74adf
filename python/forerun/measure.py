"""Measures a training configuration on a CUDA GPU: memory, time, kernels, ops and the host's speed, as a run/2 record.

Memory comes first, from an empty allocator: the model is built and three iterations are run, as in a process of its
own. Then time: iterations one by one and back to back. Then the host's speed. Last, one profiled iteration and one
recorded one, in one profile.
"""
from __future__ import annotations

import contextlib
import gc
import re
import statistics
import time
from typing import Any, Callable, ContextManager, Dict, List

import torch

from . import torch_models as models
from .allocator_trace import AllocatorTrace
from .configuration import Configuration
from .environment import environment
from .host_calibration import host_us
from .kernels import OP_MARK, PHASE_MARK, RECORDED_MARK, events_of, profile_fields
from .model_options import inputs_as, moving_average, prepare_model
from .recorder import OpRecorder
from .training import TrainingTask

Json = Dict[str, Any]

_TIMING_S = 0.12  # back-to-back iterations of one mean, unless one takes longer
_SLOW_S = 0.4  # iterations beyond this are run as few times as can be
_OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adafactor")
_AUTOCAST = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}
_OUT_OF_MEMORY = re.compile(r"out of memory|ALLOC_FAILED", re.IGNORECASE)


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self._begun = [("build", time.perf_counter())]

    def begin(self, stage: str) -> None:
        self._begun.append((stage, time.perf_counter()))

    def stages(self) -> Dict[str, float]:
        ends = [*(begin for _, begin in self._begun[1:]), time.perf_counter()]
        return {stage: end - begin for (stage, begin), end in zip(self._begun, ends)}


class CudaInstrument:
    """Measures one configuration after another on the first visible GPU. `alone` is entered while times are taken."""

    def __init__(self, alone: Callable[[], ContextManager[None]] = contextlib.nullcontext) -> None:
        self._alone = alone
        if not torch.cuda.is_available():
            raise SystemExit(
                "forerun.measure: no CUDA GPU is visible to PyTorch; run this on a machine with one "
                "(forerun.capture works without)"
            )
        self._device = torch.device("cuda:0")
        torch.empty(1, device=self._device)
        empty_allocator()
        self._environment = environment(self._device)
        self._traced = 0
        profiled_by_kineto(lambda: None)  # the first profile of a process takes seconds
        gc.collect()
        gc.freeze()  # what was imported is not looked at again each time garbage is sought

    def environment(self) -> Json:
        return self._environment

    def close(self) -> None:
        empty_allocator()

    def measure(self, configuration: Configuration) -> Json:
        about = {
            "id": configuration.id,
            "backend": "cuda",
            "family": configuration.family,
            "args": dict(configuration.args),
            "input": list(configuration.input),
            "run": dict(configuration.run),
        }
        set_precision(str(configuration.run["precision"]))
        return self.measure_task(about, lambda: build_task(configuration, self._device))

    def measure_task(self, about: Json, build: Callable[[], TrainingTask]) -> Json:
        """A record of what `build` makes, on the first GPU; `about` says what that is."""
        clock = _Clock()
        record: Json = {"schema": "run/2", **about, "env": self._environment, "status": "ok"}
        self._traced += 1
        try:
            self._measure(build, record, clock, traced=self._traced % 2 == 1)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            if not _OUT_OF_MEMORY.search(str(error)):
                raise
            _describe_failure(record, str(error))
            error.__traceback__ = None  # its frames hold the model
        finally:
            empty_allocator()
        record["cost_s"] = {stage: round(seconds, 2) for stage, seconds in clock.stages().items()}
        return record

    def _measure(self, build: Callable[[], TrainingTask], record: Json, clock: _Clock, traced: bool) -> None:
        record["base_allocated"] = torch.cuda.memory_allocated()
        record["tried"] = {"phase": "build"}
        trace = AllocatorTrace()

        def on_phase(letter: str) -> None:
            record["tried"]["phase"] = {"f": "forward", "b": "backward", "u": "update"}[letter]
            trace.mark(letter)

        with trace.recording(traced):
            trace.mark("build")
            task = build()
            record["params"] = sum(parameter.numel() for parameter in task.model.parameters())
            record["param_tensors"] = sum(1 for _ in task.model.parameters())
            record["mem_init"] = torch.cuda.memory_allocated()
            clock.begin("memory")
            for _ in range(3):
                task.iterate("cuda", on_phase)
            torch.cuda.synchronize()
            record["mem"] = measured_memory()
            if traced:
                record["alloc_trace"] = trace.columns()
        clock.begin("time")
        with self._alone():
            record["time_ms"] = measured_times(task)
            clock.begin("host")
            record["host_us"] = host_us(self._device)
            clock.begin("profile")
            record.update(profiled_iteration(task))
        del record["tried"]


# -- building ----------------------------------------------------------------------------------------------------------


def build_task(configuration: Configuration, device: torch.device) -> TrainingTask:
    """The configuration's model on the device, with optimizer, batch and loss."""
    run = configuration.run
    channels_last = bool(run.get("channels_last"))
    with models.fast_initialisation():
        model = models.build(configuration.family, configuration.args, configuration.input)
    model = model.to(device, memory_format=torch.channels_last) if channels_last else model.to(device)
    models.initialise(model)
    prepare_model(model, run)
    model.train()
    batch = models.make_batch(configuration.input, device, configuration.args, channels_last)
    return TrainingTask(
        model,
        make_optimizer(run["optimizer"], model),
        inputs_as(batch, torch.bfloat16) if run["precision"] == "bf16" else batch,
        models.training_loss,
        _AUTOCAST.get(run["precision"]),
        int(run.get("accumulate", 1)),
        run.get("clip_grad"),
        torch.amp.GradScaler(device.type) if run["precision"] == "amp_fp16" else None,
        moving_average(model) if run.get("ema") else None,
        run.get("loop", "plain"),
    )


def make_optimizer(spec: Json, model: torch.nn.Module) -> torch.optim.Optimizer:
    name, impl = spec["name"], spec["impl"]
    if name not in _OPTIMIZERS:
        raise ValueError(f"optimizer {name}; known: {', '.join(_OPTIMIZERS)}")
    options: Json = {"lr": spec.get("lr", 1e-3)}
    if "weight_decay" in spec:  # missing is PyTorch's default, which AdamW's is not 0
        options["weight_decay"] = spec["weight_decay"]
    if spec.get("momentum"):
        options["momentum"] = spec["momentum"]
    if impl == "fused":
        options["fused"] = True
    else:
        options["foreach"] = impl == "foreach"
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    made: torch.optim.Optimizer = getattr(torch.optim, name)(trained, **options)
    return made


def _named_inputs(batch: Any) -> List[Any]:
    items = (
        batch.items() if isinstance(batch, dict) else ((f"input{number}", item) for number, item in enumerate(batch))
    )
    found: List[Any] = []
    for name, value in items:
        if isinstance(value, torch.Tensor):
            found.append((str(name), value))
        elif isinstance(value, (list, tuple)):
            found.extend(
                (f"{name}.{number}", item) for number, item in enumerate(value) if isinstance(item, torch.Tensor)
            )
    return found


def set_precision(precision: str) -> None:
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.benchmark = False


# -- memory ------------------------------------------------------------------------------------------------------------


def empty_allocator() -> None:
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def measured_memory() -> Json:
    stats = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    return {
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "peak_active": stats["active_bytes.all.peak"],
        "peak_requested": stats["requested_bytes.all.peak"],
        "allocated": stats["allocated_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
        "segments": stats["segment.all.current"],
        "device_used": total - free,
        "device_total": total,
    }


def _describe_failure(record: Json, text: str) -> None:
    stats = torch.cuda.memory_stats()
    asked = re.search(r"Tried to allocate ([\d.]+) (\w+)", text)
    unit = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    record["status"] = "oom"
    record["tried"].update(
        requested=int(float(asked[1]) * unit.get(asked[2], 1)) if asked else 0,
        allocated=stats["allocated_bytes.all.peak"],
        reserved=stats["reserved_bytes.all.peak"],
        total=torch.cuda.mem_get_info()[1],
    )
    for field in ("mem", "time_ms", "alloc_trace", "host_us"):  # of an iteration that did not come to its end
        record.pop(field, None)


# -- time --------------------------------------------------------------------------------------------------------------


def measured_times(task: TrainingTask) -> Json:
    synced: List[float] = []
    while len(synced) < 4 and sum(synced) < 2 * _SLOW_S * 1000:
        synced.append(_timed(task, 1))
    typical = statistics.median(synced) / 1000
    iterations = max(2, min(40, int(_TIMING_S / typical))) if typical < _SLOW_S else 1
    pipelined = [_timed(task, iterations) for _ in range(3)]
    return {
        "synced": sorted(round(ms, 4) for ms in synced),
        "synced_median": round(statistics.median(synced), 4),
        "pipelined": sorted(round(ms, 4) for ms in pipelined),
        "pipelined_median": round(statistics.median(pipelined), 4),
        "iterations": iterations,
    }


def _timed(task: TrainingTask, iterations: int) -> float:
    """Milliseconds an iteration, from an idle GPU to an idle GPU."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(iterations):
        task.iterate("cuda")
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1000 / iterations


# -- profile -----------------------------------------------------------------------------------------------------------


def profiled_iteration(task: TrainingTask) -> Json:
    """The fields of a record that say which ops and kernels ran: one plain iteration and one with every op marked and
    recorded, in one profile."""
    recorder = OpRecorder(task.model, mark=lambda number: _mark(f"{OP_MARK}{number}"))
    recorder.root_model(task.model, task.optimizer)
    for name, tensor in _named_inputs(task.batch):
        recorder.root(tensor, "i", name)

    def on_phase(letter: str) -> None:
        with _mark(PHASE_MARK + letter):
            pass

    def on_recorded_phase(letter: str) -> None:
        recorder.phase = letter

    def both() -> None:
        torch.cuda.synchronize()
        task.iterate("cuda", on_phase)
        on_phase("end")
        torch.cuda.synchronize()
        with _mark(RECORDED_MARK):
            pass
        with recorder:
            task.iterate("cuda", on_recorded_phase)
        recorder.close()
        torch.cuda.synchronize()

    results = profiled_by_kineto(both)
    return {**recorder.columns(), **profile_fields(events_of(results))}


def _mark(name: str) -> Any:
    return torch._C._profiler._RecordFunctionFast(name)


def measured_kernels(task: TrainingTask) -> Json:
    """The kernels of one profiled iteration, of whatever launched them; none of them has an op."""

    def marked(name: str) -> None:
        with _mark(name):
            pass

    def once() -> None:
        torch.cuda.synchronize()
        task.iterate("cuda", lambda letter: marked(PHASE_MARK + letter))
        marked(PHASE_MARK + "end")
        torch.cuda.synchronize()
        marked(RECORDED_MARK)

    return profile_fields(events_of(profiled_by_kineto(once)))


def profiled_by_kineto(call: Callable[[], None]) -> Any:
    profiler = torch.autograd.profiler.profile(use_kineto=True, use_device="cuda")
    with profiler:
        call()
    return profiler.kineto_results
