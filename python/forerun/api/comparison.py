"""compare: one workload on many GPUs, side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from .asking import Json, as_captured, ask_model
from .columns import Columns, of_rows
from .words import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import CompareWords


@dataclass(frozen=True, repr=False)
class Comparison:
    """GPUs that hold the run first, the best on top. `json` has all that `forerun compare --json` prints."""

    json: Json

    @property
    def rows(self) -> List[Json]:
        """A GPU each; one that cannot run the model has `error` in place of figures."""
        return list(self.json["gpus"])

    @property
    def columns(self) -> Columns:
        """The rows as columns, without pandas."""
        return of_rows([{key: value for key, value in row.items() if key != "job"} for row in self.rows])

    @property
    def frame(self) -> Any:
        """The rows as a pandas.DataFrame."""
        return self.columns.frame

    @property
    def best(self) -> Optional[str]:
        """The GPU on top, where it surely fits; None where none does."""
        first = next(iter(self.rows), None)
        return str(first["gpu"]) if first is not None and first.get("fits") else None

    def __repr__(self) -> str:
        lines = [f"{self.json['model']} on {len(self.rows)} GPUs"]
        for row in self.rows:
            if "error" in row:
                lines.append(f"  {row['gpu']:<28} {row['error']}")
                continue
            cost = f", costs {row['run_cost']:,.2f}" if "run_cost" in row else ""
            hours = f", the run {row['run_hours']:,.4g} h" if "run_hours" in row else ""
            verdict = row["verdict"].replace("_", " ")
            lines.append(f"  {row['gpu']:<28} {row['iter_ms']:>9.4g} ms  {verdict}{hours}{cost}")
        return "\n".join(lines)


def compare(model: Model, **words: Unpack[CompareWords]) -> Comparison:
    """Which GPU a run is best trained on: time, memory and cost on each.

    :param model: as `forerun.predict` takes it
    :param words: `gpus` (names, or "all"), `price={"h100": 2.5}`, `tokens=2e9` and what else `CompareWords` has
    :raises InputError: where a word or the model is at fault

    >>> forerun.compare("gpt2_small", gpus=["a100", "h100"], precision="amp_bf16", tokens=2e9).frame
    """
    given: Dict[str, Any] = dict(words)
    source = as_captured(model, given, resizable=True)
    return Comparison(json.loads(ask_model("compare", source, given)))
