"""check: guards on predictions. A file says what must hold, a lock has the figures of before (docs/check.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from .asking import Json, ask
from .words import Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import LimitWords


@dataclass(frozen=True)
class Rule:
    """One rule of a guard: what it looked at, before and now."""

    rule: str  # "slower_than_baseline"
    verdict: str  # holds, fails, no_baseline (fails too) or not_judged: the baseline is of another Forerun
    before: Optional[float]  # of the baseline, in milliseconds or GiB
    now: Optional[float]
    change: Optional[float]  # share of `before`
    limit: Optional[float]  # a share where the rule is about the baseline, else milliseconds or GiB

    @property
    def passes(self) -> bool:
        """Whether the rule lets the guard pass."""
        return self.verdict in ("holds", "not_judged")


@dataclass(frozen=True)
class Guard:
    """A guard with its prediction of now and its baseline."""

    name: str
    passes: bool
    gpu: str
    iteration_ms: float
    reserved_gib: float
    verdict: str  # fits, may_not_fit, does_not_fit
    baseline: Optional[Json]  # iter_ms, reserved_gib, verdict, asked, predicted_by; None: there is none yet
    rules: Tuple[Rule, ...]
    notes: Tuple[str, ...]  # sentences


@dataclass(frozen=True, repr=False)
class Check:
    """Which guards hold. `json` has all that `forerun check --json` prints."""

    json: Json

    @property
    def passes(self) -> bool:
        """Whether every guard does."""
        return bool(self.json["passes"])

    @property
    def guards(self) -> List[Guard]:
        """All guards."""
        return [_guard(entry) for entry in self.json["guards"]]

    @property
    def failing(self) -> List[Guard]:
        """Those that do not hold."""
        return [guard for guard in self.guards if not guard.passes]

    def __repr__(self) -> str:
        return str(self.json["text"]).rstrip("\n")


def check(
    file: Path = "forerun.toml", lock: Optional[Path] = None, update: bool = False, **words: Unpack[LimitWords]
) -> Check:
    """Holds predictions to limits and to a baseline, as `forerun check` does.

    :param file: the guards (docs/check.md)
    :param lock: the baselines; forerun.lock beside the file where it is not given
    :param update: the figures of now become the baseline
    :param words: those of `LimitWords`
    :raises InputError: where a file, a word or a model is at fault; a guard that fails raises nothing

    >>> answer = forerun.check("forerun.toml")
    >>> answer.passes, [guard.name for guard in answer.failing]
    """
    return Check(json.loads(ask("check", {**words, "file": file, "lock": lock, "update": update})))


def judge(lock: Path, guards: List[Dict[str, Any]], update: bool = False) -> Check:
    """The same of predictions that tests made: a table each with name, asked, figures and rules."""
    words: Mapping[str, Any] = {"lock": lock, "section": "pytest", "guards": guards, "update": update}
    return Check(json.loads(ask("judge", words)))


def _guard(entry: Json) -> Guard:
    return Guard(
        entry["name"],
        entry["passes"],
        entry["gpu"],
        entry["iter_ms"],
        entry["reserved_gib"],
        entry["verdict"],
        entry["baseline"],
        tuple(Rule(**rule) for rule in entry["rules"]),
        tuple(entry["notes"]),
    )
