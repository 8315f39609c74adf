"""Fits the constants of compiled iterations to measured pairs: data/compile/kernels.json.

    python -m forerun.compile_fit pairs-*.jsonl.gz --program build/forerun -o data/compile/kernels.json \
        --timed kernel_times.jsonl
    python -m forerun.compile_fit pairs-*.jsonl.gz --program build/forerun --table    # how far predictions are off
    python -m forerun.compile_fit pairs-*.jsonl.gz --summary data/compile/measured.jsonl
    python -m forerun.compile_fit pairs.jsonl.gz --repeated again.jsonl.gz            # how far measurements are apart
    python -m forerun.compile_fit --ranges eval.json -o data/compile/kernels.json     # of `forerun-lab eval`, alone

Takes the files that forerun.compile_pairs writes. Families whose name begins with `judged` are never fitted to: the
table is of them. Kernels: fixed time and share of the bandwidth by kind, and what functions cost an element, from
Inductor's own count of bytes and nodes. Host: from iterations that the host bounds, with the numbers of kernels that
the program predicts and what each kind of call took when it was issued alone. Reductions in loops, and those calls,
are fitted to passes that were timed alone (--timed, forerun.generated_kernels). Ranges: quantiles of measured over
predicted, of families not kept aside; with --ranges, such that families that were left out lie in them.
"""
from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from .generated_kernels import constants_of, kind_of_call

Json = Dict[str, Any]

H200_BYTES_PER_US = 4.8e6
_COVERED = 0.9  # share of set-ups of families left out that lie within a range
HOST_BOUND = 0.9  # the GPU is busy for less of the iteration
_KINDS = {"triton_poi": "pointwise", "triton_per": "persistent", "triton_red": "looped"}
# What costs a GPU more than the bytes around it, by the calls that are lowered to it (src/compile/arithmetic.h).
_FUNCTIONS = {
    "random": ("prims.inductor_random",), "erf": ("aten.erf.",),
    "exp": ("aten.exp.", "aten.sigmoid", "aten.tanh", "prims.prepare_softmax_online"), "trig": ("aten.cos", "aten.sin"),
}
_STEP_NS = 0.6  # an element of a looped reduction after the other, while the others are fitted
# Not fitted by this program. An addition into a row where others add too: what the five scatters of a graph network
# took beyond their bytes; one where neighbouring threads meet: what T5's tables of 32 biases did (graph_network-0,
# t5-0, t5-1 and t5_base of data/compile), by the difference of whole iterations. Additions into small tables, of 32
# bits: LeViT's biases of relative positions, timed alone; of 16 bits: BEiT's, in its whole iteration (places drawn at
# random, as alone, meet four times less). Looks into windows: ResNet-50's largest elements, forward and backward, timed
# alone. Additions where neighbours add far from each other: nine gradients of enlarged images of two set-ups, each in
# one kernel of its whole iteration (10.3 to 12.9 ps, and 11.1 to 11.6). Batch norms that are applied: ResNet-50's,
# Xception's and Visformer's, timed alone.
_CHOSEN_PS = {"norm": 0.69, "look": 0.76, "look_back": 1.77, "add": 2.2, "apart": 11.0, "often": 115.0,
              "often_narrow": 1960.0, "crowded": 800.0}
_GRAPHS = ("reduce-overhead", "max-autotune")  # modes that launch CUDA graphs
_RANGES = ("gpu", "gpu_bound", "host_bound", "allocated", "captured_allocated")


def rows_of(files: Sequence[str]) -> List[Json]:
    """The pairs that were measured whole, the first of each name and mode."""
    rows: Dict[Tuple[str, str], Json] = {}
    for file in files:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                if "error" not in row and row["eager"].get("status") == "ok":
                    rows.setdefault((row["name"], row["mode"]), row)
    return list(rows.values())


def is_kept_aside(row: Json) -> bool:
    return str(row["name"]).startswith("judged")


def in_use(row: Json) -> List[Json]:
    """The graphs of the steady state: those of the last compilation, where a model was compiled twice."""
    graphs: List[Json] = row["graphs"]
    kinds = [graph["kind"] for graph in graphs]
    return graphs[2:] if kinds == ["forward", "backward"] * 2 else graphs


