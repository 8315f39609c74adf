"""One workload on the running nodes of a setting: what is asked of them, and the `resources/1` record made of it.

Series are of worker 0's link, of server 0's link where there is one, and of the GPU that all workers share. Network
series, in steps of STEP_MS, count whole hundredths of the link's rate. Of the GPU, `gpu` and `memory` come from what
the workers' kernels did (kernel_activity.py) in steps of KERNEL_STEP_MS: the percentage of a step in which any kernel
ran, and the bytes that kernels moved. Readings of the hardware, renewed every 100 ms (`counters`), say how much of the
memory's bandwidth that is: the two have the same mean. `compute` comes from the workers' clocks: the percentage of a
step in which any of them was between the begin of its forward pass and the end of its backward pass, which it waits
for. Where kernels cannot be seen, GPU and memory take their times from `compute` and their levels from the counters,
and both have the same times: `gpu_times` says which it was. `worker` metrics are of worker 0's own computing, what its
GPU would do if it had one for itself but were as slow.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Sequence

from .group import Group, NodeFailed
from .kernel_activity import Activity, spread
from .sampling import Reading, Sampler, busy_share, mean_level, rates
from .setting import Setting
from .workloads import Workload

Json = Dict[str, Any]

STEP_MS = 2.5
KERNEL_STEP_MS = 1.0
NETWORK_UNITS = 100  # of the link's rate
KERNEL_UNIT = 0.1  # percent
FLOORS = {"gpu": 1.0, "memory": 0.2, "send": 0.01, "receive": 0.01}
"""What counts as idle in any case: percent of the GPU and of its memory's bandwidth, parts of the link's rate."""
LEAST_IDLE_MS = 10.0
"""Shorter gaps in the traffic belong to the burst around them: transfers that share a link take turns on it."""
LEAST_KERNEL_IDLE_MS = 5.0
"""The same of kernels: small ones come one by one, as the host launches them."""

_WARM_ITERATIONS = 2
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4, 400
_BUILD_S, _WARM_S = 60.0, 30.0
_SLOWEST_ITERATION_S = 2.5
_COUNTERS_LAG_NS = 100_000_000  # what a reading of the GPU stands for may lie so far before it


class TooSlow(Exception):
    """An iteration takes too long for the window."""


def iterations_for(iteration_s: float, window_s: float) -> int:
    """How many iterations fill the window, and at least a few."""
    if iteration_s > _SLOWEST_ITERATION_S:
        raise TooSlow(f"an iteration takes {iteration_s:.1f} s")
    return max(_LEAST_ITERATIONS, min(_MOST_ITERATIONS, math.ceil(window_s / max(iteration_s, 1e-6))))


def head(workload: Workload, setting: Setting) -> Json:
    """What a record says of its workload, however it went."""
    configuration = workload.configuration.to_json()
    return {"schema": "resources/1", "id": workload.id, "status": "ok", "family": configuration["family"],
            "args": configuration["args"], "input": configuration["input"], "run": configuration["run"],
            "source": "testbed", "model": workload.model, "setting": setting.name, "mode": workload.mode,
            "servers": setting.servers, "workers": setting.workers, "link_bits_per_second": setting.bits_per_second,
            "gpu_shared_by": setting.workers}


def measure(group: Group, sampler: Sampler, workload: Workload, program: Path, window_s: float) -> Json:
    """The record. Raises WorkloadFailed, TooSlow (the nodes go on) or NodeFailed (they do not)."""
    setting = group.setting
    begun = time.monotonic()
    workers = list(range(setting.servers, setting.nodes))
    everyone = list(range(setting.nodes))
    built = group.ask({"do": "build", "mode": workload.mode, "workload": workload.configuration.to_json()}, workers,
                      _BUILD_S)
    ready = time.monotonic()
    warmed = group.ask({"do": "warm", "mode": workload.mode, "parameters": built[0]["parameters"],
                        "optimizer": workload.configuration.run["optimizer"], "iterations": _WARM_ITERATIONS},
                       everyone, _WARM_S)
    last = [answer["steps"][-1] for answer in warmed[setting.servers:]]
    iterations = iterations_for(max(steps[-1] - steps[0] for steps in last) * 1e-9, window_s)
    warm = time.monotonic()
    sampler.forget()
    answers = group.ask({"do": "measure", "iterations": iterations, "kernels": True}, everyone, 20.0 + 4 * window_s)
    measured = time.monotonic()
    steps = [answer["steps"] for answer in answers[setting.servers:]]
    begin, end = max(each[0][0] for each in steps), min(each[-1][-1] for each in steps)
    if end <= begin:
        raise NodeFailed("the workers did not train at the same time")
    sampler.wait_for(end)
    record = head(workload, setting)
    record.update(parameters=built[0]["parameters"], parameter_tensors=built[0]["tensors"],
                  worker_gpu_bytes=max(answer["gpu_bytes"] for answer in built), iterations=iterations,
                  window_ms=round((end - begin) * 1e-6, 3), **step_fields(steps, answers[:setting.servers]))
    activity = [answer.get("kernels") or [] for answer in answers[setting.servers:]]
    kernels = [one for each in activity for one in each] if all(activity) else []
    add_series(record, sampler, setting, steps, begin, end, program, kernels)
    problems = [answer["kernels_problem"] for answer in answers if answer.get("kernels_problem")]
    if problems:
        record["kernels_problem"] = problems[0]
    record["cost_s"] = {"build": round(ready - begun, 2), "warm": round(warm - ready, 2),
                        "measure": round(measured - warm, 2), "record": round(time.monotonic() - measured, 2)}
    return record


def step_fields(steps: Sequence[Sequence[Sequence[int]]], servers: Sequence[Json]) -> Json:
    """Iteration times of worker 0, and the mean milliseconds of the steps of an iteration, over all workers."""
    first = steps[0]
    begins = [times[0] for times in first] + [first[-1][-1]]
    names = ("compute", "to_host", "exchange", "to_device")
    count = sum(len(each) for each in steps)
    phases = {name: round(sum(times[number + 1] - times[number] for each in steps for times in each) * 1e-6 / count, 4)
              for number, name in enumerate(names)}
    if servers:
        phases["server_update"] = round(max(int(answer["update_ns"]) for answer in servers) * 1e-6 / len(first), 4)
    return {"iteration_ms": [round((after - before) * 1e-6, 2) for before, after in zip(begins, begins[1:])],
            "phases_ms": phases}


def add_series(record: Json, sampler: Sampler, setting: Setting, steps: Sequence[Sequence[Sequence[int]]], begin: int,
               end: int, program: Path, kernels: Sequence[Activity] = ()) -> None:
    """The fields gpu_source, gpu_times, series, levels and metrics."""
    network, counters = sampler.readings("n"), sampler.readings("g")
    link, step = setting.bits_per_second / 8, round(STEP_MS * 1_000_000)
    shares: Dict[str, List[float]] = {}
    names = ["send", "receive"] + (["server_send", "server_receive"] if setting.servers else [])
    for column, name in enumerate(names):
        shares[name] = [value / link for value in rates(network, column, begin, end, step)]
    compute = busy_share([(times[0], times[1]) for each in steps for times in each], begin, end, step)
    record["gpu_source"] = sampler.source or "none"
    record["levels"] = gpu_levels(counters, compute, begin, end)
    record["series"] = {
        "network_step_ms": STEP_MS, "network_unit": link / NETWORK_UNITS, "compute_step_ms": STEP_MS, "compute_unit": 1,
        **{name: whole(values, NETWORK_UNITS) for name, values in shares.items()}, "compute": whole(compute, 1),
        "counters": [[round((ns - begin) * 1e-6, 1), *(round(value, 1) for value in values)] for ns, values in counters
                     if begin <= ns <= end + _COUNTERS_LAG_NS]}
    alone = busy_share([(times[0], times[1]) for times in steps[0]], begin, end, step)
    clocks = {"compute": compute, "worker": alone}
    seen = kernel_series(kernels, counters, begin, end)
    record["gpu_times"] = "kernels" if seen else "clocks"
    if seen:
        record["series"].update(kernel_step_ms=KERNEL_STEP_MS, kernel_unit=KERNEL_UNIT,
                                **{name: whole(values, round(1 / KERNEL_UNIT)) for name, values in seen.items()})
    else:
        clocks.update({name: [value * level / 100 for value in compute] for name, level in record["levels"].items()})
    record["metrics"] = metrics_of(seen, clocks, shares, link, program)


def kernel_series(kernels: Sequence[Activity], counters: Sequence[Reading], begin: int, end: int
                  ) -> Dict[str, List[float]]:
    """Percent of the GPU's time and of its memory's bandwidth; nothing where either cannot be told."""
    step = round(KERNEL_STEP_MS * 1_000_000)
    moved = spread(kernels, begin, end, step)
    total = sum(moved)
    if len(counters) < 3 or total <= 0:
        return {}
    mean = mean_level(counters, 1, begin + _COUNTERS_LAG_NS, end)
    return {"gpu": busy_share([one[:2] for one in kernels], begin, end, step),
            "memory": [min(100.0, value / total * len(moved) * mean) for value in moved]}


def gpu_levels(counters: Sequence[Reading], compute: Sequence[float], begin: int, end: int) -> Dict[str, float]:
    """Percent of the GPU and of its memory in use while any worker computes; nothing where the GPU cannot be read."""
    share = sum(compute) / max(1, len(compute)) / 100
    if len(counters) < 3 or share <= 0:
        return {}
    return {name: round(min(100.0, mean_level(counters, column, begin + _COUNTERS_LAG_NS, end) / share), 2)
            for column, name in enumerate(("gpu", "memory"))}


def whole(values: Sequence[float], units: int) -> List[int]:
    return [max(0, round(value * units)) for value in values]


def metrics_of(kernels: Dict[str, List[float]], clocks: Dict[str, List[float]], network: Dict[str, List[float]],
               link: float, program: Path) -> Json:
    """Bursts and idles of each series, found by `forerun-testbed metrics`; network amounts in megabytes a second."""
    names = [*kernels, *clocks, *network]
    lines = [metric_line(KERNEL_STEP_MS, FLOORS[name], LEAST_KERNEL_IDLE_MS, values)
             for name, values in kernels.items()]
    lines += [metric_line(STEP_MS, FLOORS.get(name, 1.0), 0.0, values) for name, values in clocks.items()]
    for name, values in network.items():
        floor = FLOORS[name.split("_")[-1]] * link * 1e-6
        lines.append(metric_line(STEP_MS, floor, LEAST_IDLE_MS, [value * link * 1e-6 for value in values]))
    done = subprocess.run([str(program), "metrics"], input="".join(lines), capture_output=True, text=True, timeout=20,
                          check=True)
    return {name: json.loads(line) for name, line in zip(names, done.stdout.splitlines())}


def metric_line(step_ms: float, floor: float, least_idle_ms: float, values: Sequence[float]) -> str:
    return " ".join([str(round(step_ms * 1_000_000)), f"{floor:.6g}", f"{least_idle_ms:g}",
                     *(f"{value:.6g}" for value in values)]) + "\n"


def summary(record: Json) -> str:
    """A line about a record."""
    if record["status"] != "ok":
        return f"{record['id']} {record['status']}: {record.get('error', '')[:200]}"
    mean = sum(record["iteration_ms"]) / len(record["iteration_ms"])
    parts = [f"{record['id']} {record['parameters'] / 1e6:.1f} M parameters, {mean:.1f} ms an iteration"]
    for name in ("gpu", "memory", "compute", "send", "receive"):
        found = record["metrics"].get(name)
        if found:
            parts.append(f"{name} {found['pattern']} {found['burst_ms']:.0f}/{found['idle_ms']:.0f} ms "
                         f"{found['amount']:.3g}")
    return ", ".join(parts)
