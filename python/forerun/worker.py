"""Measures in a process of its own, so that whoever keeps the records outlives what is measured.

A crash, a hang or a broken CUDA context takes only the worker with it. `Worker` is the keeper's end; `python -m
forerun.worker` is the other. They speak over the worker's standard input and output, in frames of an 8-byte length and
that many bytes: the worker first says its environment, then answers each configuration with a head and, behind it, the
record as a finished line. While the worker measures, the keeper sleeps in select(). What libraries print goes to a log,
whose end explains a death.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Mapping, Optional, Protocol, Sequence

from forerun.configuration import Configuration
from forerun.records import check, encode

START_TIMEOUT_S = 300.0
"""Importing torch and waking a GPU may take minutes on a cold machine."""

_LENGTH = struct.Struct(">Q")
_LAST_WORDS_LINES = 12
_LAST_WORDS_BYTES = 4000
_PR_SET_PDEATHSIG = 1


class Instrument(Protocol):
    """What a worker measures with. It is made without arguments, and raises SystemExit where it cannot ever work."""

    def environment(self) -> Dict[str, object]:
        """The fields of `env` (docs/records.md)."""

    def measure(self, configuration: Configuration) -> Dict[str, object]:
        """A whole run/2 record, of status `ok` or `oom`. What it raises makes the configuration `failed`."""

    def close(self) -> None:
        """Called once, when no configuration is left."""


class WorkerFailed(Exception):
    """The worker ended, hung or raised, and is of no further use. The text says how, and what was last heard of it."""

    def __init__(self, text: str, final: bool = False) -> None:
        """`final`: the instrument refuses this machine, and another worker would not do better."""
        super().__init__(text)
        self.final = final

    @property
    def headline(self) -> str:
        """The line that tells most: of a traceback the last, of a death the first."""
        lines = str(self).strip().splitlines() or [""]
        return lines[-1] if lines[0].startswith("Traceback") else lines[0]


class Interrupted(Exception):
    """Something else asked for attention while the worker was at work."""


@dataclass(frozen=True)
class Answer:
    """A record as it will stand in a shard, its status, and what `check` found wrong with it."""

    line: bytes
    status: str
    problems: Sequence[str]


class Worker:
    """A process that measures one configuration at a time."""

    def __init__(self, instrument: str, log: Path, interrupt: Optional[int] = None,
                 start_timeout_s: float = START_TIMEOUT_S) -> None:
        """`instrument` is module:class. Waiting ends with Interrupted once the descriptor `interrupt` can be read."""
        self._interrupt = interrupt
        self._log = open(log, "ab+", buffering=0)
        self._log_begin = self._log_size()
        self._received = bytearray()
        self._asked = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "forerun.worker", instrument, str(os.getpid())], bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=_environment_with_package())
        try:
            greeting = json.loads(self._receive(self._asked + start_timeout_s))
            if "refusal" in greeting:
                raise WorkerFailed(greeting["refusal"], final=True)
            self.environment: Dict[str, object] = greeting["environment"]
        except BaseException:
            self.kill()
            raise

    def measure(self, configuration: Configuration, timeout_s: float) -> Answer:
        """Raises WorkerFailed if the configuration broke the worker, which then has to be replaced."""
        self._log_begin = self._log_size()
        self._send(configuration.line().encode())
        self._asked = time.monotonic()
        deadline = self._asked + timeout_s
        head = json.loads(self._receive(deadline))
        if "error" in head:
            raise WorkerFailed(head["error"])
        return Answer(self._receive(deadline), head["status"], head["problems"])

    def close(self) -> None:
        """Lets the worker end by itself, which it does when nothing more can come; then makes sure."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=20)
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=60)
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()

    def _send(self, frame: bytes) -> None:
        assert self._process.stdin is not None
        try:
            _write_frame(self._process.stdin.fileno(), frame)
        except BrokenPipeError:
            raise WorkerFailed(self._last_words()) from None

    def _receive(self, deadline: float) -> bytes:
        """The next frame."""
        while True:
            frame = _take_frame(self._received)
            if frame is not None:
                return frame
            self._received += self._read_some(deadline)

    def _read_some(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        replies = self._process.stdout.fileno()
        awaited = [replies] if self._interrupt is None else [replies, self._interrupt]
        left = deadline - time.monotonic()
        ready = select.select(awaited, [], [], left)[0] if left > 0 else []
        if not ready:
            raise WorkerFailed(self._with_log(f"no answer in {time.monotonic() - self._asked:.0f} s"))
        if self._interrupt in ready:
            raise Interrupted()
        some = os.read(replies, 1 << 20)
        if not some:
            raise WorkerFailed(self._last_words())
        return some

    def _last_words(self) -> str:
        """How the process ended, and what it said last."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return self._with_log("the worker closed its pipe")
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return self._with_log(f"the worker ended with {how}")

    def _log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size

    def _with_log(self, what: str) -> str:
        """Adds the last lines that the worker wrote about the configuration in hand."""
        begin = max(self._log_begin, self._log_size() - _LAST_WORDS_BYTES)
        text = os.pread(self._log.fileno(), _LAST_WORDS_BYTES, begin).decode("utf-8", errors="replace")
        return "\n".join([what, *text.strip().splitlines()[-_LAST_WORDS_LINES:]])


def failed_record(configuration: Configuration, environment: Mapping[str, object], error: str,
                  seconds: float) -> Dict[str, object]:
    """The record of a configuration that could not be measured."""
    return {"schema": "run/2", "status": "failed", "backend": "cuda", **configuration.to_json(),
            "env": dict(environment), "error": error, "cost_s": round(seconds, 3)}


def load_instrument(name: str) -> Instrument:
    """Makes the instrument that module:class names."""
    module, _, attribute = name.partition(":")
    instrument: Instrument = getattr(importlib.import_module(module), attribute)()
    return instrument


def serve(name: str, requests: int, replies: int) -> None:
    """Measures what comes until the pipe is closed, or a configuration raises: what it left behind is not trusted."""
    try:
        instrument = load_instrument(name)
    except SystemExit as refusal:
        _write_frame(replies, json.dumps({"refusal": str(refusal)}).encode())
        return
    _write_frame(replies, json.dumps({"environment": instrument.environment()}).encode())
    received = bytearray()
    while True:
        frame = _take_frame(received)
        if frame is not None:
            try:
                answer = _measure(instrument, Configuration.from_json(frame))
            except Exception:
                _write_frame(replies, json.dumps({"error": traceback.format_exc()[-_LAST_WORDS_BYTES:]}).encode())
                return
            _write_frame(replies, json.dumps({"status": answer.status, "problems": answer.problems}).encode())
            _write_frame(replies, answer.line)
            continue
        some = os.read(requests, 1 << 16)
        if not some:
            instrument.close()
            return
        received += some


def _measure(instrument: Instrument, configuration: Configuration) -> Answer:
    record = instrument.measure(configuration)
    if record.get("id") != configuration.id:
        raise ValueError(f"the instrument was given {configuration.id!r} and answered {record.get('id')!r}")
    return Answer(encode(record), str(record.get("status")), check(record))


def _environment_with_package() -> Dict[str, str]:
    """The environment variables with which another Python finds this package."""
    paths = [str(Path(__file__).resolve().parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _write_frame(pipe: int, frame: bytes) -> None:
    rest = memoryview(_LENGTH.pack(len(frame)) + frame)
    while rest:
        rest = rest[os.write(pipe, rest):]


def _take_frame(received: bytearray) -> Optional[bytes]:
    """The first frame, once all of it is there."""
    if len(received) < _LENGTH.size:
        return None
    end = _LENGTH.size + _LENGTH.unpack_from(received)[0]
    if len(received) < end:
        return None
    frame = bytes(received[_LENGTH.size:end])
    del received[:end]
    return frame


def _die_with(parent: int) -> None:
    """Ends this process with its parent even while it measures; an idle one sees the closed pipe. Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main(instrument: str, parent: int) -> None:
    _die_with(parent)
    # An interrupt reaches the keeper too, which ends this process where it wants that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError):
        serve(instrument, requests, replies)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