@dataclasses.dataclass
class Generated:
    """A generated kernel, as its cost is modelled (src/cost/generated/generated.h)."""

    kind: str
    size: int  # bytes that it touches
    elements: int  # of its loops; rows that are held whole filled up to a power of two
    row: int  # elements that become one
    counts: Dict[str, int]  # of what is computed for each element
    took_us: float

    def features(self) -> Dict[str, float]:
        """What each constant is multiplied with, in microseconds."""
        work = {name: 1e-6 * self.elements * count for name, count in self.counts.items()}
        return {"memory": self.size / H200_BYTES_PER_US, "element": 1e-6 * self.elements, **work}


def computed(graph: Json, kernel: Json) -> Dict[str, int]:
    """How often each costly function is taken for an element, by the graph's nodes that are computed in the kernel."""
    nodes, targets = graph["nodes"]["target"], graph["targets"]
    names = [str(targets[nodes[node]]) for node in kernel["origins"]]
    found = {word: sum(name.startswith(starts) for name in names) for word, starts in _FUNCTIONS.items()}
    # The sums beside the gradient of an activation read what was made of it; its nodes are noted there all the same.
    only_adds = kernel["name"].startswith("triton_red") and kernel["counts"][0] == 1
    return {word: 0 if only_adds and found["erf"] else count for word, count in found.items()}


def generated_kernels(row: Json) -> Iterator[Generated]:
    """The generated kernels of an iteration, where the profile has them in the order of the code."""
    graphs = in_use(row)
    ordered = [graph for graph in graphs if graph["kind"] != "backward"]
    ordered += [graph for graph in graphs if graph["kind"] == "backward"]
    made: List[Tuple[Json, Json]] = []
    for graph in ordered:
        by_buffer = {buffer: kernel for kernel in graph["kernels"] for buffer in kernel["outputs"]}
        for kernel in graph["generated"]:
            parts = [by_buffer["buf" + name[2:]] for name in kernel["buffers"] if "buf" + name[2:] in by_buffer]
            origins = sorted({origin for part in parts for origin in part.get("origins", [])})
            made.append((graph, {**kernel, "origins": origins}))
    compiled = row["compiled"]
    names = compiled["kernel_names"]
    ran = [(names[name], ns / 1000) for name, ns in zip(compiled["kernels"]["name"], compiled["kernels"]["ns"])
           if names[name].startswith("triton_")]
    if [kernel["name"] for _, kernel in made] != [name for name, _ in ran]:
        return
    for (graph, kernel), (name, took) in zip(made, ran):
        if kernel["bytes"] > 0 and name[:10] in _KINDS:
            row_length = int(kernel["extents"].get("r0_", 1))
            elements = math.prod(int(extent) for extent in kernel["extents"].values())
            if _KINDS[name[:10]] == "persistent":
                elements = elements // row_length * (1 << (row_length - 1).bit_length())
            yield Generated(_KINDS[name[:10]], kernel["bytes"], elements, row_length, computed(graph, kernel), took)


def kernel_us(constants: Dict[str, float], kernel: Generated, features: Dict[str, float]) -> float:
    memory = constants[f"{kernel.kind} memory"] * features["memory"]
    arithmetic = sum(constants[name] * amount for name, amount in features.items() if name != "memory")
    steps = _STEP_NS * 1e-3 * kernel.row if kernel.kind == "looped" else 0.0
    return constants[f"{kernel.kind} fixed"] + math.hypot(memory, arithmetic, steps)


