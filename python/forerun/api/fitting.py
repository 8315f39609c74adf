"""fit: the largest batch, image or sequence that a GPU has memory for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from .asking import Json, as_captured, ask_model
from .prediction import Asked, Prediction
from .quantities import Bytes
from .words import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import FitWords


@dataclass(frozen=True)
class Change:
    """A change to the run, and what it does."""

    name: str  # "bf16 mixed precision"
    how: str
    saving: Bytes  # of allocated memory; negative: it takes more
    time: float  # iteration time against the answer's
    largest: Optional[int]  # that fits with it


@dataclass(frozen=True, repr=False)
class Fit:
    """The largest value of an axis that surely fits. `json` has all that `forerun fit --json` prints."""

    json: Json
    prediction: Prediction  # at the largest; where nothing fits, at the smallest

    @property
    def axis(self) -> str:
        """What was enlarged: batch, or a setting of the model."""
        return str(self.json["axis"])

    @property
    def largest(self) -> Optional[int]:
        """The largest value that surely fits; None: not even the smallest does."""
        return self.json["largest"]

    @property
    def batch(self) -> Optional[int]:
        """The batch: `largest` where that is the axis, else the one that was asked with."""
        return self.largest if self.axis == "batch" else self.prediction.batch

    @property
    def changes(self) -> Tuple[Change, ...]:
        """What would let a larger one in."""
        return tuple(
            Change(one["name"], one["how"], Bytes(one["saved_bytes"]), one["time_factor"], one["largest"])
            for one in self.json["changes"]
        )

    def __repr__(self) -> str:
        at = self.prediction
        if self.largest is None:
            return f"{at.id} on {at.gpu}: not even {self.axis} {at.batch} surely fits"
        return f"{at.id} on {at.gpu}: the largest {self.axis} that fits is {self.largest:,}"


def fit(model: Model, **words: Unpack[FitWords]) -> Fit:
    """The largest batch (or image, or sequence: `axis=`) that a GPU has memory for, without trying it there.

    :param model: as `forerun.predict` takes it; a capture must have been made with `batch_sizes`, which is done for a
        torch.nn.Module
    :param words: `gpu` (default h200) and what else `FitWords` has
    :raises InputError: where a word or the model is at fault

    >>> forerun.fit("gpt2_small", gpu="4090", precision="amp_bf16").batch
    """
    given: Dict[str, Any] = dict(words)
    source = as_captured(model, given, resizable=True)
    answer: Json = json.loads(ask_model("fit", source, given))
    at = {word: value for word, value in given.items() if word not in ("axis", "margin", "reserve", "brief")}
    if answer["largest"] is not None and answer["axis"] != "batch":
        at["set"] = {**at.get("set", {}), answer["axis"]: answer["largest"]}
    at["batch"] = answer["prediction"]["batch"]
    return Fit(answer, Prediction(answer["prediction"], Asked(source, at)))
