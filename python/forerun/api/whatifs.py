"""whatif: what optimizations would bring to a traced iteration, or to one of a model that has not run yet."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple, Type

from .asking import Json, as_captured, ask_model
from .columns import Columns, of_rows
from .words import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import _native
    from .words import WhatIfWords


class WhatIfModule:
    """What the module forerun.whatif is to type checkers: it can be called, and has the primitives."""

    Edit: Type[_native.Edit]
    EditableIteration: Type[_native.EditableIteration]
    Task: Type[_native.Task]
    Outcome: Any
    compare: Callable[..., Any]
    editing: Callable[..., Any]
    optimizations: Callable[[], List[Tuple[str, str]]]

    def __call__(self, source: Model, **words: Unpack[WhatIfWords]) -> WhatIf:
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class WhatIfAnswer:
    """An iteration before and after. `json` has all that `forerun whatif --json` prints."""

    json: Json

    @property
    def applied(self) -> Tuple[str, ...]:
        """The optimizations, in order."""
        return tuple(self.json["applied"])

    @property
    def baseline_ms(self) -> float:
        """Without them."""
        return float(self.json["baseline_ms"])

    @property
    def predicted_ms(self) -> float:
        """With them; eight of ten measurements should lie between `low_ms` and `high_ms`."""
        return float(self.json["predicted_ms"])

    @property
    def low_ms(self) -> float:
        """Low end of the range."""
        return float(self.json["low_ms"])

    @property
    def high_ms(self) -> float:
        """High end of the range."""
        return float(self.json["high_ms"])

    @property
    def gain(self) -> float:
        """Share of the iteration that they save; negative: it takes longer."""
        return 1 - self.predicted_ms / self.baseline_ms if self.baseline_ms > 0 else 0.0

    @property
    def assumptions(self) -> Tuple[str, ...]:
        """Sentences on what was assumed."""
        return tuple(self.json["assumptions"])

    def __repr__(self) -> str:
        names = " + ".join(self.applied) or "nothing"
        return (
            f"{names}: {self.baseline_ms:.4g} ms -> {self.predicted_ms:.4g} ms "
            f"({self.low_ms:.4g} to {self.high_ms:.4g}), {100 * self.gain:+.1f} % gained"
        )


class Ranking(Sequence[WhatIfAnswer]):
    """Optimizations by what they bring, the largest gain first."""

    def __init__(self, answers: Sequence[WhatIfAnswer]) -> None:
        self._answers = list(answers)

    def __getitem__(self, index: Any) -> Any:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[WhatIfAnswer]:
        return iter(self._answers)

    @property
    def columns(self) -> Columns:
        """A row each, without pandas."""
        return of_rows(
            [
                {
                    "optimization": " + ".join(one.applied),
                    "baseline_ms": one.baseline_ms,
                    "predicted_ms": one.predicted_ms,
                    "low_ms": one.low_ms,
                    "high_ms": one.high_ms,
                    "gain": one.gain,
                }
                for one in self._answers
            ]
        )

    @property
    def frame(self) -> Any:
        """The same as a pandas.DataFrame."""
        return self.columns.frame

    def __repr__(self) -> str:
        return "\n".join(repr(one) for one in self._answers) or "no optimization applies"


@dataclass(frozen=True)
class WhatIf:
    """A trace or a model that questions are asked of."""

    source: Model = field(repr=False)
    words: Mapping[str, Any]

    def apply(self, *optimizations: str) -> WhatIfAnswer:
        """What they bring together, applied in this order: "amp", "batch:factor=2" (`forerun.optimizations()`)."""
        return WhatIfAnswer(json.loads(ask_model("whatif", self.source, {**self.words, "apply": list(optimizations)})))

    def rank(self, *behind: str) -> Ranking:
        """Every optimization that makes sense without parameters, each alone, behind those that are named here."""
        words = {**self.words, "all": True, "apply": list(behind)}
        lines: List[str] = ask_model("whatif", self.source, words).splitlines()
        return Ranking([WhatIfAnswer(json.loads(line)) for line in lines])


def whatif(source: Model, **words: Unpack[WhatIfWords]) -> WhatIf:
    """What optimizations would bring to an iteration, traced or predicted.

    :param source: a profiler trace (.json, .gz, .zst), or a model as `forerun.predict` takes it
    :param words: `gpu`, and of models how they are trained (`WhatIfWords`)

    >>> forerun.whatif("trace.json.gz").rank()
    >>> forerun.whatif("resnet50", batch=64).apply("amp", "channels_last").gain
    """
    given: Dict[str, Any] = dict(words)
    return WhatIf(as_captured(source, given), given)