def fit_kernels(rows: Sequence[Json]) -> Json:
    """Constants that leave the least error: of single kernels by ratio, weighted by their time. One is moved after the
    other, or two against each other, by smaller and smaller steps."""
    kernels = [kernel for row in rows if not is_kept_aside(row) for kernel in generated_kernels(row)]
    samples = [(kernel, kernel.features()) for kernel in kernels]
    constants = {name: 1.0 for name in ("element", *_FUNCTIONS)}
    for kind in ("pointwise", "persistent", "looped"):
        constants.update({f"{kind} fixed": 2.0, f"{kind} memory": 1.1})

    def error(tried: Dict[str, float]) -> float:
        return sum((kernel.took_us + 0.5) * abs(math.log(kernel_us(tried, kernel, features) / kernel.took_us))
                   for kernel, features in samples)

    def moves(name: str, step: float) -> Iterator[Dict[str, float]]:
        for by in (step, -step):
            yield {name: by}
            if name in _FUNCTIONS:  # what one costs more the other costs less: neither would move alone
                yield {name: by, "element": -by}

    best, steps = error(constants), {name: 0.5 for name in constants}
    while samples and max(steps.values()) > 0.01:
        for name, step in steps.items():
            for move in moves(name, step):
                tried = {**constants, **{moved: max(constants[moved] + by, 0.0) for moved, by in move.items()}}
                found = error(tried)
                if found < best:
                    best, constants = found, tried
                    break
            else:
                steps[name] = 0.6 * step
    kinds = {kind: {"fixed_us": round(constants[f"{kind} fixed"], 3),
                    "bandwidth_share": round(1 / constants[f"{kind} memory"], 3)}
             for kind in ("pointwise", "persistent")}
    kinds["scatter"] = dict(kinds["pointwise"])
    arithmetic = {name: round(constants[name], 3) for name in ("element", *_FUNCTIONS)}
    return {"kernels": kinds, "arithmetic_ps": {**arithmetic, **_CHOSEN_PS}}


def captures_of(file: Optional[str]) -> Dict[str, Json]:
    """Records of set-ups captured without a GPU, by set-up."""
    if file is None:
        return {}
    with open(file, encoding="utf-8") as lines:
        return {str(record["id"]): record for record in map(json.loads, lines)}


def predicted(row: Json, program: str, captures: Dict[str, Json]) -> Optional[Json]:
    """What the program says of the set-up, compiled, from its capture or else its eager record; nothing where it
    refuses."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "capture.jsonl"
        file.write_text(json.dumps(captures.get(row["name"], row["eager"])) + "\n")
        command = [program, "predict", str(file), "--gpu", "h200", "--compile", row["mode"], "--json", "--brief"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        print(f"forerun.compile_fit: {row['name']}: {done.stderr.strip()}", file=sys.stderr)
        return None
    said: Json = json.loads(done.stdout)
    return said


def measured(row: Json) -> Json:
    """Of both. What CUDA graphs hold is in the peaks of the whole run alone: replays allocate nothing."""
    figures = {}
    for name in ("eager", "compiled"):
        record = row[name]
        peaks = record["mem"]
        if name == "compiled" and row["mode"] in _GRAPHS:
            peaks = record["kept_cache_mem"]
        figures[name] = {
            "iter_ms": record["time_ms"]["pipelined_median"], "gpu_ms": round(sum(record["kernels"]["ns"]) / 1e6, 6),
            "kernels": len(record["kernels"]["ns"]), "peak_allocated": peaks["peak_allocated"],
            "peak_reserved": peaks["peak_reserved"],
        }
        if "kept_cache_mem" in record:  # since 2026-11-19
            figures[name]["peak_reserved_kept_cache"] = record["kept_cache_mem"]["peak_reserved"]
    return figures


def is_host_bound(row: Json, which: str = "compiled") -> bool:
    found = measured(row)[which]
    return bool(found["gpu_ms"] < HOST_BOUND * found["iter_ms"])


def calls_of(compiled: Json) -> Dict[str, int]:
    """What a predicted iteration issues within compiled graphs, by kind."""
    counts = {"kernel": compiled["pointwise"] + compiled["reductions"] + compiled["scatters"],
              "library": compiled["libraries"], "attention": 0, "convolution": 0, "convolution_backward": 0}
    for call in compiled["library_calls"]:  # the ten with the most time: what has a cost of its own is among them
        kind = kind_of_call(call["name"])
        if kind != "library":
            counts[kind] += call["count"]
            counts["library"] -= call["count"]
    return counts


def fit_host(pairs: Sequence[Tuple[Json, Json]], before: Json, issued: Json) -> Json:
    """Microseconds of a kernel and of a call of a library by its kind, and of entering a graph, on a host at the speed
    of the constants: `issued`, what they took alone, in a real loop. How fast the host of a pair was taken to be
    follows from what the program made of the figures `before`. It was busy compiling other set-ups meanwhile: by how
    much that slowed it down is seen in the eager iteration of the same pair, where the host bounds that too."""
    samples = []
    for row, said in pairs:
        if is_kept_aside(row) or not is_host_bound(row) or not is_host_bound(row, "eager"):
            continue
        busy = measured(row)["eager"]["iter_ms"] / said["iter_ms"]
        compiled = said["compiled"]
        calls, graphs = calls_of(compiled), compiled["graphs"]
        outside = compiled["outside_host_ms"] * 1000
        inside = sum(before[kind] * count for kind, count in calls.items()) + graphs * before["graph"]
        slowness = (compiled["host_ms"] * 1000 - outside) / inside
        took = measured(row)["compiled"]["iter_ms"] * 1000 / busy
        alone = sum(issued[kind] * count for kind, count in calls.items())
        samples.append((alone, graphs, slowness, took, outside))

    def error(share: float, graph: float) -> float:
        return sum(abs(math.log(((share * alone + graph * graphs) * slowness + outside) / took))
                   for alone, graphs, slowness, took, outside in samples)

    grid = [(share / 20, graph * 50.0) for share in range(10, 61) for graph in range(0, 21)]
    share, graph = min(grid, key=lambda point: error(*point))
    return {**{kind: round(share * issued[kind], 1) for kind in before if kind not in ("graph", "parameter")},
            "graph": graph, "parameter": before["parameter"]}


def fit_masked_attention(pairs: Sequence[Tuple[Json, Json]], before: float) -> float:
    """The median of measured over predicted, of cuDNN's attention with a mask; `before`: what it was taken for."""
    ratios = []
    for row, said in pairs:
        calls = [call for graph in in_use(row) for call in attention_calls(graph)]
        if is_kept_aside(row) or not calls or any(len(reads) < 4 for reads in calls):
            continue
        compiled = row["compiled"]
        names = compiled["kernel_names"]
        took = sum(ns for name, ns in zip(compiled["kernels"]["name"], compiled["kernels"]["ns"])
                   if names[name].startswith("cudnn") and "sdpa" in names[name]) / 1e6
        expected = sum(call["gpu_ms"] for call in said["compiled"]["library_calls"]
                       if "cudnn_attention" in call["name"])
        if took > 0 and expected > 0:
            ratios.append(took / expected * before)
    return round(statistics.median(ratios), 3) if ratios else before


