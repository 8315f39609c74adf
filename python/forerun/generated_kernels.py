"""Generated kernels that were timed alone, with what their code says of them; and constants that are fitted to them.

    python -m forerun.generated_kernels folder kernels.jsonl.gz -o kernel_times.jsonl   # joins code and times
    python -m forerun.generated_kernels --fit kernel_times.jsonl                        # prints constants

`folder` is what forerun.compile_check --code wrote, `kernels.jsonl.gz` what forerun.compiled_kernels made of it. A line
for each pass: what the host took to issue it and how many calls of each kind there were, and of every generated kernel
its kind, the extents of its loops, the bytes that it reads and writes (Inductor's count), whether a row's elements lie
together, how often costly functions stand in its code, whether it adds into rows, and its time. Where Inductor's count
does not match what was launched (kernels that were cut in two), bytes are -1.
"""
from __future__ import annotations

import argparse
import gzip
import json
import math
import pathlib
import re
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

Json = Dict[str, Any]

H200_BYTES_PER_US = 4.8e6
_KINDS = {"triton_poi": "pointwise", "triton_per": "persistent", "triton_red": "looped"}
_FUNCTIONS = {  # by constant: what stands in the code
    "random": ("tl.rand(",), "erf": ("libdevice.erf",),
    "exp": ("tl_math.exp", "libdevice.exp", "tl.sigmoid", "libdevice.tanh"), "trig": ("tl_math.cos", "tl_math.sin"),
}
_LAUNCH = re.compile(r"(triton_\w+?)\.run\((.*), stream=")
_CALL = re.compile(r"(?:extern_kernels\.|torch\.ops\.)([\w.]+)\(")
_SOURCE = re.compile(r"async_compile\.triton\('(\w+)', '''(.*?)'''", re.DOTALL)
_HINT = re.compile(r"reduction_hint=ReductionHint\.(\w+)")


# -- code and times ---------------------------------------------------------------------------------------------------


def kind_of_call(name: str) -> str:
    """Whose cost it has on the host (host_us of data/compile/kernels.json)."""
    if "convolution_backward" in name:
        return "convolution_backward"
    if "convolution" in name:
        return "convolution"
    return "attention" if "attention" in name else "library"


def calls_of(code: str) -> Tuple[List[Tuple[str, List[int]]], List[str]]:
    """Generated kernels with the extents of their loops, and calls of libraries, in their order."""
    body = code[code.index("def call(self, args):"):]
    launches, calls = [], []
    for line in body[:body.index("return (")].splitlines():
        launch, call = _LAUNCH.search(line), _CALL.search(line)
        if launch:
            extents = [int(word) for word in launch[2].split(", ") if word.isdigit()]
            launches.append((launch[1], extents))
        elif call:
            calls.append(call[1])
    return launches, calls


def joined(code: str, moved: Sequence[Any], timed: Json) -> Json:
    """A pass: its generated kernels as columns, and what was issued."""
    launches, calls = calls_of(code)
    sources = dict(_SOURCE.findall(code))
    us = [ns / 1000 for name, ns in zip(timed["kernels"], timed["ns"]) if name.startswith("triton_")]
    names = [name for name in timed["kernels"] if name.startswith("triton_")]
    if names != [name for name, _ in launches]:
        raise ValueError("other kernels were timed than the code launches")
    sizes = [int(size) for _, size in moved] if len(moved) == len(launches) else [-1] * len(launches)
    counts = {kind: 0 for kind in ("library", "attention", "convolution", "convolution_backward")}
    for call in calls:
        counts[kind_of_call(call)] += 1
    columns: Dict[str, List[Any]] = {key: [] for key in ("kind", "extents", "bytes", "hint", "functions", "adds", "us")}
    for (name, extents), size, took in zip(launches, sizes, us):
        source = sources.get(name, "")
        hint = _HINT.search(source)
        columns["kind"].append(_KINDS.get(name[:10], "other"))
        columns["extents"].append(extents)
        columns["bytes"].append(size)
        columns["hint"].append(hint[1] if hint else "")
        columns["functions"].append([sum(source.count(word) for word in words) for words in _FUNCTIONS.values()])
        columns["adds"].append("tl.atomic_add" in source)
        columns["us"].append(took)
    return {"issued_ms": timed["issued_ms"], "gpu_ms": round(sum(timed["ns"]) / 1e6, 4),
            "launched": len(timed["ns"]), "calls": {"kernel": len(launches), **counts}, "kernels": columns}


def passes_of(folder: pathlib.Path, times: str) -> Iterator[Json]:
    with gzip.open(times, "rt") as lines:
        for row in map(json.loads, lines):
            if "error" in row:
                print(f"{row['name']}: {row['error']}", file=sys.stderr)
                continue
            code = folder / row["name"].replace("/", ".")
            for which in ("forward", "backward"):
                told = json.loads((code / f"{which}.json").read_text())
                yield {"name": row["name"], "pass": which,
                       **joined((code / f"{which}.py").read_text(), told["moved"], row[which])}


# -- constants --------------------------------------------------------------------------------------------------------


def is_kept_aside(row: Json) -> bool:
    return str(row["name"]).startswith("judged")


def descended(start: Dict[str, float], error: Callable[[Dict[str, float]], float]) -> Dict[str, float]:
    """Moves one constant after the other, by smaller and smaller shares of itself."""
    found, best, steps = dict(start), error(start), {name: 0.5 for name in start}
    while max(steps.values()) > 0.01:
        for name, step in steps.items():
            for factor in (1 + step, 1 / (1 + step)):
                tried = {**found, name: found[name] * factor}
                off = error(tried)
                if off < best:
                    best, found = off, tried
                    break
            else:
                steps[name] = 0.6 * step
    return found


