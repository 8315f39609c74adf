"""A progress line for work of a known number of steps: a bar, the rate, and when it will end.

On a terminal the line is redrawn in place; elsewhere (a log, a pipe) a line is added about every ten seconds.
"""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Callable, Optional, TextIO, Type

BAR_CELLS = 24
TERMINAL_INTERVAL_S = 0.2
LOG_INTERVAL_S = 10.0


class Progress:
    """Shows `done` of `total` steps; `deadline`, a time of `clock`, ends the work even where steps are left."""

    def __init__(self, total: int, label: str, stream: Optional[TextIO] = None, *, done: int = 0,
                 deadline: Optional[float] = None, clock: Callable[[], float] = time.monotonic) -> None:
        """`done` steps were made earlier: they fill the bar and do not count in the rate."""
        self.total = total
        self.label = label
        self.done = done
        self._before = done
        self._stream = sys.stderr if stream is None else stream
        self._deadline = deadline
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._interval = TERMINAL_INTERVAL_S if self._terminal else LOG_INTERVAL_S
        self._begin = clock()
        self._next_show = self._begin + self._interval
        self._width = 0
        self._note = ""

    def advance(self, n: int = 1, note: str = "") -> None:
        """Counts n more steps; `note` says what the last one was."""
        self.done += n
        self._note = note
        if self._clock() >= self._next_show:
            self.show()

    def message(self, text: str) -> None:
        """Prints a line that stays, above the progress line."""
        self._clear()
        self._stream.write(text + "\n")
        self._stream.flush()

    def show(self) -> None:
        """Draws the line now."""
        self._next_show = self._clock() + self._interval
        if not self._terminal:
            self._stream.write(self.line() + "\n")
        else:
            text = self.line()[:shutil.get_terminal_size().columns - 1]
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        self._stream.flush()

    def close(self) -> None:
        self.show()
        if self._terminal:
            self._stream.write("\n")
            self._stream.flush()

    def rate_per_minute(self) -> float:
        elapsed = self._clock() - self._begin
        return 60 * (self.done - self._before) / elapsed if elapsed > 0 else 0.0

    def seconds_left(self) -> Optional[float]:
        """Until the last step at the rate so far, or until the deadline if that is sooner; None while unknown."""
        rate = self.rate_per_minute()
        estimates = []
        if self.done >= self.total:
            estimates.append(0.0)
        elif rate > 0:
            estimates.append(60 * (self.total - self.done) / rate)
        if self._deadline is not None:
            estimates.append(max(0.0, self._deadline - self._clock()))
        return min(estimates, default=None)

    def line(self) -> str:
        filled = BAR_CELLS * self.done // self.total if self.total else BAR_CELLS
        bar = "#" * filled + "." * (BAR_CELLS - filled)
        parts = [f"{self.label} [{bar}] {self.done}/{self.total}", f"{self.rate_per_minute():.1f}/min", self._ending(),
                 self._note]
        return "  ".join(part for part in parts if part)

    def _ending(self) -> str:
        left = self.seconds_left()
        if self.done >= self.total:
            return "done"
        if left is None:
            return "end not known yet"
        if left == 0:
            return "the time is up"
        at = time.strftime("%H:%M", time.localtime(time.time() + left))
        return f"{duration(left)} left (until {at})"

    def _clear(self) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def duration(seconds: float) -> str:
    """A time in the two units that matter: 45 s, 12 min 05 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
