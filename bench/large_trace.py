#!/usr/bin/env python3
"""A profiler trace of any size, for measuring how large ones are read: one iteration after the other of a real trace.

usage: bench/large_trace.py TRACE OUT [--bytes N]

TRACE is a profiler trace (.json, .json.gz or .json.zst; the last needs the program zstd). Its events are written again and
again, each time later and with correlations and ids of their own, so that the file has what a long recording has, until it
has N bytes (10^9 unless given).
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from typing import Any

IDS = ["External id", "correlation", "Ev Idx", "Python id", "Python parent id"]


def trace_of(path: str) -> dict[str, Any]:
    if path.endswith(".zst"):
        return json.loads(subprocess.run(["zstd", "-dc", path], check=True, stdout=subprocess.PIPE).stdout)
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        return json.load(file)


def pieces_of(events: list[dict[str, Any]]) -> tuple[list[str], list[tuple[str, float]], float, int]:
    """Texts around the numbers that change from copy to copy, what these are, how long the trace is, how many ids it has."""
    times = [float(event["ts"]) for event in events if event.get("ph") == "X"]
    ends = [float(event["ts"]) + float(event.get("dur", 0)) for event in events if event.get("ph") == "X"]
    most = 0
    texts, numbers = [""], []

    def hole(kind: str, value: float) -> None:
        numbers.append((kind, value))
        texts.append("")

    for number, event in enumerate(events):
        texts[-1] += ",\n  {" if number else "\n  {"
        for at, (key, value) in enumerate(event.items()):
            texts[-1] += (", " if at else "") + json.dumps(key) + ": "
            if key == "ts":
                hole("time", float(value))
            elif key == "id" and isinstance(value, int):
                most = max(most, value)
                hole("id", value)
            elif key == "args" and isinstance(value, dict):
                texts[-1] += "{"
                for place, (name, argument) in enumerate(value.items()):
                    texts[-1] += (", " if place else "") + json.dumps(name) + ": "
                    if name in IDS and isinstance(argument, int) and argument > 0:
                        most = max(most, argument)
                        hole("id", argument)
                    else:
                        texts[-1] += json.dumps(argument)
                texts[-1] += "}"
            else:
                texts[-1] += json.dumps(value)
        texts[-1] += "}"
    return texts, numbers, max(ends) - min(times), most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace")
    parser.add_argument("out")
    parser.add_argument("--bytes", type=int, default=10**9)
    options = parser.parse_args()
    trace = trace_of(options.trace)
    # Names of processes and threads once, the rest again and again.
    named = [event for event in trace["traceEvents"] if event.get("ph") == "M"]
    texts, numbers, length, most = pieces_of([event for event in trace["traceEvents"] if event.get("ph") != "M"])
    head = {key: value for key, value in trace.items() if key != "traceEvents"}
    written = copies = 0
    with open(options.out, "w", encoding="utf-8") as out:
        written += out.write(json.dumps(head)[:-1] + (", " if head else "") + '"traceEvents": [\n')
        written += out.write(",\n".join(json.dumps(event) for event in named))
        while written < options.bytes:
            later, on = copies * (length + 100), copies * most
            parts = [texts[0]]
            for (kind, value), text in zip(numbers, texts[1:]):
                parts += [f"{value + later:.3f}" if kind == "time" else str(int(value) + on), text]
            written += out.write((",\n" if named or copies else "") + "".join(parts))
            copies += 1
        written += out.write("\n]}\n")
    print(f"{options.out}: {written:,} bytes, {options.trace} {copies} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
