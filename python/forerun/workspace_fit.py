"""Fits the table of cuDNN workspaces that `forerun predict` reads (data/memory/workspaces.json).

    zstdcat data/h200/ops-1.jsonl.zst | python -m forerun.workspace_fit > data/memory/workspaces.json

Reads op/1 samples of convolutions and recurrent layers, whose `workspace` is the peak of a call beyond its outputs.
For convolutions a tree chooses among formulas: copies of input, output and weight (`i`, `o`, `w`, padded to 4 or 8
channels a group), shares of them, parts of a split sum, constants. For recurrent layers it chooses between the two
variants of one formula, which src/memory/workspace_table.cpp holds too.
"""
from __future__ import annotations

import json
import math
import sys
from typing import Any, Dict, Iterable, List, Sequence, TextIO, Tuple

from forerun.decision_tree import Limits, Node, Split, build_tree

Json = Dict[str, Any]

MIB = 1 << 20
RATIOS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8, 12)
CONSTANTS = (512, MIB, 4 * MIB, 16 * MIB)
SPLITS = (1, 2, 4, 8, 16, 32, 64, 132)
LARGEST_LOSS = 3.0

CONVOLUTION_FEATURES = (
    "half", "channels_last", "transposed", "groups", "group_in", "group_out", "kernel", "kernel_h", "stride",
    "dilation", "batch", "channels", "filters", "image", "out_image", "in_bytes", "out_bytes", "weight_bytes", "rows",
    "channels_mod_8", "filters_mod_8", "padding", "in_width",
)
RECURRENT_FEATURES = (
    "half", "mode", "hidden", "input", "batch", "steps", "layers", "directions", "hidden_mod_8", "hidden_mod_64",
    "batch_mod_8", "hidden_mod_16", "hidden_mod_32", "hidden_mod_128", "batch_hidden", "batch_steps",
    "recurrent_bytes", "batch_mod_16",
)

Case = Tuple[List[float], Dict[str, float], float, float]  # features, bytes by formula, scale of errors, measured


def main() -> None:
    environment: Json = {}
    convolutions: Dict[str, List[Case]] = {"convolution": [], "input_gradient": [], "weight_gradient": []}
    recurrent: List[Case] = []
    for record in _records(sys.stdin):
        if record.get("schema") == "env/1":
            environment = record
        elif record.get("status") != "ok":
            continue
        elif "convolution" in record["op"]:
            name, case = convolution_case(record)
            if case:
                convolutions[name].append(case)
        elif record["op"] == "aten._cudnn_rnn.default":
            recurrent.append(recurrent_case(record))
    table: Json = {
        "format": "workspaces/1",
        "gpu": environment.get("gpu"),
        "torch": environment.get("torch"),
        "cudnn": environment.get("cudnn"),
        "source": "python -m forerun.workspace_fit on op/1 samples: peak bytes of a call beyond its outputs",
    }
    for name, cases in convolutions.items():
        table[name] = _fit(cases, CONVOLUTION_FEATURES, Limits())
    table["recurrent"] = _fit(recurrent, RECURRENT_FEATURES, Limits(leaves=40, cases_in_leaf=3, gain=0.05))
    _write(table, sys.stdout)


def _records(lines: Iterable[str]) -> Iterable[Json]:
    for line in lines:
        if '"env/1"' in line or "convolution" in line or "_cudnn_rnn.default" in line:
            yield json.loads(line)


def _pad(value: int, step: int) -> int:
    return (value + step - 1) // step * step


def convolution_case(record: Json) -> Tuple[str, Any]:
    """Which table the sample belongs to, and the sample; None where the input is no image."""
    attributes = record["attributes"]
    if record["op"] == "aten.convolution.default":
        name, image, weight, result = "convolution", record["inputs"][0], record["inputs"][1], record["outputs"][0]
    else:
        name = "input_gradient" if attributes["output_mask"][0] else "weight_gradient"
        result, image, weight = record["inputs"][:3]
    if len(image[1]) < 4:
        return name, None
    half = image[0] != "float32"
    element, step = (2, 8) if half else (4, 4)
    groups = attributes.get("groups", 1)
    batch, channels, filters = image[1][0], image[1][1], result[1][1]
    group_in, group_out = channels // groups, filters // groups
    pixels, out_pixels, kernel = math.prod(image[1][2:]), math.prod(result[1][2:]), math.prod(weight[1][2:])
    i, o = batch * channels * pixels * element, batch * filters * out_pixels * element
    w = group_in * group_out * groups * kernel * element
    padded_i = batch * _pad(group_in, step) * groups * pixels * element
    padded_o = batch * _pad(group_out, step) * groups * out_pixels * element
    padded_w = _pad(group_in, step) * _pad(group_out, step) * groups * kernel * element
    channels_last = image[2] is not None and image[2][1] == 1 and channels > 1
    features = [
        half, channels_last, bool(attributes.get("transposed")), groups, group_in, group_out, kernel, weight[1][2],
        max(attributes["stride"]), max(attributes["dilation"]), batch, channels, filters, pixels, out_pixels, i, o, w,
        batch * out_pixels, channels % 8, filters % 8, max(attributes["padding"]), image[1][-1],
    ]
    float_w = w * 4 // element
    formulas: Dict[str, float] = {
        "none": 0, "iow": padded_i + padded_o + padded_w, "io": padded_i + padded_o, "iw": padded_i + padded_w,
        "ow": padded_o + padded_w, "i": padded_i, "o": padded_o, "w": padded_w, "batched_w4": batch * float_w,
        "iow4": padded_i + padded_o + float_w,
    }
    formulas.update({f"ratio{ratio:g}": (i + o + w) * ratio for ratio in RATIOS})
    formulas.update({f"abs{constant}": constant for constant in CONSTANTS})
    formulas.update({f"split{parts}": float_w * parts for parts in SPLITS})
    formulas.update({f"iowsplit{parts}": padded_i + padded_o + float_w * parts for parts in SPLITS[1:6]})
    return name, (features, formulas, float(i + o + w + MIB), float(record["workspace"]))


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
