"""A capture at every batch size: what moves between recordings at several sizes, as expressions of the size.

    batch 4:  aten.view.default  [64, 32]   size [4, 16, 32]       -> extents 16 * batch, 32; size [batch, 16, 32]
    batch 6:  aten.view.default  [96, 32]   size [6, 16, 32]

``resized`` gives a batch of another size. ``unified`` holds recordings at several sizes against one another: the ops,
modules, operands and lifetimes must agree. It gives the first record with its tables numbered anew, so that what is
equal at one size by chance is told apart, and the field ``parametric`` (docs/records.md): each number that moves as a
form, whole-number coefficients of products of the sizes. A number that follows no such form, or an op that differs, is
named in ``parametric.fixed`` and the record stays at its size.
"""
from __future__ import annotations

import dataclasses
import fractions
import itertools
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

Json = Dict[str, Any]
Sizes = Tuple[int, ...]  # of the dimensions, in their order

_POWERS = {"batch": 1, "length": 2}  # the highest power in which a number may follow a size


class NotMovable(Exception):
    """Why recordings at several sizes are no one iteration."""


# -- batches of another size -------------------------------------------------------------------------------------------


def tensors_in(batch: Any) -> List[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        return [batch]
    values = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else ()
    return [tensor for value in values for tensor in tensors_in(value)]


def sizes_in(batch: Any, dimensions: Sequence[str]) -> Sizes:
    """Of a batch as it was given. Raises ValueError where its tensors do not say."""
    tensors = [tensor for tensor in tensors_in(batch) if tensor.dim() > 0]
    leading = {tensor.shape[0] for tensor in tensors}
    if len(leading) != 1:
        raise ValueError(f"batch_sizes: the tensors of the batch have no common first dimension, but {sorted(leading)}")
    sizes = [leading.pop()]
    if "length" in dimensions:
        wide = [tensor for tensor in tensors if tensor.dim() == 2 and not tensor.is_floating_point()]
        if not wide:
            raise ValueError("lengths: no tensor of the batch holds tokens, [batch, length] whole numbers")
        sizes.append(wide[0].shape[1])
    return tuple(sizes)


def resized(batch: Any, given: Sizes, wanted: Sizes) -> Any:
    """The batch with samples, and positions where there is a length, repeated or left out."""
    if isinstance(batch, torch.Tensor):
        return _resized_tensor(batch, given, wanted)
    if isinstance(batch, Mapping):
        return {key: resized(value, given, wanted) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(resized(value, given, wanted) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(resized(value, given, wanted) for value in batch)
    return batch


def _resized_tensor(tensor: torch.Tensor, given: Sizes, wanted: Sizes) -> torch.Tensor:
    if tensor.dim() == 0:
        return tensor
    tensor = _repeated(tensor, 0, wanted[0])
    for dimension in range(1, tensor.dim() if len(wanted) > 1 else 1):
        if tensor.shape[dimension] == given[1]:
            tensor = _repeated(tensor, dimension, wanted[1])
    return tensor


def _repeated(tensor: torch.Tensor, dimension: int, size: int) -> torch.Tensor:
    return tensor.index_select(dimension, torch.arange(size, device=tensor.device) % tensor.shape[dimension])


# -- forms -------------------------------------------------------------------------------------------------------------


class Forms:
    """Numbers at several sizes as sums of products of the sizes, each form numbered once."""

    def __init__(self, dimensions: Sequence[str], points: Sequence[Sizes]) -> None:
        self.dimensions = list(dimensions)
        self.points = list(points)
        powers = [range(_POWERS[name] + 1) for name in dimensions]
        self.terms = [list(term) for term in itertools.product(*powers)]
        self.forms: List[List[int]] = []
        self._known: Dict[Tuple[int, ...], int] = {}
        self._solver = _inverse([self._products(point) for point in self._basis()])

    def _products(self, point: Sizes) -> List[int]:
        return [_power_product(point, term) for term in self.terms]

    def _basis(self) -> List[Sizes]:
        """As few points as tell the coefficients: for each dimension one more than its highest power."""
        chosen = []
        for place, name in enumerate(self.dimensions):
            values = list(dict.fromkeys(point[place] for point in self.points))
            chosen.append(values[: _POWERS[name] + 1])
        return list(itertools.product(*chosen))

    def of(self, values: Sequence[int]) -> int:
        """The form that gives these values at the points. Raises NotMovable where there is none."""
        known = self._known.get(tuple(values))
        if known is not None:
            return known
        at = dict(zip(self.points, values))
        basis = [at[point] for point in self._basis()]
        exact = [sum(factor * value for factor, value in zip(row, basis)) for row in self._solver]
        coefficients = [int(number) for number in exact]
        wrong = any(number.denominator != 1 for number in exact) or any(
            sum(c * p for c, p in zip(coefficients, self._products(point))) != value for point, value in at.items()
        )
        if wrong:
            shown = ", ".join(f"{value} at {'x'.join(map(str, point))}" for point, value in at.items())
            raise NotMovable(f"a number is no sum of whole multiples of the sizes: {shown}")
        self.forms.append(coefficients)
        self._known[tuple(values)] = len(self.forms) - 1
        return len(self.forms) - 1


def _power_product(point: Sizes, term: Sequence[int]) -> int:
    product = 1
    for size, power in zip(point, term):
        product *= size**power
    return product


def _inverse(rows: List[List[int]]) -> List[List[fractions.Fraction]]:
    """Of a matrix of whole numbers, exactly, by Gauss and Jordan."""
    size = len(rows)
    work = [
        [fractions.Fraction(value) for value in row] + [fractions.Fraction(int(i == j)) for j in range(size)]
        for i, row in enumerate(rows)
    ]
    for column in range(size):
        pivot = next(i for i in range(column, size) if work[i][column] != 0)
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [value / work[column][column] for value in work[column]]
        for i in range(size):
            if i != column and work[i][column] != 0:
                factor = work[i][column]
                work[i] = [value - factor * base for value, base in zip(work[i], work[column])]
    return [row[size:] for row in work]


# -- several recordings as one -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Places:
    """Where forms stand in a table."""

    entry: List[int] = dataclasses.field(default_factory=list)
    place: List[int] = dataclasses.field(default_factory=list)
    form: List[int] = dataclasses.field(default_factory=list)

    def add(self, entry: int, place: int, form: int) -> None:
        self.entry.append(entry)
        self.place.append(place)
        self.form.append(form)


def unified(records: Sequence[Json], dimensions: Sequence[str], points: Sequence[Sizes]) -> Json:
    """The first record, and how it moves; `points` are the sizes that each was recorded at."""
    head = {"dimensions": list(dimensions), "recorded": list(points[0])}
    try:
        return _Union(records, Forms(dimensions, points)).record()
    except NotMovable as reason:
        return {**records[0], "parametric": {**head, "fixed": str(reason)}}


class _Union:
    def __init__(self, records: Sequence[Json], forms: Forms) -> None:
        self._records = records
        self._forms = forms
        self._shapes: Dict[Tuple[Any, ...], int] = {}
        self._tensors: Dict[Tuple[Any, ...], int] = {}
        self._attributes: Dict[Tuple[str, ...], int] = {}
        self._moved = {name: _Places() for name in ("input", "shapes", "storages", "offsets")}
        self._texts: Json = {"entry": [], "text": []}

    def record(self) -> Json:
        self._agree_on_ops()
        ops = self._records[0]["ops"]
        inputs, outputs, attributes = [], [], []
        for op in range(len(ops["name"])):
            try:
                inputs.append(self._operands(op, "inputs"))
                outputs.append(self._operands(op, "outputs"))
                attributes.append(self._attribute(op))
            except NotMovable as reason:
                raise NotMovable(f"op {op}, {self._title(op)}: {reason}") from None
        self._agree("when memory is freed", lambda record: sorted(zip(*record["frees"].values())))
        self._agree("what is there before", lambda record: record["roots"])
        self._agree("what lies on the host", lambda record: record["storages"]["host"])
        self._move_storages()
        self._move_input()
        return {
            **self._records[0],
            "shapes": [list(entry[0]) for entry in self._shapes],
            "attributes": [json.loads(entry[0]) for entry in self._attributes],
            "tensors": self._tensor_columns(),
            "ops": {**ops, "inputs": inputs, "outputs": outputs, "attributes": attributes},
            "parametric": self._field(),
        }

    def _agree_on_ops(self) -> None:
        outlines = [_outlines(record) for record in self._records]
        for point, others in zip(self._forms.points, outlines):
            pairs = itertools.zip_longest(outlines[0], others)
            wrong = next((op for op, (one, other) in enumerate(pairs) if one != other), None)
            if wrong is not None:
                title = self._title(wrong) if wrong < len(outlines[0]) else "which comes after the last"
                raise NotMovable(f"op {wrong}, {title}, is another one at {_shown(self._forms.points[0], point)}")

    def _agree(self, what: str, view: Callable[[Json], Any]) -> None:
        first = view(self._records[0])
        for point, record in zip(self._forms.points, self._records):
            if view(record) != first:
                raise NotMovable(f"{what} differs at {_shown(self._forms.points[0], point)}")

    def _title(self, op: int) -> str:
        record = self._records[0]
        module = record["modules"][record["ops"]["module"][op]]
        return record["op_names"][record["ops"]["name"][op]] + (f" in {module}" if module else "")

    def _operands(self, op: int, side: str) -> List[int]:
        columns = [record["tensors"] for record in self._records]
        lists = [record["ops"][side][op] for record in self._records]
        return [self._tensor(columns, tensors) for tensors in zip(*lists)]

    def _tensor(self, columns: List[Json], tensors: Tuple[int, ...]) -> int:
        storage, dtype = columns[0]["storage"][tensors[0]], columns[0]["dtype"][tensors[0]]
        same = {(c["storage"][t], r["dtypes"][c["dtype"][t]]) for r, c, t in zip(self._records, columns, tensors)}
        if len(same) != 1:
            raise NotMovable("an operand differs in storage or type")
        shapes = [tuple(r["shapes"][c["shape"][t]]) for r, c, t in zip(self._records, columns, tensors)]
        shape = self._shape(shapes)
        strides = -1
        if any(c["strides"][t] >= 0 for c, t in zip(columns, tensors)):
            rows = zip(self._records, columns, tensors, shapes)
            strides = self._shape([_strides(record, c["strides"][t], extents) for record, c, t, extents in rows])
        offsets = tuple(c["offset"][t] for c, t in zip(columns, tensors))
        key = (storage, dtype, shape, strides, offsets)
        if key not in self._tensors:
            self._tensors[key] = len(self._tensors)
            self._move(offsets, "offsets", self._tensors[key], 0)
        return self._tensors[key]

    def _shape(self, shapes: Sequence[Tuple[int, ...]]) -> int:
        key = tuple(shapes)
        if len({len(shape) for shape in key}) != 1:
            raise NotMovable("an operand differs in its number of dimensions")
        if key not in self._shapes:
            self._shapes[key] = len(self._shapes)
            for place, extents in enumerate(zip(*key)):
                self._move(extents, "shapes", self._shapes[key], place)
        return self._shapes[key]

    def _move(self, values: Sequence[int], table: str, entry: int, place: int) -> None:
        if len(set(values)) > 1:
            self._moved[table].add(entry, place, self._forms.of(values))

    def _attribute(self, op: int) -> int:
        given = [record["attributes"][record["ops"]["attributes"][op]] for record in self._records]
        key = tuple(json.dumps(attributes, separators=(",", ":")) for attributes in given)
        if key not in self._attributes:
            self._attributes[key] = len(self._attributes)
            if len(set(key)) > 1:
                parts: List[Any] = [""]
                self._write(given, parts)
                self._texts["entry"].append(self._attributes[key])
                self._texts["text"].append([part for part in parts if part != ""])
        return self._attributes[key]

    def _write(self, values: Sequence[Any], parts: List[Any]) -> None:
        """JSON text of an attribute, with forms where whole numbers move."""

        def text(words: str) -> None:
            if isinstance(parts[-1], str):
                parts[-1] += words
            else:
                parts.append(words)

        first = values[0]
        if all(value == first for value in values) or isinstance(first, float):  # no shape hangs on a fraction
            text(json.dumps(first, separators=(",", ":")))
        elif isinstance(first, dict) and all(list(value) == list(first) for value in values):
            for number, key in enumerate(first):
                text(("," if number else "{") + json.dumps(key) + ":")
                self._write([value[key] for value in values], parts)
            text("}")
        elif isinstance(first, list) and all(len(value) == len(first) for value in values):
            for number, items in enumerate(zip(*values)):
                text("," if number else "[")
                self._write(items, parts)
            text("]")
        elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            parts.append(self._forms.of(values))
        else:
            raise NotMovable("an attribute that is no whole number differs between sizes")

    def _move_storages(self) -> None:
        columns = [record["storages"]["bytes"] for record in self._records]
        self._agree("the number of storages", lambda record: len(record["storages"]["bytes"]))
        for entry, values in enumerate(zip(*columns)):
            try:
                self._move(values, "storages", entry, 0)
            except NotMovable as reason:
                raise NotMovable(f"storage {entry}: {reason}") from None

    def _move_input(self) -> None:
        for position, values in enumerate(zip(*(record["input"] for record in self._records))):
            if len(set(values)) > 1:
                self._moved["input"].add(position, 0, self._forms.of(values))

    def _tensor_columns(self) -> Json:
        keys = list(self._tensors)
        names = ("storage", "dtype", "shape", "strides")
        columns: Json = {name: [key[i] for key in keys] for i, name in enumerate(names)}
        return {**columns, "offset": [key[4][0] for key in keys]}

    def _field(self) -> Json:
        moved = {name: dataclasses.asdict(places) for name, places in self._moved.items()}
        for name in ("input", "storages", "offsets"):
            del moved[name]["place"]
        return {
            "dimensions": self._forms.dimensions,
            "recorded": list(self._forms.points[0]),
            "terms": self._forms.terms,
            "forms": self._forms.forms,
            **moved,
            "attributes": self._texts,
        }


def _shown(one: Sizes, other: Sizes) -> str:
    return f"size {'x'.join(map(str, one))} and at {'x'.join(map(str, other))}"


def _outlines(record: Json) -> List[Tuple[Any, ...]]:
    """Name, phase, module and number of operands of each op."""
    ops = record["ops"]
    return [
        (record["op_names"][name], phase, record["modules"][module], len(inputs), len(outputs))
        for name, phase, module, inputs, outputs in zip(
            ops["name"], ops["phase"], ops["module"], ops["inputs"], ops["outputs"]
        )
    ]


def _strides(record: Json, strides: int, shape: Sequence[int]) -> Tuple[int, ...]:
    """As told, or those of a contiguous tensor."""
    if strides >= 0:
        return tuple(record["shapes"][strides])
    found, step = [], 1
    for extent in reversed(shape):
        found.append(step)
        step *= max(extent, 1)
    return tuple(reversed(found))


def points_of(batch_sizes: Optional[Sequence[int]], lengths: Optional[Sequence[int]]) -> Tuple[List[str], List[Sizes]]:
    """The dimensions that move, and the sizes to record at: every batch with every length. Raises ValueError."""
    dimensions: List[str] = ["batch"]
    for name, sizes in (("batch_sizes", batch_sizes), ("lengths", lengths)):
        if sizes is not None and (len(set(sizes)) < 3 or min(sizes) < 2):
            raise ValueError(f"{name} are {list(sizes)}; it takes three different ones from 2 on to tell how all moves")
    if batch_sizes is None:
        raise ValueError("lengths go with batch_sizes")
    axes = [list(dict.fromkeys(batch_sizes))]
    if lengths is not None:
        dimensions.append("length")
        axes.append(list(dict.fromkeys(lengths)))
    return dimensions, list(itertools.product(*axes))
