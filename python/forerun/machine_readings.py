"""What `forerun.calibrate` reads of a machine beside its ops: what the GPU is, how fast the host issues work, how fast
copies and collectives are.

Host readings are those of `forerun.host_calibration`, taken several times since a host's speed drifts, and a few more
kinds: a call of a module, a step of an optimizer, a whole small iteration. On CPU tensors (`sync` does nothing) they
tell dispatch, autograd and Python without the launch of kernels.
"""
from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch import nn

from .host_calibration import host_us

Json = Dict[str, Any]

_MIB = 1 << 20
_COPIES = (64 << 10, _MIB, 16 * _MIB, 128 * _MIB)
_COLLECTIVES = (64 << 10, _MIB, 16 * _MIB, 128 * _MIB)
_BUSY_PERCENT = 10.0
_BUSY_BYTES = 2 << 30
_BUSY_SHARE = 0.05


# -- the GPU -----------------------------------------------------------------------------------------------------------


def query(fields: Sequence[str], index: str) -> Optional[List[str]]:
    """What nvidia-smi says of a GPU; None where it says nothing."""
    command = ["nvidia-smi", "-i", index, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    with contextlib.suppress(OSError, subprocess.SubprocessError, IndexError):
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        values = [value.strip() for value in answer.stdout.splitlines()[0].split(",")]
        return values if len(values) == len(fields) else None
    return None


def number(text: str) -> Optional[float]:
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def board_index(device: torch.device) -> str:
    """How nvidia-smi is told the GPU: by its UUID, since indices differ where some GPUs are hidden."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid else str(device.index or 0)


def busy_word(device: torch.device, ask: Callable[[Sequence[str], str], Optional[List[str]]] = query) -> str:
    """Why the GPU is busy with something else; empty where it is not."""
    shares = []
    for _ in range(3):
        answer = ask(["utilization.gpu"], board_index(device))
        share = number(answer[0]) if answer else None
        if share is not None:
            shares.append(share)
        time.sleep(0.2)
    if shares and min(shares) > _BUSY_PERCENT:
        return f"another program keeps it {min(shares):.0f} % busy"
    free, total = torch.cuda.mem_get_info(device)
    used = total - free - torch.cuda.memory_reserved(device)
    if used > max(_BUSY_BYTES, _BUSY_SHARE * total):
        return f"other programs hold {used / (1 << 30):.1f} GiB of its memory"
    return ""


def device_facts(device: torch.device) -> Json:
    """The GPU as its driver describes it; what it does not tell is left out."""
    properties = torch.cuda.get_device_properties(device)
    facts: Json = {
        "name": properties.name,
        "compute_capability": 10 * properties.major + properties.minor,
        "sm_count": properties.multi_processor_count,
        "memory_mib": properties.total_memory // _MIB,
    }
    if getattr(properties, "L2_cache_size", 0):
        facts["l2_kib"] = properties.L2_cache_size // 1024
    names = {"clock_mhz": "clocks.max.sm", "power_w": "power.limit", "memory_clock_mhz": "clocks.max.memory"}
    answer = query(list(names.values()), board_index(device))
    for name, text in zip(names, answer or []):
        value = number(text)
        if value:
            facts[name] = value
    return facts


# -- the host ----------------------------------------------------------------------------------------------------------


def host_readings(device: torch.device, rounds: int, goes_on: Callable[[], bool] = lambda: True) -> List[Json]:
    """One set of readings a round, in microseconds by kind (docs/calibrate.md)."""
    found: List[Json] = []
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)  # waking others for small tensors would be most of what is read
    try:
        while len(found) < rounds and (not found or goes_on()):
            reading = host_us(device)
            reading.update(_module_us(device))
            found.append(reading)
    finally:
        torch.set_num_threads(threads)
    return found


def _module_us(device: torch.device) -> Json:
    """A call of a module that does nothing, a step of optimizers over 40 small tensors, a small iteration."""
    sync = synchronizer(device)
    chain = nn.Sequential(*[nn.Identity() for _ in range(50)])
    value = torch.zeros(1, device=device)
    small = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU())])
    small.to(device)
    batch = torch.full((4, 16), 0.1, device=device)
    sgd = torch.optim.SGD(small.parameters(), lr=1e-6, momentum=0.9)
    adam = torch.optim.AdamW(small.parameters(), lr=1e-6)

    def iteration() -> None:
        sgd.zero_grad()
        small(batch).sum().backward()
        sgd.step()

    iteration()
    return {
        "module": round(timed_us(lambda: chain(value), sync, 20) / 50, 3),
        "sgd": round(timed_us(sgd.step, sync, 20), 2),
        "adamw": round(timed_us(adam.step, sync, 10), 2),
        "iteration": round(timed_us(iteration, sync, 10), 2),
    }


def timed_us(call: Callable[[], Any], sync: Callable[[], None], calls: int, rounds: int = 3) -> float:
    """Median microseconds that the host takes for a call."""
    call()
    times = []
    for _ in range(rounds):
        sync()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) / calls)
    sync()
    return statistics.median(times) * 1e6


def synchronizer(device: torch.device) -> Callable[[], None]:
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    return lambda: None


# -- copies and collectives --------------------------------------------------------------------------------------------


def _event_us(call: Callable[[], Any], repeats: int) -> float:
    """Median microseconds of a call on the current stream, by events."""
    call()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return round(statistics.median(times), 3)


def copy_readings(device: torch.device) -> List[Json]:
    """Copies between pinned memory of the host and the GPU, and within the GPU."""
    found: List[Json] = []
    for size in _COPIES:
        host = torch.ones(size, dtype=torch.uint8, pin_memory=True)
        there, other = torch.ones(size, dtype=torch.uint8, device=device), torch.empty_like(host, device=device)
        ways: Dict[str, Callable[[], Any]] = {
            "host_to_device": lambda: there.copy_(host, non_blocking=True),
            "device_to_host": lambda: host.copy_(there, non_blocking=True),
            "device_to_device": lambda: other.copy_(there),
        }
        found += [{"kind": kind, "bytes": size, "us": _event_us(call, 5)} for kind, call in ways.items()]
    return found


def queued_kernel_us(device: torch.device, kernels: int = 400) -> float:
    """Microseconds from one small kernel to the next of many that wait in a queue."""
    value = torch.zeros(32, device=device)
    value.add_(1)
    times = []
    for _ in range(3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(40_000_000)  # some 20 ms: longer than the host takes to queue them
        begin.record()
        for _ in range(kernels):
            value.add_(1)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / kernels)
    return round(min(times), 4)


def collective_readings(count: int) -> List[Json]:
    """All-reduce, all-gather and broadcast over the first `count` GPUs, from one process through NCCL."""
    from torch.cuda import nccl
    found: List[Json] = []
    devices = [torch.device("cuda", place) for place in range(count)]
    for size in _COLLECTIVES:
        parts = [torch.ones(size // 4, device=device) for device in devices]
        wholes = [torch.empty(size // 4 * count, device=device) for device in devices]
        calls: Dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: nccl.all_reduce(parts),
            "all_gather": lambda: nccl.all_gather(parts, wholes),
            "broadcast": lambda: nccl.broadcast(parts),
        }
        for kind, call in calls.items():
            times = []
            for turn in range(6):
                for device in devices:
                    torch.cuda.synchronize(device)
                begin = time.perf_counter()
                call()
                for device in devices:
                    torch.cuda.synchronize(device)
                if turn:
                    times.append((time.perf_counter() - begin) * 1e6)
            found.append({"kind": kind, "gpus": count, "bytes": size, "us": round(statistics.median(times), 2)})
    return found
