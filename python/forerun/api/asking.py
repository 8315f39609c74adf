"""How a question is asked: words become JSON, models become files, and the native part answers (src/ask)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from ..errors import InputError
from .words import Model

Json = Dict[str, Any]

_CAPTURE_WORDS = ("optimizer", "batch", "loss_fn", "precision", "accumulate", "checkpoint", "clip_grad", "loop")


def native() -> Any:
    """The native part."""
    try:
        from .. import _native
    except ImportError as error:
        raise ImportError(
            f"forerun's native part is not there ({error}): pip install . in the checkout, or ./run python there"
        ) from error
    return _native


def ask(name: str, words: Mapping[str, Any], policies: Optional[Mapping[str, Callable[..., Any]]] = None) -> str:
    """The answer as text. Words that are None count as not given."""
    try:
        given = {word: plain(word, value) for word, value in words.items() if value is not None}
    except RecursionError:
        raise InputError("has lists within lists without end", "question", "give text, numbers and lists") from None
    return str(native().ask(name, json.dumps(given), dict(policies or {})))


def ask_json(name: str, words: Mapping[str, Any]) -> Any:
    return json.loads(ask(name, words))


def ask_lines(name: str, words: Mapping[str, Any]) -> List[Json]:
    """Answers that come one a line."""
    return [json.loads(line) for line in ask(name, words).splitlines()]


def plain(word: str, value: Any) -> Any:
    """The value as JSON has it: paths as text, NumPy's numbers as Python's, sequences as lists."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"cannot be {value}", word, "give a number")
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain(f"{word}.{key}", entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, range, set, frozenset)):
        return [plain(word, entry) for entry in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if callable(getattr(value, "tolist", None)) and type(value).__module__.split(".")[0] == "numpy":
        return plain(word, value.tolist())
    raise InputError(f"cannot be a {type(value).__name__}", word, "give text, a number, or a list or table of these")


# -- models ------------------------------------------------------------------------------------------------------------


def is_module(model: object) -> bool:
    """Whether it is a torch.nn.Module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def capture_words(words: Dict[str, Any], resizable: bool) -> Dict[str, Any]:
    """Takes out of the words of a question what captures a module, and gives it; `resizable`: for any batch."""
    taken = {word: words.pop(word) for word in _CAPTURE_WORDS if word in words}
    for word in ("optimizer", "batch"):
        if word not in taken or isinstance(taken[word], (str, int)):
            needed = "the torch.optim.Optimizer" if word == "optimizer" else "an example, (inputs, labels) or a mapping"
            raise InputError(f"a torch.nn.Module is captured with its {word}", word, f"give {needed}")
    size = _samples_of(taken["batch"]) if resizable else None
    if size is not None:
        taken["batch_sizes"] = [max(size, 2) * factor for factor in (1, 2, 3)]
    return taken


def _samples_of(batch: Any) -> Optional[int]:
    entries = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else [batch]
    sizes = {int(entry.shape[0]) for entry in entries if getattr(entry, "shape", None) is not None and len(entry.shape)}
    return sizes.pop() if len(sizes) == 1 else None


def as_captured(model: Model, words: Dict[str, Any], resizable: bool = False) -> Model:
    """A module as the record of its capture, with the words that said how; any other model as it is."""
    if not is_module(model):
        return model
    from ..capture import capture
    from ..host_values import CaptureError

    given = capture_words(words, resizable)
    given["compile"] = words.get("compile") not in (None, False, "none")  # then Dynamo tells where the graph breaks
    try:
        return capture(model, **given)
    except (CaptureError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        name = type(model).__name__
        raise InputError(f"cannot be captured: {error}", name, "docs/capture.md says what can") from error


@contextlib.contextmanager
def named(model: Model) -> Iterator[str]:
    """The model by a name or path that the native part takes; a record lies in a file as long as the block lasts."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    if not isinstance(model, Mapping):
        remedy = "give a name, a file, a record of forerun.capture, or a torch.nn.Module"
        raise InputError(f"cannot be a {type(model).__name__}", "model", remedy)
    if "schema" not in model:
        raise InputError("is no record of forerun.capture", "model", "give what forerun.capture returned")
    with tempfile.TemporaryDirectory(prefix="forerun-") as folder:
        path = pathlib.Path(folder) / "capture.jsonl"
        path.write_text(_line(model), encoding="utf-8")
        try:
            yield str(path)
        except InputError as error:
            told = [text.replace(str(path), "the capture") for text in (error.what, error.where, error.remedy)]
            raise InputError(*told) from None


def _line(record: Mapping[str, Any]) -> str:
    try:
        return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        what = f"is no record of forerun.capture: {error}"
        raise InputError(what, "model", "give what forerun.capture returned") from None


def ask_model(name: str, model: Model, words: Mapping[str, Any]) -> str:
    """Asks about a model that is a name, a file or a record."""
    with named(model) as text:
        return ask(name, {**words, "model": text})
