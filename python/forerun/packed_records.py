"""Packed records: `unpack` turns a `run/3` record, which `forerun data merge --compact` writes, into plain columns.

    {"differences": [3, 1, -2]}                     ->  [3, 4, 2]: each to the number before it, the first to 0
    ops.inputs, ops.outputs {"back": [[0, 0], [1]]} ->  [[0, 1], [1]]: how far behind the newest tensor, 0 for a new one
    kernels.start {"gaps": [5, 2]}                  ->  differences of starts; packed, from the end of the kernel before
    ops.sequence {"differences": [1, null, 1]}      ->  [1, -1, 2]: null for an op that has none
    alloc_trace.address {"recency": [0, 0, 2], "new": [7, 9]} -> [7, 9, 7]: rank among those seen, 0 for a new one
    alloc_trace.size {"told": [512]}                ->  frees have the size of what they free

What packing drops (when each kernel was launched) stays dropped. docs/records.md describes the form.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

Json = Dict[str, Any]


def unpack(record: Mapping[str, Any]) -> Json:
    """The record with plain columns, as `run/2` has them; of another schema, as it is."""
    if record.get("schema") != "run/3":
        return dict(record)
    plain: Json = {**record, "schema": "run/2"}
    for group, columns in record.items():
        if isinstance(columns, Mapping) and group in ("tensors", "ops", "frees", "kernels", "storages", "roots"):
            plain[group] = {name: _numbers(column) for name, column in columns.items()}
    if isinstance(plain.get("ops"), Mapping):
        _unpack_operands(plain["ops"])
    if isinstance(plain.get("kernels"), Mapping):
        _unpack_starts(plain["kernels"])
    if isinstance(plain.get("alloc_trace"), Mapping):
        trace = {**plain["alloc_trace"], "address": _addresses(plain["alloc_trace"]["address"])}
        plain["alloc_trace"] = {**trace, "size": _sizes(trace)}
    return plain


def _numbers(column: Any) -> Any:
    if isinstance(column, Mapping) and "differences" in column:
        return _sums(column["differences"])
    return column


def _sums(differences: List[Optional[int]]) -> List[int]:
    numbers, last = [], 0
    for difference in differences:
        last += difference or 0
        numbers.append(-1 if difference is None else last)
    return numbers


def _unpack_operands(ops: Json) -> None:
    if not isinstance(ops["inputs"], Mapping):
        return
    named = 0

    def resolve(distances: List[int]) -> List[int]:
        nonlocal named
        tensors = []
        for distance in distances:
            tensors.append(named - distance)
            named += distance == 0
        return tensors

    pairs = [(resolve(inputs), resolve(outputs))
             for inputs, outputs in zip(ops["inputs"]["back"], ops["outputs"]["back"])]
    ops["inputs"] = [inputs for inputs, _ in pairs]
    ops["outputs"] = [outputs for _, outputs in pairs]


def _unpack_starts(kernels: Json) -> None:
    if isinstance(kernels["start"], Mapping):
        lengths = [0, *kernels["ns"]]
        kernels["start"] = [gap + before for gap, before in zip(kernels["start"]["gaps"], lengths)]


def _addresses(column: Any) -> List[int]:
    if not isinstance(column, Mapping):
        return list(column)
    fresh = iter(_numbers(column["new"]))
    addresses: List[int] = []
    seen: List[int] = []  # the latest first
    for rank in column["recency"]:
        address = seen.pop(rank - 1) if rank else next(fresh)
        seen.insert(0, address)
        addresses.append(address)
    return addresses


def _sizes(trace: Json) -> List[int]:
    if not isinstance(trace["size"], Mapping):
        return list(trace["size"])
    told = iter(trace["size"]["told"])
    known: Dict[Tuple[bool, int], int] = {}  # by whether it is a segment, and address
    sizes = []
    for action, address in zip(trace["action"], trace["address"]):
        place = (action in "SX", address)
        size = known[place] if action in "rfX" and place in known else next(told)
        if action in "aS":
            known[place] = size
        sizes.append(size)
    return sizes
