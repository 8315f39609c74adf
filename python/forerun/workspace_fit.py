"""Makes the tables of cuDNN workspaces that `forerun predict` reads: data/memory/workspaces.json and convolutions.tsv.

    zstdcat data/h200/*.jsonl.zst | python -m forerun.workspace_fit --out data/memory --split data/h200/split.json
    ... | python -m forerun.workspace_fit --out elsewhere --split data/h200/split.json --without resnet

Reads op/1 samples, whose `workspace` is the peak of a call beyond its outputs, and run records with allocator traces,
of the part that the split names for training. Convolutions are kept as they were measured: the nearest ones tell
what others take (src/memory/convolution_cases.h). For recurrent layers a tree chooses between the two variants of one
formula, which src/memory/workspace_table.cpp holds too.
"""
from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, TextIO, Tuple

from forerun.convolution_cases import ConvolutionCase, case_of_sample, cases_of_run
from forerun.decision_tree import Limits, Node, Split, build_tree
from forerun.families.split import part_of
from forerun.output_file import output_file
from forerun.packed_records import unpack

Json = Dict[str, Any]

MIB = 1 << 20
LARGEST_LOSS = 3.0
TABLE, CASES = "workspaces.json", "convolutions.tsv"

RECURRENT_FEATURES = (
    "half", "mode", "hidden", "input", "batch", "steps", "layers", "directions", "hidden_mod_8", "hidden_mod_64",
    "batch_mod_8", "hidden_mod_16", "hidden_mod_32", "hidden_mod_128", "batch_hidden", "batch_steps",
    "recurrent_bytes", "batch_mod_16",
)

Case = Tuple[List[float], Dict[str, float], float, float]  # features, bytes by formula, scale of errors, measured


class Measurements:
    """What the tables are made of."""

    def __init__(self, split: Optional[Json], without: Sequence[str]) -> None:
        self.environment: Json = {}
        self.convolutions: Dict[ConvolutionCase, None] = {}
        self.recurrent: List[Case] = []
        self._split = split
        self._without = set(without)

    def take(self, record: Json) -> None:
        schema = record.get("schema")
        if schema == "env/1":
            self.environment = record
        elif record.get("status") != "ok":
            return
        elif schema == "run/2":
            self._take_run(record)
        elif "workspace" not in record:  # of an iteration, where nobody looked
            return
        elif "convolution" in record["op"]:
            self._take_convolutions([case_of_sample(record)])
        elif record["op"] == "aten._cudnn_rnn.default":
            self.recurrent.append(recurrent_case(record))

    def _take_run(self, record: Json) -> None:
        family = record["family"]
        trained = self._split is None or part_of(self._split, record.get("id", ""), family) == "train"
        if trained and family not in self._without:
            self._take_convolutions(cases_of_run(record))

    def _take_convolutions(self, cases: Sequence[Optional[ConvolutionCase]]) -> None:
        self.convolutions.update({case: None for case in cases if case is not None and case.runs_in_cudnn()})


