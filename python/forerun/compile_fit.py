"""Fits the constants of compiled iterations to measured pairs: data/compile/kernels.json.

    python -m forerun.compile_fit pairs-*.jsonl.gz --program build/forerun -o data/compile/kernels.json
    python -m forerun.compile_fit pairs-*.jsonl.gz --program build/forerun --table    # how far predictions are off
    python -m forerun.compile_fit pairs-*.jsonl.gz --summary data/compile/measured.jsonl
    python -m forerun.compile_fit --ranges eval.json -o data/compile/kernels.json     # of `forerun-lab eval`, alone

Takes the files that forerun.compile_pairs writes. Families whose name begins with `judged` are never fitted to: the
table is of them. Kernels: fixed time and share of the bandwidth by kind, from Inductor's own count of bytes. Host:
from iterations that the host bounds, with the numbers of kernels that the program predicts. Ranges: quantiles of
measured over predicted, of families not kept aside; with --ranges, such that families that were left out lie in them.
"""
from __future__ import annotations

import argparse
import gzip
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

Json = Dict[str, Any]

H200_BYTES_PER_US = 4.8e6
_COVERED = 0.9  # share of set-ups of families left out that lie within a range
HOST_BOUND = 0.9  # the GPU is busy for less of the iteration
_KINDS = {"triton_poi": "pointwise", "triton_per": "reduction", "triton_red": "reduction"}


def rows_of(files: Sequence[str]) -> List[Json]:
    """The pairs that were measured whole, the first of each name."""
    rows: Dict[str, Json] = {}
    for file in files:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                if "error" not in row and row["eager"].get("status") == "ok":
                    rows.setdefault(row["name"], row)
    return list(rows.values())


def is_kept_aside(row: Json) -> bool:
    return str(row["name"]).startswith("judged")


def in_use(row: Json) -> List[Json]:
    """The graphs of the steady state: those of the last compilation, where a model was compiled twice."""
    graphs: List[Json] = row["graphs"]
    kinds = [graph["kind"] for graph in graphs]
    return graphs[2:] if kinds == ["forward", "backward"] * 2 else graphs


def measured_kernels(row: Json) -> Iterator[Tuple[str, int, float]]:
    """Kind, bytes and microseconds of generated kernels, where the profile has them in the order of the code."""
    graphs = in_use(row)
    ordered = [graph for graph in graphs if graph["kind"] != "backward"]
    ordered += [graph for graph in graphs if graph["kind"] == "backward"]
    made: List[Tuple[str, int]] = []
    for graph in ordered:
        by_buffer = {buffer: kernel for kernel in graph["kernels"] for buffer in kernel["outputs"]}
        for kernel in graph["generated"]:
            found = [by_buffer[buffer] for buffer in kernel["buffers"] if buffer in by_buffer]
            made.append((kernel["name"], found[-1]["bytes"] if found else kernel["bytes"]))
    compiled = row["compiled"]
    names = compiled["kernel_names"]
    ran = [(names[name], ns / 1000) for name, ns in zip(compiled["kernels"]["name"], compiled["kernels"]["ns"])
           if names[name].startswith("triton_")]
    if [name for name, _ in made] != [name for name, _ in ran]:
        return
    for (name, size), (_, took) in zip(made, ran):
        if size > 0 and name[:10] in _KINDS:
            yield _KINDS[name[:10]], size, took


def fitted_kind(samples: Sequence[Tuple[int, float]]) -> Json:
    """The fixed time and share that leave the least error: of single kernels by ratio, weighted by their time."""
    def error(fixed: float, share: float) -> float:
        return sum(took * abs(math.log((fixed + size / (share * H200_BYTES_PER_US)) / took)) + 0.5 * abs(
            math.log((fixed + size / (share * H200_BYTES_PER_US)) / took)) for size, took in samples)

    grid = [(fixed / 20, share / 100) for fixed in range(12, 50, 2) for share in range(30, 110, 2)]
    fixed, share = min(grid, key=lambda point: error(*point))
    return {"fixed_us": fixed, "bandwidth_share": share}


def fit_kernels(rows: Sequence[Json]) -> Json:
    samples: Dict[str, List[Tuple[int, float]]] = {"pointwise": [], "reduction": []}
    for row in rows:
        if not is_kept_aside(row):
            for kind, size, took in measured_kernels(row):
                samples[kind].append((size, took))
    fitted = {kind: fitted_kind(found) for kind, found in samples.items()}
    fitted["scatter"] = dict(fitted["pointwise"])
    return fitted