def kernels_of(rows: Sequence[Json], kind: str, columns: bool) -> List[Tuple[float, float, float, float]]:
    """Of a kind of reduction: microseconds of its bytes at the full bandwidth, of what it computes, thousands of
    elements of a row, and microseconds it took. Those that add into rows, and those of mixed orders, are left out."""
    costs = (3.631, 0.827, 0.709, 2.182)  # picoseconds of the functions, fitted to whole pairs (compile_fit)
    found = []
    for row in rows:
        if is_kept_aside(row):
            continue
        table = row["kernels"]
        for place, of in enumerate(table["kind"]):
            hint, extents, size = table["hint"][place], table["extents"][place], table["bytes"][place]
            if of != kind or table["adds"][place] or size <= 0 or hint == "DEFAULT" or len(extents) < 2:
                continue
            if (hint != "INNER") != columns:
                continue
            length, elements = extents[-1], math.prod(extents)
            if size > 32 * elements:  # Inductor counts the whole of a table that is looked up in
                continue
            each = 0.194 + sum(cost * count for cost, count in zip(costs, table["functions"][place]))
            if kind == "persistent":
                elements = elements // length * (1 << (length - 1).bit_length())
            found.append((size / H200_BYTES_PER_US, 1e-6 * elements * each, length / 1000, table["us"][place]))
    return found


def fitted_kind(samples: Sequence[Tuple[float, float, float, float]]) -> Json:
    def error(tried: Dict[str, float]) -> float:
        return sum((took + 0.5) * abs(math.log(
            (tried["fixed"] + math.hypot(tried["memory"] * memory, computing, tried["step"] * row)) / took))
            for memory, computing, row, took in samples)

    found = descended({"fixed": 2.0, "memory": 1.2, "step": 0.3}, error)
    return {"fixed_us": round(found["fixed"], 3), "bandwidth_share": round(1 / found["memory"], 3),
            "step_ns": round(found["step"], 3)}


def fitted_statistics(rows: Sequence[Json], columns: Json) -> float:
    """Picoseconds an element of columns whose mean and variance are taken at once, as the forward passes of batch norms
    do, where that is not hidden behind the bytes. `columns`: the constants of columns that are added up."""
    samples = []
    for row in rows:
        if is_kept_aside(row) or row["pass"] != "forward":
            continue
        table = row["kernels"]
        for kind, hint, extents, size, took in zip(*(table[key] for key in ("kind", "hint", "extents", "bytes", "us"))):
            if kind == "looped" and hint == "OUTER" and len(extents) == 2 and size > 0:
                moving = size / H200_BYTES_PER_US / columns["bandwidth_share"]
                samples.append((moving, 1e-6 * math.prod(extents), columns["step_ns"] * extents[1] / 1000, took))

    def error(tried: Dict[str, float]) -> float:
        return sum((took + 0.5) * abs(math.log(
            (columns["fixed_us"] + math.hypot(max(moving, tried["each"] * elements), 0.194 * elements, steps)) / took))
            for moving, elements, steps, took in samples)

    return round(descended({"each": 1.0}, error)["each"], 3) if samples else 0.0


def fitted_host(rows: Sequence[Json]) -> Json:
    """Microseconds of each kind of call, of passes that the host takes longer for than the GPU."""
    samples = [(row["calls"], row["issued_ms"] * 1000) for row in rows
               if not is_kept_aside(row) and row["gpu_ms"] < 0.9 * row["issued_ms"]]
    start = {"kernel": 12.0, "library": 30.0, "attention": 60.0, "convolution": 40.0, "convolution_backward": 100.0,
             "pass": 50.0}

    def error(tried: Dict[str, float]) -> float:
        return sum(abs(math.log((tried["pass"] + sum(tried[kind] * count for kind, count in calls.items())) / took))
                   for calls, took in samples)

    return {name: round(cost, 1) for name, cost in descended(start, error).items()} if samples else {}


def constants_of(rows: Sequence[Json]) -> Json:
    columns = fitted_kind(kernels_of(rows, "looped", True))
    return {
        "kernels": {"looped": fitted_kind(kernels_of(rows, "looped", False)),
                    "looped_columns": {**columns, "statistics_ps": fitted_statistics(rows, columns)}},
        "issued_us": fitted_host(rows),
    }


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m forerun.generated_kernels", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("inputs", nargs="*", help="the folder of the code, and the file of times")
    add("-o", "--output", metavar="FILE", help="where the lines go")
    add("--fit", metavar="FILE", help="print the constants that leave the least error of this file's kernels")
    options = parser.parse_args(arguments)
    if not options.fit and (len(options.inputs) != 2 or not options.output):
        parser.error("name a folder of code, a file of times and -o FILE, or --fit FILE")
    try:
        _run(options)
    except OSError as error:
        print(f"forerun.generated_kernels: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"forerun.generated_kernels: the times cannot be read: {error}; a .zst is unpacked first (zstd -d)",
              file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.fit:
        with open(options.fit, encoding="utf-8") as lines:
            print(json.dumps(constants_of([json.loads(line) for line in lines]), indent=2))
        return
    with open(options.output, "w", encoding="utf-8") as out:
        for row in passes_of(pathlib.Path(options.inputs[0]), options.inputs[1]):
            out.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    sys.exit(main())
