"""Takes the ops out of measured iterations: op/1 samples (docs/records.md), every distinct op of a family once.

    python -m forerun.setup_pairs setups.py --records runs.jsonl
    python -m forerun.iteration_ops runs.jsonl -o ops.jsonl

Such a sample says how long an op took among others, which the cache and the clocks know about, and takes a tenth of the
space of its iteration. Left out are ops over many tensors at once, as an optimizer's: there are few of them, and
their shapes would take most of the space.
"""
from __future__ import annotations

import argparse
import json
import statistics
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from .grids.sampling import Sample, TensorSpec
from .output_file import output_file
from .packed_records import unpack

Json = Dict[str, Any]

GRID = "iterations"
_MOST_TENSORS = 24
_REMEDY = "give what `python -m forerun.setup_pairs --records` or forerun.collect wrote, unpacked"


class BadRecord(ValueError):
    """A file cannot be read, or a line of it is no record of a measured iteration."""


class _Times:
    """Of the kernels of one op, in nanoseconds."""

    def __init__(self) -> None:
        self.sum = self.span = self.count = self.end = 0

    def add(self, start: int, duration: int) -> None:
        end = max(self.end, start + duration)
        self.span += end - (max(start, self.end) if self.count else start)
        self.sum, self.count, self.end = self.sum + duration, self.count + 1, end


def times_by_op(record: Json) -> Dict[int, _Times]:
    """Kernels that no op launched are left out."""
    kernels, times, start = record["kernels"], {}, 0  # type: Json, Dict[int, _Times], int
    for difference, duration, op in zip(kernels["start"], kernels["ns"], kernels["op"]):
        start += difference
        if op >= 0:
            times.setdefault(op, _Times()).add(start, duration)
    return times


def _specs(record: Json, tensors: Sequence[int]) -> Tuple[TensorSpec, ...]:
    columns, shapes = record["tensors"], record["shapes"]
    found = []
    for tensor in tensors:
        strides = columns["strides"][tensor]
        found.append(TensorSpec(record["dtypes"][columns["dtype"][tensor]], tuple(shapes[columns["shape"][tensor]]),
                                None if strides < 0 else tuple(shapes[strides])))
    return tuple(found)


def ops_of(record: Json) -> Iterator[Tuple[Sample, Tuple[TensorSpec, ...], _Times]]:
    """Every op that ran kernels: what it is, its outputs, and how long it took."""
    ops = record["ops"]
    precision = "tf32" if record["run"]["precision"] == "tf32" else "fp32"
    for op, times in times_by_op(record).items():
        inputs, outputs = ops["inputs"][op], ops["outputs"][op]
        if len(inputs) + len(outputs) <= _MOST_TENSORS:
            attributes = record["attributes"][ops["attributes"][op]]
            name = record["op_names"][ops["name"][op]]
            yield Sample(GRID, name, _specs(record, inputs), attributes, precision), _specs(record, outputs), times


def samples_of(records: Iterable[Json]) -> Iterator[Json]:
    """Op/1 samples, behind their env/1 lines; of equal ops of a family the one that took neither long nor short."""
    found: Dict[Tuple[str, str], List[Tuple[Sample, Tuple[TensorSpec, ...], _Times]]] = {}
    environment: Optional[Json] = None
    for record in records:
        environment = environment or record["env"]
        for sample, outputs, times in ops_of(record):
            found.setdefault((record["family"], sample.id), []).append((sample, outputs, times))
    if environment is not None:
        yield {"schema": "env/1", **environment}
    for (family, identity), equal in found.items():
        middle = statistics.median_low(times.sum for _, _, times in equal)
        sample, outputs, times = next(entry for entry in equal if entry[2].sum == middle)
        yield {
            "schema": "op/1", "id": f"{family}/{identity}", "grid": GRID, "family": family, **sample.describe(),
            "outputs": [spec.to_json() for spec in outputs], "us": times.span / 1e3, "spread": 0,
            "kernels": [["", times.sum / 1e3, times.count]], "status": "ok",
        }


def records_of(file: str) -> Iterator[Json]:
    """The measured iterations of a file. Raises BadRecord, naming the line."""
    try:
        with open(file, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    record = unpack(json.loads(line))
                    if record.get("status") == "ok" and str(record.get("schema", "")).startswith("run/"):
                        record["kernels"], record["tensors"]["strides"], record["ops"], record["family"]
                        yield record
                except json.JSONDecodeError as error:
                    raise BadRecord(f"{file}:{number}: is no JSON ({error}): {_REMEDY}") from error
                except KeyError as error:
                    raise BadRecord(f"{file}:{number}: a run record without {error}: {_REMEDY}") from error
                except (ValueError, TypeError, AttributeError) as error:
                    raise BadRecord(f"{file}:{number}: is no run record ({error}): {_REMEDY}") from error
    except UnicodeDecodeError as error:
        raise BadRecord(f"{file}: is no text: {_REMEDY}") from error
    except OSError as error:
        raise BadRecord(f"{file}: {error.strerror}: name a file that is there") from error


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m forerun.iteration_ops", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="run records, .jsonl (forerun.collect, setup_pairs)")
    parser.add_argument("-o", "--output", required=True, help="file for the samples, .jsonl")
    options = parser.parse_args(arguments)
    count = -1  # without the line on the machine
    try:
        with output_file(options.output) as out:
            for sample in samples_of(record for file in options.files for record in records_of(file)):
                out.write(json.dumps(sample, separators=(",", ":")) + "\n")
                count += 1
            if count < 1:
                raise BadRecord(f"{', '.join(options.files)}: there are no measured iterations")
    except (BadRecord, OSError) as error:
        print(f"forerun.iteration_ops: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {count:,} ops", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
