"""Records as lines of JSON, and what a whole record has (docs/records.md: `run/2`, `run/3`, `op/1`, `env/1`).

    {"schema":"run/2","id":"resnet-0017","status":"ok","backend":"cuda","family":"resnet",...}

`encode` writes HEAD first, so that `head` can tell what is finished without decoding the rest. `check` looks at fields,
lengths of columns and ranges of indices; whether the values make sense is for `forerun data validate`.
"""

from __future__ import annotations

import json
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from forerun.packed_records import unpack

Record = Mapping[str, object]

STATUSES = ("ok", "oom", "failed")
BACKENDS = ("cuda", "generic")
PRECISIONS = ("fp32", "tf32", "amp_bf16", "amp_fp16", "bf16", "fp16")

HEAD = ("schema", "id", "status", "backend", "family", "args", "input", "run")
"""What a line begins with, of these what the record has."""

_HEAD_BYTES = 1 << 14
_ENVIRONMENT = ("gpu", "torch", "cuda", "cudnn", "driver", "cpu", "host", "date")

_RUN_ALWAYS = ("id", "backend", "family", "args", "input", "run")
_RUN_GRAPH = ("params", "param_tensors", "op_names", "modules", "module_types", "dtypes", "shapes", "attributes",
              "nodes", "tensors", "ops", "storages", "frees", "roots")
_RUN_MEASURED = ("env", "host_us", "mem", "mem_init", "base_allocated", "time_ms", "kernel_names", "kernels", "profile",
                 "cost_s")  # and, of some, alloc_trace
_RUN_BY_STATUS = {"ok": _RUN_GRAPH + _RUN_MEASURED, "oom": ("env", "tried", "cost_s"), "failed": ("env", "error")}

_OP_ALWAYS = ("id", "grid", "op", "attributes", "inputs", "outputs", "precision", "status")
_OP_BY_STATUS = {"ok": ("us", "spread", "kernels", "workspace"), "oom": (), "failed": ("error",)}

# The columns of each group, all of one length.
_COLUMNS = {
    "tensors": ("storage", "dtype", "shape", "strides", "offset"),
    "ops": ("name", "phase", "module", "inputs", "outputs", "attributes", "sequence", "node"),
    "storages": ("bytes",),
    "frees": ("op", "storage"),
    "roots": ("storage", "kind", "name"),
    "kernels": ("name", "start", "ns", "stream", "launch", "launch_ns", "thread", "op"),
    "alloc_trace": ("action", "address", "size", "stream"),
}
_PACKED_KERNELS = ("name", "start", "ns", "stream", "op")
# The letters of columns that are strings, a letter a row.
_LETTERS = {("ops", "phase"): "fbu", ("roots", "kind"): "pbsi", ("alloc_trace", "action"): "arfSXMUO"}
# Columns of indices: what they point into, and the least index allowed.
_INDICES = (
    ("tensors", "storage", "storages", 0), ("tensors", "dtype", "dtypes", 0), ("tensors", "shape", "shapes", 0),
    ("tensors", "strides", "shapes", -1), ("ops", "name", "op_names", 0), ("ops", "module", "modules", -1),
    ("ops", "inputs", "tensors", 0), ("ops", "outputs", "tensors", 0), ("ops", "attributes", "attributes", 0),
    ("ops", "node", "nodes", -1), ("storages", "host", "storages", 0), ("frees", "storage", "storages", 0),
    ("roots", "storage", "storages", 0), ("kernels", "name", "kernel_names", 0), ("kernels", "op", "ops", -1),
)


class RecordError(ValueError):
    """A record that cannot be written as JSON."""


def encode(record: Record) -> bytes:
    """A record as one line of compact JSON, with its end. Raises RecordError for NaN, infinities and foreign types."""
    ordered = {name: record[name] for name in HEAD if name in record}
    ordered.update(record)
    try:
        text = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise RecordError(f"record {record.get('id')!r} cannot be written: {error}") from error
    return text.encode("utf-8", errors="replace") + b"\n"


def head(line: bytes) -> Dict[str, object]:
    """The fields of HEAD of a record; of a line that `encode` wrote, without decoding more. Raises ValueError."""
    if line.endswith(b"}\n"):
        try:
            fields = _leading_fields(line[:_HEAD_BYTES].decode("utf-8", errors="ignore"))
            if "id" in fields and "status" in fields:
                return fields
        except ValueError:
            pass  # a long head, or another writer's form
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    return {name: record[name] for name in HEAD if name in record}


def _leading_fields(text: str) -> Dict[str, object]:
    """The fields of compact JSON up to the first that is not of HEAD."""
    decoder = json.JSONDecoder()
    fields: Dict[str, object] = {}
    at = 0
    while at < len(text):
        if text[at] not in "{,":
            return fields
        name, at = decoder.raw_decode(text, at + 1)
        if name not in HEAD:
            return fields
        fields[name], at = decoder.raw_decode(text, at + 1)
    raise ValueError("the text ends within the head")


