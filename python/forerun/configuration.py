"""What is measured: one model of a family, its input and how it is trained, as run records name them (docs/records.md).

    {"id":"h200/00017-resnet","family":"resnet","args":{"layers":[2,2,2,2]},"input":["image",64,3,224,1000],
     "run":{"precision":"fp32","optimizer":{"name":"SGD",...},"channels_last":false,...}}
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Dict, Tuple, Union

INPUT_KINDS = ("image", "tokens", "dense", "flat")
_KINDS: Dict[str, Tuple[type, ...]] = {"id": (str,), "family": (str,), "args": (Mapping,), "input": (list, tuple),
                                       "run": (Mapping,)}


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One configuration; equal content has an equal `key`, whatever its id."""

    id: str
    family: str
    args: Mapping[str, Any]
    input: Tuple[Any, ...]  # ("image", batch, channels, size, classes), ("tokens", batch, length, vocab, flavour), ...
    run: Mapping[str, Any]

    @property
    def key(self) -> str:
        """16 hexadecimal digits that stand for family, args, input and run."""
        content = json.dumps([self.family, self.args, list(self.input), self.run], sort_keys=True,
                             separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def batch(self) -> int:
        return int(self.input[1])

    def with_batch(self, batch: int) -> Configuration:
        """The same with another batch size."""
        return dataclasses.replace(self, input=(self.input[0], batch) + tuple(self.input[2:]))

    def to_json(self) -> Dict[str, Any]:
        """The fields as a JSON object, in the order of a record."""
        return {"id": self.id, "family": self.family, "args": dict(self.args), "input": list(self.input),
                "run": dict(self.run)}

    def line(self) -> str:
        """The fields as one line of compact JSON, without its end."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, source: Union[str, bytes, Mapping[str, Any]]) -> Configuration:
        """From a JSON object or its text; a run record will do, what it has more is passed over.

        Raises ValueError where a field is missing or of another kind.
        """
        fields = json.loads(source) if isinstance(source, (str, bytes)) else source
        if not isinstance(fields, Mapping):
            raise ValueError("a configuration is a JSON object with id, family, args, input and run")
        for name, kinds in _KINDS.items():
            if not isinstance(fields.get(name), kinds):
                raise ValueError(f"configuration {fields.get('id')!r}: {name} is missing or of another kind")
        extents = tuple(fields["input"])
        if len(extents) != 5 or extents[0] not in INPUT_KINDS:
            raise ValueError(f"configuration {fields['id']!r}: input is not one of {', '.join(INPUT_KINDS)} and 4 more")
        return cls(fields["id"], fields["family"], dict(fields["args"]), extents, dict(fields["run"]))

    def __hash__(self) -> int:
        return hash((self.id, self.key))
