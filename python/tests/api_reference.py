"""Writes the reference in docs/python.md from the docstrings of the package: python3 python/tests/api_reference.py

What stands behind the marker is made by this; test_api_docs.py holds it to what the docstrings say.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from pathlib import Path
from typing import Any, List

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python"))  # where the package is not installed

import forerun  # noqa: E402
from forerun.api import sweeping, whatifs, words  # noqa: E402

PAGE = ROOT / "docs/python.md"
MARKER = "<!-- Made by python/tests/api_reference.py from the docstrings. -->\n"

FUNCTIONS = [
    forerun.predict,
    forerun.predict_runs,
    forerun.fit,
    forerun.compare,
    forerun.sweep,
    sweeping.powers,
    whatifs.whatif,
    forerun.trace,
    forerun.scale,
    forerun.schedule,
    forerun.check,
    forerun.devices,
    forerun.models,
    forerun.links,
    forerun.optimizations,
]
CLASSES = [
    forerun.Prediction,
    forerun.Compiled,
    forerun.FusedKernel,
    forerun.LibraryCall,
    forerun.GraphBreak,
    forerun.Memory,
    forerun.MemoryTimeline,
    forerun.Job,
    forerun.TimeRange,
    forerun.MemoryRange,
    forerun.Bytes,
    forerun.Fit,
    forerun.Change,
    forerun.Comparison,
    forerun.Sweep,
    forerun.WhatIf,
    forerun.WhatIfAnswer,
    forerun.Ranking,
    forerun.Trace,
    forerun.Scale,
    forerun.Schedule,
    forerun.Check,
    forerun.Guard,
    forerun.Rule,
    forerun.Device,
    forerun.Family,
    forerun.Columns,
    forerun.InputError,
    forerun.DoesNotFit,
    forerun.LimitReached,
    forerun.Stopped,
]
WORDS = [
    words.SetupWords,
    words.MemoryWords,
    words.JobWords,
    words.PriceWords,
    words.LimitWords,
    words.PredictWords,
    words.FitWords,
    words.CompareWords,
    words.SweepWords,
    words.WhatIfWords,
    words.TraceWords,
    words.ScaleWords,
    words.ScheduleWords,
]
# Read, not imported: they need the frameworks.
FRAMEWORKS = ["lightning", "transformers", "accelerate"]


def paragraph(text: str) -> str:
    """A docstring's text in one line, for a cell or a list."""
    return " ".join(text.split())


def signature(function: Any) -> str:
    """Its parameters by name and default, without types."""
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parts.append(f"{stars}{parameter.name}{default}")
    return f"({', '.join(parts)})"


def fields_of(document: str) -> List[str]:
    """What a docstring says of parameters and exceptions."""
    pairs = [field.split(":", 1) for field in re.split(r"^:", document, flags=re.MULTILINE)[1:]]
    return [f"- `{name.replace('param ', '').strip()}`: {paragraph(text)}" for name, text in pairs]


def function_text(function: Any) -> List[str]:
    document = inspect.getdoc(function) or ""
    told = document.split(">>>")[0]
    body = re.split(r"^:", told, flags=re.MULTILINE)[0]
    lines = [f"#### `forerun.{function.__name__}{signature(function)}`", body.strip(), "", *fields_of(told)]
    examples = [line[4:] for line in document.splitlines() if line.startswith(">>> ")]
    if examples:
        lines += ["", "```python", *examples, "```"]
    return lines + [""]


def comments_of(kind: Any) -> List[str]:
    """The fields of a class as they stand in its source, each with the comment behind it."""
    source = inspect.getsource(kind)
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.ClassDef)
    lines = source.splitlines()
    found = []
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            comment = lines[node.lineno - 1].partition("  # ")[2]
            found.append(f"- `{node.target.id}`" + (f": {comment}" if comment else ""))
    return found


def class_text(kind: Any) -> List[str]:
    lines = [f"#### `forerun.{kind.__name__}`", paragraph(inspect.getdoc(kind) or ""), "", *comments_of(kind)]
    for name, member in vars(kind).items():
        if isinstance(member, functools.cached_property):
            member = property(member.func)
        shown = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(shown):
            continue
        call = "" if isinstance(member, property) else signature(shown)
        lines.append(f"- `{name}{call}`: {paragraph(inspect.getdoc(shown) or '')}")
    return lines + [""]


def framework_text(module: str) -> List[str]:
    """The functions and classes of a module's `__all__`, in that order, from its source."""
    body = statements(module)
    told = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assigned = {ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
    lines: List[str] = []
    for name in ast.literal_eval(assigned["__all__"]):
        node = told[name]
        made = node if isinstance(node, ast.FunctionDef) else constructor(node)
        call, fields = plain_signature(made), ast.get_docstring(made) or ""
        about = re.split(r"^:", ast.get_docstring(node) or "", flags=re.MULTILINE)[0]
        lines += [f"#### `forerun.{module}.{name}({call})`", about.strip(), "", *fields_of(fields), ""]
    return lines


def statements(module: str) -> List[ast.stmt]:
    return ast.parse((ROOT / f"python/forerun/{module}.py").read_text(encoding="utf-8")).body


def constructor(node: ast.ClassDef) -> Any:
    """Its own, or that of Forecaster, which forecasts are derived from."""
    own = [entry for entry in node.body if isinstance(entry, ast.FunctionDef) and entry.name == "__init__"]
    if own:
        return own[0]
    classes = [entry for entry in statements("forecaster") if isinstance(entry, ast.ClassDef)]
    return next(constructor(entry) for entry in classes if entry.name == "Forecaster")


def plain_signature(function: ast.FunctionDef) -> str:
    """Its parameters by name and default, without types."""
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return re.sub(r"^self,? ?", "", ast.unparse(function.args))


def words_text(kind: Any) -> List[str]:
    tree = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(tree, ast.ClassDef)
    own = [base.id for base in tree.bases if isinstance(base, ast.Name) and base.id.endswith("Words")]
    lines = [f"#### `{kind.__name__}`", paragraph(kind.__doc__ or ""), ""]
    if own:
        lines.append(f"- all of {', '.join(own)}")
    return lines + comments_of(kind) + [""]


def reference() -> str:
    """The whole of it."""
    lines = ["### Questions"]
    for function in FUNCTIONS:
        lines += function_text(function)
    lines += ["### Answers"]
    for kind in CLASSES:
        lines += class_text(kind)
    lines += ["### Frameworks"]
    for module in FRAMEWORKS:
        lines += framework_text(module)
    lines += ["### Words", paragraph(words.__doc__ or ""), ""]
    for kind in WORDS:
        lines += words_text(kind)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.partition(MARKER)[0] + MARKER + reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