def main(arguments: Optional[Sequence[str]] = None, lines: Iterable[str] = sys.stdin) -> None:
    parser = argparse.ArgumentParser(prog="python -m forerun.workspace_fit", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {TABLE} and {CASES}")
    parser.add_argument("--split", type=Path, help="a split.json: only runs of its part `train` are taken")
    parser.add_argument("--without", action="append", default=[], metavar="FAMILY",
                        help="leave the runs of a family out, to judge predictions of it; may be given again")
    options = parser.parse_args(arguments)
    found = Measurements(json.loads(options.split.read_text()) if options.split else None, options.without)
    for record in _records(lines):
        found.take(record)
    options.out.mkdir(parents=True, exist_ok=True)
    with output_file(options.out / TABLE) as out:
        _write(_table(found), out)
    with output_file(options.out / CASES) as out:
        _write_cases(found, out)


def _table(found: Measurements) -> Json:
    return {
        "format": "workspaces/2",
        "gpu": found.environment.get("gpu"),
        "torch": found.environment.get("torch"),
        "cudnn": found.environment.get("cudnn"),
        "source": "python -m forerun.workspace_fit",
        "cases": CASES,
        "recurrent": _fit(found.recurrent, RECURRENT_FEATURES, Limits(leaves=40, cases_in_leaf=3, gain=0.05)),
    }


def _write_cases(found: Measurements, out: TextIO) -> None:
    out.write("# pass\tfamily\thalf\tchannels_last\ttransposed\tgroups\tbatch\tchannels\tfilters\tkernel\t"
              "kernel_height\tstride\tdilation\tpadding\timage\tout_image\tin_width\tworkspace\n")
    out.writelines(sorted(case.line() + "\n" for case in found.convolutions))


def _records(lines: Iterable[str]) -> Iterable[Json]:
    for line in lines:
        begin = line[:200]
        op = '"op/1"' in begin and ("convolution" in line or "_cudnn_rnn." in line)
        run = ('"run/2"' in begin or '"run/3"' in begin) and '"alloc_trace"' in line
        if op or run or '"env/1"' in begin:
            yield unpack(json.loads(line))


def recurrent_case(record: Json) -> Case:
    attributes, tensor = record["attributes"], record["inputs"][0]
    batch_first = attributes["batch_first"]
    batch, steps = tensor[1][:2] if batch_first else (tensor[1][1], tensor[1][0])
    size, hidden, layers = tensor[1][2], attributes["hidden_size"], attributes["num_layers"]
    directions = 2 if attributes["bidirectional"] else 1
    mode = max(attributes["mode"], 1)
    element = 4 if tensor[0] == "float32" else 2
    gates = {1: 1, 2: 4, 3: 3}[mode]
    flat = [given for given in record["inputs"] if given and len(given[1]) == 1 and given[0] != "uint8"]
    weights = max(math.prod(given[1]) for given in flat) * element
    width = max(size, hidden) if directions == 2 else size

    def workspace(with_gates: int, at_least: int) -> float:
        step = max(with_gates * hidden + width, at_least * hidden + max(hidden, width) + 2 * width)
        state = (10 if mode == 2 else 5) * hidden
        copy = size * batch * steps if batch_first and batch > 1 else 0
        elements = directions * batch * (steps * step + state) + copy
        return float(8 * MIB * layers * directions + weights + element * elements)

    formulas = {
        "plain": workspace(5 if mode == 2 else 0, 3),
        "persistent": workspace(21 if mode == 2 else 0, {1: 12, 2: 15, 3: 17}[mode]),
    }
    features = [
        element == 2, mode, hidden, size, batch, steps, layers, directions, hidden % 8, hidden % 64, batch % 8,
        hidden % 16, hidden % 32, hidden % 128, batch * hidden, batch * steps, hidden * hidden * gates * element,
        batch % 16,
    ]
    return features, formulas, float(record["workspace"]), float(record["workspace"])


def _fit(cases: Sequence[Case], names: Sequence[str], limits: Limits) -> List[Json]:
    if not cases:
        return []
    formulas = list(cases[0][1])
    losses = [
        [min(abs(values[formula] - measured) / scale, LARGEST_LOSS) for formula in formulas]
        for _, values, scale, measured in cases
    ]
    nodes = build_tree([features for features, _, _, _ in cases], losses, limits)
    return [_node_json(node, names, formulas) for node in nodes]


def _node_json(node: Node, names: Sequence[str], formulas: Sequence[str]) -> Json:
    if isinstance(node, Split):
        return {"feature": names[node.feature], "at": node.threshold, "below": node.below, "above": node.above}
    return {"is": formulas[node]}


def _write(table: Json, out: TextIO) -> None:
    fields = []
    for name, value in table.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n  " + ",\n  ".join(json.dumps(node) for node in value) + "\n ]"
        fields.append(f" {json.dumps(name)}: {text}")
    out.write("{\n" + ",\n".join(fields) + "\n}\n")


if __name__ == "__main__":
    main()
