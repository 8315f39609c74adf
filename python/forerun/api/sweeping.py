"""sweep: many configurations at once, and which of them nothing beats."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..errors import InputError
from .asking import Json, ask, is_module, named
from .columns import Columns
from .words import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import SweepWords

_LISTS = ("freeze",)  # words whose value may be a list without being an axis
_MORE_IS_BETTER = ("samples_per_second", "tokens_per_second", "batch")


@dataclass(frozen=True, repr=False)
class Sweep:
    """A row for every configuration, in the order of the axes, the last one changing fastest."""

    axes: Tuple[str, ...]
    columns: Columns  # those of the axes first; `error` says why a configuration has no figures

    @property
    def frame(self) -> Any:
        """The rows as a pandas.DataFrame."""
        return self.columns.frame

    @property
    def fitting(self) -> Sweep:
        """The configurations that surely fit."""
        return self._taken([row for row, fits in enumerate(self.columns["fits"]) if fits])

    def pareto(self, *figures: str) -> Sweep:
        """Of the configurations that surely fit those that no other beats: as good in all figures, and better in one.

        Less is better, but of samples_per_second, tokens_per_second and batch. `cost` needs a price and the run's
        length.
        """
        if not figures:
            raise InputError("there is nothing to go by", "pareto", "name columns, as iteration_ms and cost")
        values = []
        for figure in figures:
            if figure not in self.columns:
                raise InputError(f"there is no column {figure!r}", "pareto", f"there are {', '.join(self.columns)}")
            column = self.columns[figure]
            if all(value is None for value in column):
                how = "give price= and the run's length, as tokens=" if figure == "cost" else "tell the run's length"
                raise InputError(f"{figure} is not known", "pareto", how)
            if any(isinstance(value, str) for value in column):
                raise InputError(f"{figure} is no figure", "pareto", "name columns of numbers")
            values.append([None if v is None else -v if figure in _MORE_IS_BETTER else v for v in column])
        fits = self.columns["fits"]
        points = {
            row: tuple(column[row] for column in values)
            for row in range(self.columns.height)
            if fits[row] and all(column[row] is not None for column in values)
        }
        return self._taken([row for row in points if not _beaten(points[row], list(points.values()))])

    def _taken(self, rows: List[int]) -> Sweep:
        return Sweep(self.axes, self.columns.taken(rows))

    def __len__(self) -> int:
        return self.columns.height

    def __repr__(self) -> str:
        lines = [f"sweep over {', '.join(self.axes)}: {len(self)} configurations"]
        for number, row in enumerate(self.columns.rows()):
            if number == 20:
                lines.append("  ...")
                break
            setting = " ".join(f"{axis}={row[axis]}" for axis in self.axes)
            if row["error"] is not None:
                lines.append(f"  {setting}: {row['error']}")
            else:
                verdict = row["verdict"].replace("_", " ")
                rate = f"{row['samples_per_second']:,.4g} samples/s"
                lines.append(f"  {setting}: {row['iteration_ms']:.4g} ms, {rate}, {verdict}")
        return "\n".join(lines)


def _beaten(point: Tuple[Any, ...], others: Sequence[Tuple[Any, ...]]) -> bool:
    return any(other != point and all(a <= b for a, b in zip(other, point)) for other in others)


def _value(text: str) -> Any:
    """A value of an axis as Python has it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


def powers(first: int, last: int, factor: int = 2) -> List[int]:
    """first, first * factor, ... up to last: `powers(8, 512)` is 8, 16, ... 512."""
    if first < 1 or factor < 2:
        raise InputError("does not get to its end", "powers", "begin at 1 or above, with a factor of 2 or more")
    values = []
    while first <= last:
        values.append(first)
        first *= factor
    return values


def sweep(model: Model = None, **words: Unpack[SweepWords]) -> Sweep:
    """Predicts every combination of the values given as lists, on all cores.

    :param model: as `forerun.predict` takes it, or a list of names
    :param words: any word of `SweepWords`; a list makes an axis of it. `over={"image": [224, 384]}` goes over
        parameters of the model. `engine="ray"` shares the work among the nodes of a Ray cluster (docs/sweep.md)
    :raises InputError: where a word or the model is at fault, or the cluster is lost; a configuration that cannot be
        built is a row with `error`

    >>> runs = forerun.sweep("resnet50", gpu=["l4", "a100"], batch=forerun.powers(8, 512))
    >>> runs.pareto("iteration_ms", "samples_per_second").frame
    """
    given: Dict[str, Any] = dict(words)
    if is_module(model):
        raise InputError(
            "a torch.nn.Module is captured first, so that batch can be an axis",
            "model",
            "own = forerun.capture(model, optimizer, batch, batch_sizes=[8, 16, 24]), then forerun.sweep(own, ...)",
        )
    axes: Dict[str, List[Any]] = {}
    if isinstance(model, (list, tuple)):
        axes["model"] = [str(name) for name in model]
        model = None
    for word in list(given):
        if word not in _LISTS and word not in ("over", "set") and isinstance(given[word], (list, tuple, range)):
            axes[word] = list(given.pop(word))
    for name, values in dict(given.pop("over", None) or {}).items():
        if name in axes:
            raise InputError(f"{name} is given twice", "over", "give it once")
        axes[name] = list(values)
    given["over"] = axes
    engine, address = given.pop("engine", None), given.pop("ray_address", None)
    if engine is None and address is not None:
        raise InputError("is the address of an engine", "ray_address", 'give engine="ray" too')
    with named(model) if model is not None else contextlib.nullcontext(None) as source:
        question = {**given, "model": source}
        answer = _answer(question) if engine is None else _sharded_answer(question, str(engine), address)
    over = {name: [_value(text) for text in column] for name, column in answer["over"].items()}
    figures = {name: column for name, column in answer["columns"].items() if name not in over}
    return Sweep(tuple(answer["axes"]), Columns({**over, **figures}))


def _answer(question: Mapping[str, Any]) -> Json:
    answer: Json = json.loads(ask("sweep", question))
    return answer


def _sharded_answer(question: Mapping[str, Any], engine: str, address: Optional[str]) -> Json:
    """The same answer, of shards that a cluster did."""
    if engine != "ray" and not engine.startswith("ray://"):
        raise InputError(f"there is no engine {engine!r}", "engine", 'give "ray", or "ray://host:port"')
    from .ray_engine import sweep_on_ray

    cases = 1
    for values in question["over"].values():
        cases *= len(values)
    if cases <= 1:
        return _answer(question)
    return _put_together(sweep_on_ray(question, cases, engine, address))


def _put_together(shards: List[Json]) -> Json:
    """Case k is row k // N of shard k % N."""
    versions = sorted({shard["predicted_by"] for shard in shards})
    if len(versions) > 1:
        remedy = "install the same version of forerun on every node"
        raise InputError(f"nodes of the cluster have different Foreruns: {', '.join(versions)}", "engine", remedy)
    cases = shards[0]["cases"]

    def joined(part: str) -> Dict[str, List[Any]]:
        columns = {name: [shard[part][name] for shard in shards] for name in shards[0][part]}
        return {
            name: [parts[case % len(shards)][case // len(shards)] for case in range(cases)]
            for name, parts in columns.items()
        }

    return {"axes": shards[0]["axes"], "over": joined("over"), "columns": joined("columns")}