def check(record: Record) -> List[str]:
    """What is wrong with a record, one sentence each; empty if nothing is."""
    schema = record.get("schema")
    if schema == "run/2":
        return _check_run(record, _COLUMNS)
    if schema == "run/3":
        return _check_run(unpack(record), {**_COLUMNS, "kernels": _PACKED_KERNELS})
    if schema == "op/1":
        return _check_op(record)
    if schema == "env/1":
        return _missing(record, _ENVIRONMENT)
    return [f"schema is {schema!r}, not one of 'run/2', 'run/3', 'op/1', 'env/1'"]


def _check_run(record: Record, columns: Mapping[str, Tuple[str, ...]]) -> List[str]:
    problems = _missing(record, _RUN_ALWAYS) + _not_among(record, "backend", BACKENDS)
    run = record.get("run")
    if isinstance(run, Mapping):
        problems += _missing(run, ("precision", "optimizer", "channels_last", "cudnn_benchmark"), "run.")
        problems += _not_among(run, "precision", PRECISIONS, "run.")
    status = record.get("status")
    if status is None:  # a capture: no field that takes a measurement
        problems += _missing(record, _RUN_GRAPH)
    else:
        problems += _not_among(record, "status", STATUSES) + _missing(record, _RUN_BY_STATUS.get(str(status), ()))
        problems += _missing(_group(record, "env"), _ENVIRONMENT, "env.") if "env" in record else []
    for group in columns:
        if group in record:
            problems += _check_columns(group, _group(record, group), columns[group])
    return problems or _check_indices(record)


def _check_op(record: Record) -> List[str]:
    problems = _missing(record, _OP_ALWAYS) + _not_among(record, "status", STATUSES)
    problems += _not_among(record, "precision", ("fp32", "tf32"))
    problems += _missing(record, _OP_BY_STATUS.get(str(record.get("status")), ()))
    for side in ("inputs", "outputs"):
        for place, tensor in enumerate(_sequence(record.get(side))):
            if tensor is not None and len(_sequence(tensor)) != 3:
                problems.append(f"{side}[{place}] is not [dtype, shape, strides]")
    return problems


def _check_columns(group: str, columns: Record, needed: Tuple[str, ...]) -> List[str]:
    problems = _missing(columns, needed, group + ".")
    names = needed + (("captured_ns",) if "captured_ns" in columns else ())
    lengths = {name: _length(columns[name]) for name in names if name in columns}
    for name, length in lengths.items():
        if length is None:
            problems.append(f"{group}.{name} is no column")
    if len(set(lengths.values())) > 1:
        problems.append(f"columns of {group} differ in length: " + ", ".join(f"{k} {v}" for k, v in lengths.items()))
    for (owner, name), letters in _LETTERS.items():
        strange = set(str(columns.get(name, ""))) - set(letters) if owner == group else set()
        if strange:
            problems.append(f"{group}.{name} has letters other than '{letters}': {''.join(sorted(strange))!r}")
    return problems


def _check_indices(record: Record) -> List[str]:
    """Of a record whose columns are in order."""
    problems = []
    for group, column, table, least in _INDICES:
        if group not in record or table not in record:
            continue
        values = list(_flat(_sequence(_group(record, group).get(column, ()))))
        size = _rows(record, table)
        if values and (min(values) < least or max(values) >= size):
            problems.append(f"{group}.{column} points outside {table}: {min(values)} to {max(values)} of {size}")
    if "frees" in record and "ops" in record:
        values = list(_flat(_sequence(_group(record, "frees")["op"])))
        if values and (min(values) < 0 or max(values) > _rows(record, "ops")):
            problems.append(f"frees.op points outside ops: {min(values)} to {max(values)} of {_rows(record, 'ops')}")
    return problems


def _missing(record: Record, names: Iterable[str], owner: str = "") -> List[str]:
    return [f"{owner}{name} is missing" for name in names if name not in record]


def _not_among(record: Record, name: str, known: Tuple[str, ...], owner: str = "") -> List[str]:
    if name not in record or record[name] in known:
        return []
    return [f"{owner}{name} is {record[name]!r}, not one of {', '.join(known)}"]


def _group(record: Record, name: str) -> Dict[str, object]:
    value = record.get(name)
    return dict(value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _length(column: object) -> Optional[int]:
    return len(column) if isinstance(column, (list, tuple, str)) else None


def _rows(record: Record, table: str) -> int:
    """How many entries a table or a group of columns has."""
    if table in _COLUMNS:
        return _length(_group(record, table)[_COLUMNS[table][0]]) or 0
    return _length(record[table]) or 0


def _flat(values: Iterable[object]) -> Iterable[int]:
    """The integers of a column, or of a column of lists."""
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            yield from _flat(_sequence(value))