def predicted(row: Json, program: str) -> Optional[Json]:
    """What the program says of the eager record, compiled; nothing where it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "capture.jsonl"
        file.write_text(json.dumps(row["eager"]) + "\n")
        command = [program, "predict", str(file), "--gpu", "h200", "--compile", "default", "--json", "--brief"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        print(f"forerun.compile_fit: {row['name']}: {done.stderr.strip()}", file=sys.stderr)
        return None
    said: Json = json.loads(done.stdout)
    return said


def measured(row: Json) -> Json:
    figures = {}
    for name in ("eager", "compiled"):
        record = row[name]
        figures[name] = {
            "iter_ms": record["time_ms"]["pipelined_median"], "gpu_ms": round(sum(record["kernels"]["ns"]) / 1e6, 6),
            "kernels": len(record["kernels"]["ns"]), "peak_allocated": record["mem"]["peak_allocated"],
            "peak_reserved": record["mem"]["peak_reserved"],
        }
    return figures


def is_host_bound(row: Json, which: str = "compiled") -> bool:
    found = measured(row)[which]
    return bool(found["gpu_ms"] < HOST_BOUND * found["iter_ms"])


def fit_host(pairs: Sequence[Tuple[Json, Json]], before: Json) -> Json:
    """Microseconds of a kernel and of a call of a library (one figure), and of entering a graph, on a host at the speed
    of the constants. How fast the host of a pair was taken to be follows from what the program made of the figures
    `before`. It was busy compiling other set-ups meanwhile: by how much that slowed it down is seen in the eager
    iteration of the same pair, where the host bounds that too."""
    samples = []
    for row, said in pairs:
        if is_kept_aside(row) or not is_host_bound(row) or not is_host_bound(row, "eager"):
            continue
        busy = measured(row)["eager"]["iter_ms"] / said["iter_ms"]
        compiled = said["compiled"]
        kernels = compiled["pointwise"] + compiled["reductions"] + compiled["scatters"]
        outside = compiled["outside_host_ms"] * 1000
        inside = before["kernel"] * kernels + before["library"] * compiled["libraries"] + 2 * before["graph"]
        slowness = (compiled["host_ms"] * 1000 - outside) / inside
        took = measured(row)["compiled"]["iter_ms"] * 1000 / busy
        samples.append((kernels + compiled["libraries"], slowness, took, outside))

    def error(call: float, graph: float) -> float:
        return sum(abs(math.log(((call * calls + 2 * graph) * slowness + outside) / took))
                   for calls, slowness, took, outside in samples)

    grid = [(call / 4, graph * 100.0) for call in range(8, 240) for graph in range(0, 41)]
    call, graph = min(grid, key=lambda point: error(*point))
    return {"kernel": call, "library": call, "graph": graph}


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


def fit_ranges(pairs: Sequence[Tuple[Json, Json]]) -> Json:
    groups: Dict[str, List[float]] = {"gpu": [], "gpu_bound": [], "host_bound": [], "allocated": []}
    for row, said in pairs:
        if is_kept_aside(row):
            continue
        found, compiled = measured(row)["compiled"], said["compiled"]
        groups["gpu"].append(found["gpu_ms"] / compiled["gpu_ms"])
        groups["host_bound" if compiled["bound"] == "host" else "gpu_bound"].append(
            found["iter_ms"] / compiled["iter_ms"])
        groups["allocated"].append(found["peak_allocated"] / compiled["peak_allocated"])
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
    groups: Dict[str, Dict[str, List[float]]] = {name: {} for name in ("gpu", "gpu_bound", "host_bound", "allocated")}
    for case in cases:
        if case["kept_aside"]:
            continue
        found, said = case["measured"], case["predicted"]
        bound = "host_bound" if case["bound"] == "host" else "gpu_bound"
        for group, figure in (("gpu", "gpu_ms"), ("gpu_bound", "gpu_ms"), (bound, "iter_ms"),
                              ("allocated", "peak_allocated")):
            groups[group].setdefault(case["name"].split("/")[0], []).append(found[figure] / said[figure])
    return {name: range_of(ratios) for name, ratios in groups.items()}


def all_predicted(rows: Sequence[Json], program: str) -> List[Tuple[Json, Json]]:
    found = [(row, predicted(row, program)) for row in rows if row["graphs"]]
    return [(row, said) for row, said in found if said is not None]


def fit(rows: Sequence[Json], program: str, output: str) -> None:
    """Writes the file step by step, since the program reads it: kernels, then host, then ranges."""
    path = pathlib.Path(output)
    constants = json.loads(path.read_text())
    constants["source"] = ("python -m forerun.compile_fit on the pairs of data/compile/README.md: PyTorch 2.11 on an "
                           "H200, families not kept aside")
    constants["kernels"] = fit_kernels(rows)
    path.write_text(json.dumps(constants, indent=2) + "\n")
    pairs = all_predicted(rows, program)
    constants["host_us"] = fit_host(pairs, constants["host_us"])
    constants["compiling_s"] = fit_compiling(pairs)
    path.write_text(json.dumps(constants, indent=2) + "\n")
    constants["ranges"] = fit_ranges(all_predicted(rows, program))
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
    for row in sorted(rows, key=lambda row: str(row["name"])):
        kinds: Dict[str, int] = {}
        for graph in in_use(row):
            for kernel in graph["kernels"]:
                if kernel.get("call") != "MultiOutput" and kernel["kind"] != "nop":
                    kinds[kernel["kind"]] = kinds.get(kernel["kind"], 0) + 1
        run = row["eager"].get("run", {})
        lines.append(json.dumps({
            "name": row["name"], "kept_aside": is_kept_aside(row), "precision": run.get("precision"), **measured(row),
            "first_s": row["compiled"]["first_s"], "graphs": len(row["graphs"]), "kinds": kinds,
            "breaks": [reason.split("\n")[0] for reason in row["compiled"]["counted"].get("graph_break", {})],
        }))
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
    parser.add_argument("-o", "--output", help="fit, and write the constants into this file, which must be there")
    parser.add_argument("--table", action="store_true", help="errors on families kept aside")
    parser.add_argument("--summary", metavar="FILE", help="write what was measured, a line a pair")
    parser.add_argument("--ranges", metavar="FILE", help="write the ranges alone into the output, from this file that "
                        "`forerun-lab eval --suite compile --json` wrote")
    parser.add_argument("--all", action="store_true", help="with --table: on the others too")
    options = parser.parse_args(arguments)
    if options.ranges:
        if not options.output:
            parser.error("--ranges needs --output")
        return refit_ranges(options.ranges, options.output)
    if not options.pairs:
        parser.error("give files of forerun.compile_pairs, or --ranges")
    rows = rows_of(options.pairs)
    if options.output:
        fit(rows, options.program, options.output)
    if options.summary:
        pathlib.Path(options.summary).write_text(summary(rows))
    if options.table:
        print(table(all_predicted(rows, options.program), options.all), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