def attention_calls(graph: Json) -> Iterator[List[int]]:
    """What cuDNN's attention reads, forward."""
    for target, reads in zip(graph["nodes"]["target"], graph["nodes"]["reads"]):
        if graph["targets"][target] == "aten._scaled_dot_product_cudnn_attention.default":
            yield reads


def fit_compiling(pairs: Sequence[Tuple[Json, Json]]) -> Json:
    samples = []
    for row, _ in pairs:
        graphs = in_use(row)
        if not is_kept_aside(row) and graphs:
            samples.append((sum(len(graph["nodes"]["target"]) for graph in graphs), row["compiled"]["first_s"]))

    def error(start: float, node: float) -> float:
        return sum(abs(math.log((start + node * nodes) / took)) for nodes, took in samples)

    grid = [(start / 2, node / 2000) for start in range(0, 60) for node in range(1, 60)]
    start, node = min(grid, key=lambda point: error(*point))
    return {"start": start, "node": node}


def bounds(ratios: Sequence[float], share: float, apart: float = 1.0) -> Tuple[float, float]:
    """Two quantiles, as far from both ends, moved apart by a factor."""
    ordered = sorted(ratios) or [1.0]

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return at(share) / apart, at(1 - share) * apart


def quantiles(ratios: Sequence[float]) -> Json:
    """From the 5 % to the 95 % quantile, since families that nobody has fitted to lie farther off, and never narrower
    than 3 % to both sides."""
    low, high = bounds(ratios, 0.05)
    return {"low": round(min(low, 0.97), 3), "high": round(max(high, 1.03), 3)}


def allocated_group(mode: str) -> str:
    return "captured_allocated" if mode in _GRAPHS else "allocated"


