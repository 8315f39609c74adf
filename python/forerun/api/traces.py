"""trace: where the time of profiler traces went."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Tuple

from ..errors import InputError
from .asking import Json, ask_json
from .columns import Columns
from .words import Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import TraceWords


@dataclass(frozen=True, repr=False)
class Trace:
    """One trace, or the ranks of a run. `json` has all that `forerun trace --json` prints."""

    json: Json
    warnings: Tuple[str, ...]
    tables: Json  # kernels, ops, modules and phases, in columns

    def columns(self, table: str = "kernels") -> Columns:
        """kernels, ops, modules or phases without pandas: rank, name, count, gpu_us, host_us, ..."""
        return Columns(self.tables[table])

    @property
    def kernels(self) -> Any:
        """Kernels by GPU time as a pandas.DataFrame."""
        return self.columns("kernels").frame

    @property
    def ops(self) -> Any:
        """Ops by GPU time as a pandas.DataFrame."""
        return self.columns("ops").frame

    @property
    def modules(self) -> Any:
        """Modules by GPU time as a pandas.DataFrame."""
        return self.columns("modules").frame

    @property
    def phases(self) -> Any:
        """Phases by GPU time as a pandas.DataFrame."""
        return self.columns("phases").frame

    def __repr__(self) -> str:
        rows = list(self.columns("kernels").rows())
        lines = [f"warning: {warning}" for warning in self.warnings]
        for file in self.json["files"]:
            rank = f", rank {file['rank']}" if file["rank"] >= 0 else ""
            for device in file["devices"]:
                span, busy = device["span_us"], device["span_us"] - device["idle_us"]
                share = f"busy for {busy / span:.1%} of {span / 1e3:,.4g} ms" if span > 0 else "idle"
                number = f" (device {device['device']})" if len(file["devices"]) > 1 else ""
                gpu = f"{file['gpu'] or 'GPU'}{number}"
                lines.append(f"{os.path.basename(file['file'])}{rank}: {gpu} {share}")
        lines.append(f"{len(rows)} kinds of kernels:")
        lines += [f"  {row['gpu_us']:>12,.0f} us  {row['count']:>6}  {row['name'][:70]}" for row in rows[:10]]
        return "\n".join(lines)


def trace(*files: Path, **words: Unpack[TraceWords]) -> Trace:
    """Where the time of PyTorch profiler traces went.

    :param files: traces (.json, .gz, .zst), one a rank, or folders of them
    :param words: those of `TraceWords`
    :raises InputError: where a file is no such trace

    >>> forerun.trace("rank0.json.gz").kernels
    """
    if "compare" in words:
        raise InputError("compares nothing", "compare", "`forerun trace BEFORE --compare AFTER --json` does")
    answer = ask_json("trace", {**words, "files": list(files)})
    tables = {name: answer[name] for name in ("kernels", "ops", "modules", "phases")}
    return Trace(answer["trace"], tuple(answer["warnings"]), tables)
