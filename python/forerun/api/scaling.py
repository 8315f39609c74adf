"""scale: the step of many GPUs, and the best plan for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping

from .asking import Json, as_captured, ask_model
from .columns import Columns, of_rows
from .words import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import ScaleWords


_GROUPS = (("cp", "context"), ("ep", "experts"))  # that few plans have


def _row(step: Json) -> Json:
    plan = step["plan"]
    figures = {key: value for key, value in step.items() if not isinstance(value, dict)}
    parts = ("tensor", "context", "data", "experts", "pipeline", "zero", "micro_batch", "checkpoint")
    return {**{key: plan[key] for key in parts}, **figures}


@dataclass(frozen=True, repr=False)
class Scale:
    """Steps of training on many GPUs. `json` has all that `forerun scale --json` prints."""

    json: Json
    _model: Model = field(repr=False)
    _words: Mapping[str, Any] = field(repr=False)

    @property
    def steps(self) -> List[Json]:
        """One for each number of GPUs; of a search the plans that fit, the fastest first."""
        return list(self.json.get("plans", self.json.get("steps", [])))

    @property
    def best(self) -> Json:
        """The first of the steps."""
        return self.steps[0]

    @property
    def columns(self) -> Columns:
        """The steps as columns, without pandas."""
        return of_rows([_row(step) for step in self.steps])

    @property
    def frame(self) -> Any:
        """The steps as a pandas.DataFrame."""
        return self.columns.frame

    def search(self, explain: str = "") -> Scale:
        """All plans that make sense for these GPUs, those that fit, the best first.

        :param explain: a plan to hold against the best; `json["explained"]` is its step
        """
        words: Json = {**self._words, "search": True}
        if explain:
            words["explain"] = explain
        return Scale(json.loads(ask_model("scale", self._model, words)), self._model, self._words)

    def __repr__(self) -> str:
        lines = [f"{self.json['model']} on {self.json['gpu']}, {self.json['precision']}"]
        for step in self.steps[:10]:
            plan = step["plan"]
            spread = f"tp={plan['tensor']} dp={plan['data']} pp={plan['pipeline']} zero={plan['zero']}"
            spread += "".join(f" {word}={plan[key]}" for word, key in _GROUPS if plan[key] > 1)
            fits = "fits" if step["fits"] else "does not fit"
            lines.append(f"  {step['gpus']:>6} GPUs  {spread:<28} {step['step_ms']:>10.4g} ms a step, {fits}")
        return "\n".join(lines)


def scale(model: Model, **words: Unpack[ScaleWords]) -> Scale:
    """Time, throughput and memory of training on many GPUs.

    :param model: a model or family of `forerun.models()`, or what else `forerun.predict` takes
    :param words: `gpus` (default 8), `gpu`, `strategy`, `global_batch` and what else `ScaleWords` has

    >>> forerun.scale("gpt2_xl", gpu="a100", gpus=64, global_batch=512).search().best
    """
    given: Dict[str, Any] = dict(words)
    source = as_captured(model, given, resizable=True)
    return Scale(json.loads(ask_model("scale", source, given)), source, given)
