"""The progress line, with a clock that the test turns."""

from __future__ import annotations

import io
from typing import Optional

import pytest

from forerun.progress import Progress, duration


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_log_gets_a_line_about_every_ten_seconds(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress(100, "collect", stream, clock=clock) as progress:
        for step in range(100):
            clock.now += 1
            progress.advance(note=f"step {step}")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11  # at 10, 20, ... 100 seconds, and the end
    assert lines[0].startswith("collect [##......................] 10/100  60.0/min  1 min 30 s left (until ")
    assert lines[0].endswith(")  step 9")
    assert lines[-1] == "collect [########################] 100/100  60.0/min  done  step 99"
    assert "\r" not in stream.getvalue()


def test_a_terminal_is_redrawn_in_place(clock: Clock) -> None:
    stream = Terminal()
    with Progress(4, "collect", stream, clock=clock) as progress:
        for note in ("a long note", "short", "", ""):
            clock.now += 1
            progress.advance(note=note)
        progress.message("a message")
    drawn = stream.getvalue().split("\r")
    assert len(drawn[2]) == len(drawn[1])  # what was longer is overwritten
    assert "a message\n" in drawn
    assert stream.getvalue().count("\n") == 2


def test_drawing_does_not_slow_fast_steps(clock: Clock) -> None:
    stream = Terminal()
    progress = Progress(100000, "microbench", stream, clock=clock)
    for _ in range(1000):
        clock.now += 0.001
        progress.advance(10)
    assert progress.done == 10000
    assert stream.getvalue().count("\r") <= 5


@pytest.mark.parametrize("deadline, left", [(None, 80.0), (1050.0, 30.0), (1500.0, 80.0), (1010.0, 0.0)])
def test_the_end_is_the_sooner_of_work_and_time(clock: Clock, deadline: Optional[float], left: float) -> None:
    progress = Progress(50, "x", io.StringIO(), done=0, deadline=deadline, clock=clock)
    clock.now += 20
    progress.advance(10)
    assert progress.seconds_left() == pytest.approx(left)
    if left == 0:
        assert "the time is up" in progress.line()


def test_steps_made_earlier_do_not_count_in_the_rate(clock: Clock) -> None:
    progress = Progress(100, "x", io.StringIO(), done=90, clock=clock)
    assert progress.seconds_left() is None
    assert "90/100  0.0/min  end not known yet" in progress.line()
    clock.now += 60
    progress.advance(2)
    assert progress.rate_per_minute() == pytest.approx(2)
    assert progress.seconds_left() == pytest.approx(240)


def test_no_work_is_done_work(clock: Clock) -> None:
    assert "0/0  0.0/min  done" in Progress(0, "x", io.StringIO(), clock=clock).line()


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59, 65, 3599)] == ["0 s", "59 s", "1 min 05 s", "59 min 59 s"]
    assert duration(7325) == "2 h 02 min"