def fit_ranges(pairs: Sequence[Tuple[Json, Json]]) -> Json:
    groups: Dict[str, List[float]] = {name: [] for name in _RANGES}
    for row, said in pairs:
        if is_kept_aside(row):
            continue
        found, compiled = measured(row)["compiled"], said["compiled"]
        groups["gpu"].append(found["gpu_ms"] / compiled["gpu_ms"])
        groups["host_bound" if compiled["bound"] == "host" else "gpu_bound"].append(
            found["iter_ms"] / compiled["iter_ms"])
        groups[allocated_group(row["mode"])].append(found["peak_allocated"] / compiled["peak_allocated"])
    return {name: quantiles(ratios) for name, ratios in groups.items()}


def range_of(ratios: Dict[str, List[float]]) -> Json:
    """The narrowest range of quantiles of measured over predicted, by family, in which nine of ten set-ups lie whose
    family was left out; beyond the extremes, these are moved apart."""
    def covered(share: float, apart: float) -> bool:
        hits = []
        for family, left_out in ratios.items():
            others = [ratio for other, those in ratios.items() if other != family for ratio in those]
            low, high = bounds(others, share, apart)
            hits += [low <= ratio <= high for ratio in left_out]
        return sum(hits) >= _COVERED * len(hits)

    steps = [(share / 200, 1.0) for share in range(10, -1, -1)] + [(0.0, 1 + step / 200) for step in range(1, 101)]
    share, apart = next((step for step in steps if covered(*step)), steps[-1])
    low, high = bounds([ratio for those in ratios.values() for ratio in those], share, apart)
    return {"low": round(min(low, 0.97), 3), "high": round(max(high, 1.03), 3)}


def ranges_of(cases: Sequence[Json]) -> Json:
    """Ranges from the cases of `forerun-lab eval --suite compile --json`, of families not kept aside. An iteration that
    the GPU bounds is off by as much as its GPU time: few are bound so, and GPU times of all count with them."""
    groups: Dict[str, Dict[str, List[float]]] = {name: {} for name in _RANGES}
    for case in cases:
        if case["kept_aside"]:
            continue
        found, said = case["measured"], case["predicted"]
        bound = "host_bound" if case["bound"] == "host" else "gpu_bound"
        for group, figure in (("gpu", "gpu_ms"), ("gpu_bound", "gpu_ms"), (bound, "iter_ms"),
                              (allocated_group(case["mode"]), "peak_allocated")):
            groups[group].setdefault(case["name"].split("/")[0], []).append(found[figure] / said[figure])
    return {name: range_of(ratios) for name, ratios in groups.items() if ratios}


def all_predicted(rows: Sequence[Json], program: str, captures: Dict[str, Json]) -> List[Tuple[Json, Json]]:
    found = [(row, predicted(row, program, captures)) for row in rows if row["graphs"]]
    return [(row, said) for row, said in found if said is not None]


def fit(rows: Sequence[Json], program: str, captures: Dict[str, Json], timed: Sequence[Json], output: str) -> None:
    """Writes the file step by step, since the program reads it: kernels, then host, then ranges."""
    path = pathlib.Path(output)
    constants = json.loads(path.read_text())
    found = fit_kernels(rows)
    alone = constants_of(timed)
    for kind, fitted in {**found["kernels"], **alone["kernels"]}.items():
        constants["kernels"][kind].update(fitted)
    constants["arithmetic_ps"].update(found["arithmetic_ps"])
    path.write_text(json.dumps(constants, indent=2) + "\n")
    pairs = all_predicted(rows, program, captures)
    constants["masked_attention"] = fit_masked_attention(pairs, constants["masked_attention"])
    constants["host_us"] = fit_host(pairs, constants["host_us"], alone["issued_us"])
    constants["compiling_s"] = fit_compiling(pairs)
    path.write_text(json.dumps(constants, indent=2) + "\n")
    constants["ranges"] = fit_ranges(all_predicted(rows, program, captures))
    path.write_text(json.dumps(constants, indent=2) + "\n")


def refit_ranges(judged: str, output: str) -> int:
    """Writes ranges alone; constants stay. They only become wider: rules are mended on the very set-ups that they are
    taken from, which lie nearer for it than others do."""
    path = pathlib.Path(output)
    constants = json.loads(path.read_text())
    for name, found in ranges_of(json.loads(pathlib.Path(judged).read_text())["cases"]).items():
        known = constants["ranges"][name]
        constants["ranges"][name] = {"low": min(known["low"], found["low"]), "high": max(known["high"], found["high"])}
    path.write_text(json.dumps(constants, indent=2) + "\n")
    return 0


