"""Which ops `forerun.calibrate` times, in which order: those that tell most about the rest come first.

    python -m forerun.calibration_ops runs.jsonl ops.jsonl -o forerun/calibration_ops.json.xz --leave-out vgg,vit

Two sources are mixed. What iterations are made of apart from convolutions (products, norms, element-wise ops, copies,
pooling, attention, losses) is a list beside this file, chosen from measured iterations: an op's chance to be on it is
the square root of the time that iterations spend in it. Convolutions, recurrent layers, optimizer steps and odd shapes
are drawn by the grids of `forerun.microbench`, which take no space. Stopped anywhere, the plan has covered every
source in proportion (SHARES).
"""
from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import sys
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .grids import GRIDS
from .grids.sampling import Draw, Sample
from .iteration_ops import BadRecord, ops_of, records_of

FORMAT = "calibration_ops/1"
LIST = Path(__file__).with_name("calibration_ops.json.xz")
CHOSEN = "iterations"
LENGTH = 4000
_FIRST = 800  # of the list, those that most time is spent in come before all others
# How much there is to do, or where, stands in the values of a tensor, which are drawn here.
_BY_VALUE = ("_grouped_mm", "_embedding_bag_backward")
_ELSEWHERE = ("convolution", "_cudnn_rnn", "_foreach_", "_fused_")  # drawn by grids

# Of every hundred ops, how many come from the list and from each grid, while they last.
SHARES: Mapping[str, int] = {
    CHOSEN: 38, "conv_net": 34, "conv_large": 3, "conv": 3, "rnn": 5, "gemm": 4, "attention": 3, "optimizer": 2,
    "elementwise": 2, "norm": 2, "reduction": 1, "pool": 1, "softmax": 1, "index": 1,
}


def chosen(path: Path = LIST) -> List[Sample]:
    """The list beside this file, those that most time is spent in first."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        table = json.load(file)
    if table["format"] != FORMAT:
        raise ValueError(f"{path}: unknown format {table['format']!r}; known is {FORMAT}")
    samples = [Sample.from_json({"op": op, "precision": precision, "attributes": attributes, "inputs": inputs}, CHOSEN)
               for op, precision, attributes, entries in table["ops"] for inputs in entries]
    first = set(table["first"])
    ranked = sorted(range(len(samples)), key=lambda place: (place not in first, samples[place].id))
    return [samples[place] for place in ranked if not any(part in samples[place].op for part in _BY_VALUE)]


def calibration_plan(length: int) -> List[Sample]:
    """The first `length` ops of the plan; each op once."""
    streams: Dict[str, Iterator[Sample]] = {CHOSEN: iter(chosen())}
    for name, share in SHARES.items():
        if name != CHOSEN:
            make, count = GRIDS[name]
            streams[name] = iter(make(Draw(f"{name}:0"), min(count, length * share // 50 + 20)))
    credit = {name: 0.0 for name in streams}
    plan: Dict[str, Sample] = {}
    while streams and len(plan) < length:
        for name in list(streams):
            credit[name] += SHARES[name]
        name = max(streams, key=lambda stream: credit[stream])
        credit[name] -= sum(SHARES[stream] for stream in streams)
        sample = next(streams[name], None)
        if sample is None:
            del streams[name]
        else:
            plan.setdefault(sample.id, sample)
    return list(plan.values())


# -- how the list was chosen -------------------------------------------------------------------------------------------


def spent(files: Iterable[str], leave_out: Set[str]) -> Dict[str, Tuple[Sample, float]]:
    """Microseconds that measured iterations, or op samples of such, spend in each distinct op, by its id."""
    found: Dict[str, Tuple[Sample, float]] = {}

    def add(sample: Sample, us: float) -> None:
        known = found.get(sample.id)
        found[sample.id] = (sample, us + (known[1] if known else 0.0))

    for file in files:
        for record in records_of(file):
            if record["family"] not in leave_out and not str(record["id"]).startswith(tuple(leave_out)):
                for sample, _, times in ops_of(record):
                    add(sample, times.sum / 1e3)
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith('{"schema":"op/1"'):
                    record = json.loads(line)
                    if record["status"] == "ok" and record.get("family") and record["family"] not in leave_out:
                        add(Sample.from_json(record, CHOSEN), record["us"])
    return {name: entry for name, entry in found.items() if not any(part in entry[0].op for part in _ELSEWHERE)}


def choose(ops: Mapping[str, Tuple[Sample, float]], length: int, seed: int = 0) -> List[Sample]:
    """Draws ops without putting any back, each by the square root of its time; the likeliest draws first."""
    draw = random.Random(seed)
    keys = {name: -math.log(1 - draw.random()) / math.sqrt(max(us, 1e-3)) for name, (_, us) in sorted(ops.items())}
    return [ops[name][0] for name in sorted(keys, key=lambda name: keys[name])[:length]]


def to_table(samples: Sequence[Sample]) -> Dict[str, object]:
    """What is stored: ops of one kind together, which packs well."""
    groups: Dict[str, List[Sample]] = {}
    for sample in samples:
        described = sample.describe()
        groups.setdefault(json.dumps([described["op"], described["precision"], described["attributes"]]), []).append(
            sample)
    first = {sample.id for sample in samples[:_FIRST]}
    ops: List[List[object]] = []
    places: List[int] = []
    count = 0
    for key in sorted(groups):
        ordered = sorted(groups[key], key=lambda sample: json.dumps(sample.describe()["inputs"]))
        places += [count + place for place, sample in enumerate(ordered) if sample.id in first]
        count += len(ordered)
        ops.append([*json.loads(key), [sample.describe()["inputs"] for sample in ordered]])
    return {"format": FORMAT, "first": places, "ops": ops}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.calibration_ops", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="run records and op samples of iterations, .jsonl")
    parser.add_argument("-o", "--output", required=True, type=Path, help="the list to write, .json.xz")
    parser.add_argument("--leave-out", default="", metavar="A,B", help="families, or beginnings of ids, not to choose")
    parser.add_argument("--length", type=int, default=LENGTH, help="how many ops (default: %(default)s)")
    options = parser.parse_args(arguments)
    leave_out = {name for name in options.leave_out.split(",") if name}
    try:
        table = to_table(choose(spent(options.files, leave_out), options.length))
        with lzma.open(options.output, "wt", preset=9 | lzma.PRESET_EXTREME, encoding="utf-8") as file:
            json.dump(table, file, separators=(",", ":"))
    except (BadRecord, OSError, ValueError) as error:
        print(f"forerun.calibration_ops: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
