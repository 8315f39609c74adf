"""schedule: jobs on a cluster under scheduling policies, yours among them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ..errors import InputError
from .asking import Json, ask
from .columns import Columns, of_rows
from .words import Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import ScheduleWords

# Of the jobs that wait, in order of submission, and the time in seconds: those that may start, the first ones first.
Order = Callable[[List[Any], float], Sequence[Any]]
Policy = Union[str, Order]

_TEXTS = ("policy", "id", "user", "group", "model", "gpu_type", "finished")


@dataclass(frozen=True, repr=False)
class Schedule:
    """What policies made of the jobs: the figures of each in `json`, as `forerun schedule --json` prints them."""

    json: List[Json]
    _words: Mapping[str, Any] = field(repr=False)
    _policies: Mapping[str, Order] = field(repr=False)

    @property
    def columns(self) -> Columns:
        """A row for every policy, without pandas."""
        return of_rows(
            [{key: value for key, value in one.items() if not isinstance(value, (dict, list))} for one in self.json]
        )

    @property
    def frame(self) -> Any:
        """A row for every policy, as a pandas.DataFrame."""
        return self.columns.frame

    @property
    def job_columns(self) -> Columns:
        """When every job ran under every policy, without pandas; times in seconds. Plays the jobs once more."""
        rows = list(csv.DictReader(io.StringIO(ask("jobs", self._words, self._policies))))
        return of_rows([{name: _cell(name, text) for name, text in row.items()} for row in rows])

    @property
    def jobs(self) -> Any:
        """The same as a pandas.DataFrame."""
        return self.job_columns.frame

    def __repr__(self) -> str:
        lines = [f"{self.json[0]['jobs']:,} jobs on {self.json[0]['gpus']}"] if self.json else ["no jobs"]
        lines += [
            f"  {one['policy']:<20} mean completion {one['mean_jct']:>12,.0f} s, mean wait {one['mean_wait']:>12,.0f} s"
            for one in self.json
        ]
        return "\n".join(lines)


def _cell(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text == "yes" if name == "finished" else text
    if text == "":
        return None
    return int(text) if name in ("gpus", "preemptions", "failures") else float(text)


def _named(policies: Sequence[Policy]) -> Tuple[List[str], Dict[str, Order]]:
    """Names of all of them, and which of these are functions."""
    names: List[str] = []
    own: Dict[str, Order] = {}
    for policy in policies:
        if isinstance(policy, str):
            names.append(policy)
            continue
        if not callable(policy):
            raise InputError(f"cannot be a {type(policy).__name__}", "policies", "give names or functions")
        name = getattr(policy, "__name__", type(policy).__name__)
        while name in own:
            name += "'"
        own[name] = policy
        names.append(name)
    return names, own


def schedule(
    file: Optional[Path] = None, policies: Union[Policy, Sequence[Policy]] = "fifo", **words: Unpack[ScheduleWords]
) -> Schedule:
    """Plays jobs on a cluster under scheduling policies.

    :param file: the jobs, a table or trace (docs/jobs.md); or `synthetic="jobs=1000,gpus=8"`
    :param policies: names ("fifo", "sjf", "allox:alpha=0.5"), files of yours, or functions: `def mine(waiting, now)` is
        given the waiting jobs in order of submission (id, gpus, submit, predicted, deadline, user, ...) and returns
        those that may start, the first ones first; whatever fits starts
    :param words: `gpus={"a100": 64}`, `predictor="error:8"` and what else `ScheduleWords` has
    :raises InputError: where a word, a file or a policy is at fault

    >>> forerun.schedule("jobs.csv", ["sjf", lambda waiting, now: waiting[::-1]], gpus={"a100": 4, "v100": 8}).frame
    """
    chosen = [policies] if isinstance(policies, str) or callable(policies) else list(policies)
    names, own = _named(chosen)
    given: Dict[str, Any] = {**words, "file": file, "policies": names}
    if not isinstance(given.get("gpus"), (Mapping, type(None))):
        given["gpu_count"] = given.pop("gpus")
    answer = json.loads(ask("schedule", given, own))
    return Schedule(answer if isinstance(answer, list) else [answer], given, own)