def summary(rows: Sequence[Json]) -> str:
    """A line for each pair: what was measured of both, and what Inductor made of it."""
    lines = []
    for row in sorted(rows, key=lambda row: (row["name"], row["mode"])):
        kinds: Dict[str, int] = {}
        for graph in in_use(row):
            for kernel in graph["kernels"]:
                if kernel.get("call") != "MultiOutput" and kernel["kind"] != "nop":
                    kinds[kernel["kind"]] = kinds.get(kernel["kind"], 0) + 1
        run = row["eager"].get("run", {})
        host = {"host_us": row["eager"]["host_us"]} if "host_us" in row["eager"] else {}
        lines.append(json.dumps({
            "name": row["name"], "mode": row["mode"], "kept_aside": is_kept_aside(row),
            "precision": run.get("precision"), **measured(row), **host,
            "first_s": row["compiled"]["first_s"], "graphs": len(row["graphs"]), "kinds": kinds,
            "breaks": [reason.split("\n")[0] for reason in row["compiled"]["counted"].get("graph_break", {})],
        }))
    return "\n".join(lines) + "\n"


def repeated(rows: Sequence[Json], others: Sequence[Json]) -> str:
    """How far the same set-ups are apart that were measured twice: what no prediction can be nearer than."""
    again = {row["name"]: row for row in others}
    both = [(row, measured(row), measured(again[row["name"]])) for row in rows if row["name"] in again]

    def apart(pairs: Iterator[Tuple[float, float]]) -> str:
        differences = [abs(first / second - 1) for first, second in pairs]
        return f"{100 * statistics.fmean(differences):.2f} % of {len(differences)}" if differences else "of none"

    lines = [f"{title}: {apart((one['compiled'][name], other['compiled'][name]) for _, one, other in both)}"
             for title, name in (("GPU time", "gpu_ms"), ("peak allocated", "peak_allocated"))]
    lines += [f"iteration, the host bounds it, {which}: " + apart(
        (one[which]["iter_ms"], other[which]["iter_ms"]) for row, one, other in both if is_host_bound(row))
        for which in ("compiled", "eager")]
    gains = [abs(one["compiled"]["iter_ms"] / one["eager"]["iter_ms"] - other["compiled"]["iter_ms"] /
                 other["eager"]["iter_ms"]) for _, one, other in both]
    lines.append(f"gain: {100 * statistics.fmean(gains):.1f} points of {len(gains)}" if gains else "gain: of none")
    return "\n".join(lines) + "\n"


_COLUMNS = ("iter_ms", "gpu_ms", "kernels", "peak_allocated", "peak_reserved")


def table(pairs: Sequence[Tuple[Json, Json]], every: bool) -> str:
    lines = [f"{'set-up':36} {'bound':>5} {'iteration':>10} {'GPU time':>9} {'kernels':>8} {'allocated':>10} "
             f"{'reserved':>9} {'eager it.':>10} {'gain':>6} (points; predicted -> measured)"]
    sizes: Dict[str, List[float]] = {name: [] for name in (*_COLUMNS, "eager", "gain", "host", "gpu_bound")}
    signs = []
    within: Dict[str, List[bool]] = {"iteration": [], "GPU time": [], "allocated": []}
    for row, said in pairs:
        if not every and not is_kept_aside(row):
            continue
        found, compiled = measured(row), said["compiled"]
        errors = [compiled[name] / found["compiled"][name] - 1 for name in _COLUMNS]
        gains = compiled["iter_ratio"], found["compiled"]["iter_ms"] / found["eager"]["iter_ms"]
        bound = is_host_bound(row)
        for name, figure, low, high in (
            ("iteration", "iter_ms", compiled["iter_low_ms"], compiled["iter_high_ms"]),
            ("GPU time", "gpu_ms", compiled["gpu_low_ms"], compiled["gpu_high_ms"]),
            ("allocated", "peak_allocated", compiled["peak_allocated_low"], compiled["peak_allocated_high"]),
        ):
            within[name].append(low <= found["compiled"][figure] <= high)
        for name, error in zip(_COLUMNS, errors):
            sizes[name].append(abs(error))
        sizes["eager"].append(abs(said["iter_ms"] / found["eager"]["iter_ms"] - 1))
        sizes["host" if bound else "gpu_bound"].append(abs(errors[0]))
        sizes["gain"].append(abs(gains[0] - gains[1]))
        if abs(gains[1] - 1) > 0.05:
            signs.append((gains[0] < 1) == (gains[1] < 1))
        lines.append(f"{row['name']:36} {'host' if bound else 'GPU':>5} "
                     f"{100 * errors[0]:>+8.1f} % {100 * errors[1]:>+7.1f} % "
                     f"{100 * errors[2]:>+6.1f} % {100 * errors[3]:>+8.1f} % {100 * errors[4]:>+7.1f} % "
                     f"{100 * (said['iter_ms'] / found['eager']['iter_ms'] - 1):>+8.1f} % "
                     f"{100 * (gains[0] - gains[1]):>+6.1f} ({gains[0]:.2f} -> {gains[1]:.2f})")
    picks: Dict[str, Callable[[Sequence[float]], float]] = {"mean, without sign": statistics.fmean,
                                                            "median": statistics.median}
    for title, pick in picks.items():
        figures = [100 * pick(sizes[name]) for name in (*_COLUMNS, "eager", "gain")]
        lines.append(f"{title:36}       {figures[0]:>7.1f} % {figures[1]:>7.1f} % {figures[2]:>6.1f} % "
                     f"{figures[3]:>8.1f} % {figures[4]:>7.1f} % {figures[5]:>8.1f} % {figures[6]:>6.1f}")
    for name, title in (("gpu_bound", "GPU-bound"), ("host", "host-bound")):
        if sizes[name]:
            lines.append(f"iteration, {title}: mean {100 * statistics.fmean(sizes[name]):.1f} % of {len(sizes[name])}")
    lines.append("within the range: " + ", ".join(
        f"{title} {sum(hits)} of {len(hits)}" for title, hits in within.items() if hits))
    lines.append(f"sign of the gain right: {sum(signs)} of {len(signs)} beyond 5 %")
    return "\n".join(lines) + "\n"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.compile_fit", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pairs", nargs="*", help="files of forerun.compile_pairs")
    parser.add_argument("--program", default="forerun", help="the forerun that predicts; default: forerun")
    parser.add_argument("--captures", metavar="FILE", help="predict from these captures (.jsonl, made without a "
                        "GPU), which tell what Dynamo masks; without them from the eager records")
    parser.add_argument("-o", "--output", help="fit, and write the constants into this file, which must be there")
    parser.add_argument("--timed", metavar="FILE", help="with -o: passes that were timed alone, a file of "
                        "forerun.generated_kernels")
    parser.add_argument("--table", action="store_true", help="errors on families kept aside")
    parser.add_argument("--summary", metavar="FILE", help="write what was measured, a line a pair")
    parser.add_argument("--ranges", metavar="FILE", help="write the ranges alone into the output, from this file that "
                        "`forerun-lab eval --suite compile --json` wrote")
    parser.add_argument("--repeated", metavar="PAIRS", help="how far set-ups are apart that this file has too")
    parser.add_argument("--all", action="store_true", help="with --table: on the others too")
    options = parser.parse_args(arguments)
    if options.ranges:
        if not options.output:
            parser.error("--ranges needs --output")
        return refit_ranges(options.ranges, options.output)
    if not options.pairs:
        parser.error("give files of forerun.compile_pairs, or --ranges")
    rows, captures = rows_of(options.pairs), captures_of(options.captures)
    if options.output and not options.timed:
        parser.error("--output needs --timed: reductions in loops and calls are fitted to passes timed alone")
    if options.output:
        with open(options.timed, encoding="utf-8") as lines:
            fit(rows, options.program, captures, [json.loads(line) for line in lines], options.output)
    if options.summary:
        pathlib.Path(options.summary).write_text(summary(rows))
    if options.repeated:
        print(repeated(rows, rows_of([options.repeated])), end="")
    if options.table:
        print(table(all_predicted(rows, options.program, captures), options.all), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
