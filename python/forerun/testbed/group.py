"""The processes of a setting: starts them through `forerun-testbed run` and talks to each over a socket pair.

The program is the parent of all nodes and dies with this process; nodes die with it, and namespaces and links with
them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from .setting import Setting

Json = Dict[str, Any]

NODE_MODULE = "forerun.testbed.node"


class NodeFailed(Exception):
    """A node ended, or did not answer in time: the setting has to be started again."""


class WorkloadFailed(Exception):
    """A node cannot run this workload; the nodes are whole."""


class Group:
    """The running nodes of a setting."""

    def __init__(self, setting: Setting, program: Path, log: Path, start_timeout_s: float = 120.0,
                 command: Optional[Sequence[str]] = None, routed: bool = False) -> None:
        self.setting = setting
        self._log = log
        pairs = [socket.socketpair() for _ in range(setting.nodes)]
        self._channels = [ours for ours, _ in pairs]
        self._pending = [b""] * setting.nodes
        theirs = [other.fileno() for _, other in pairs]
        words = [str(program), "run", "--rates", ",".join([setting.rate] * setting.nodes), "--channels",
                 ",".join(map(str, theirs)), *(["--routed"] if routed else []), "--",
                 *(command or (sys.executable, "-m", NODE_MODULE, setting.name))]
        self._meeting = tempfile.TemporaryDirectory(prefix="forerun-testbed-")  # where the nodes find each other
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "GLOO_SOCKET_IFNAME": "eth0",
                       "FORERUN_MEETING": os.path.join(self._meeting.name, "nodes")}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                             pass_fds=theirs, env=environment)
        for _, other in pairs:
            other.close()
        try:
            self._read_layout()
            answers = self._answers(list(range(setting.nodes)), start_timeout_s, "start")
        except BaseException:
            self.kill()
            raise
        self.environments: List[Json] = [answer.get("environment", {}) for answer in answers]

    def _read_layout(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise NodeFailed(f"{self.setting.name} does not start: {self._last_words()}")
        layout = json.loads(line)
        self.layout = str(layout["layout"])
        self.pids = [int(node["pid"]) for node in layout["nodes"]]

    def ask(self, message: Json, nodes: Sequence[int], timeout_s: float) -> List[Json]:
        """The answers of these nodes, in their order. Raises WorkloadFailed where one says that it could not."""
        line = json.dumps(message).encode() + b"\n"
        for node in nodes:
            try:
                self._channels[node].sendall(line)
            except OSError:
                raise NodeFailed(f"node {node} is gone: {self._last_words()}") from None
        answers = self._answers(list(nodes), timeout_s, str(message.get("do")))
        for node, answer in zip(nodes, answers):
            if not answer.get("ok"):
                raise WorkloadFailed(f"node {node}: {answer.get('error')}")
        return answers

    def _answers(self, nodes: List[int], timeout_s: float, what: str) -> List[Json]:
        deadline = time.monotonic() + timeout_s
        found: Dict[int, Json] = {}
        while len(found) < len(nodes):
            waiting = [self._channels[node] for node in nodes if node not in found]
            ready, _, _ = select.select(waiting, [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise NodeFailed(f"{what}: {len(waiting)} of {len(nodes)} nodes did not answer in {timeout_s:.0f} s")
            for channel in ready:
                node = self._channels.index(channel)
                answer = self._receive(node, what)
                if answer is not None:
                    found[node] = answer
                    if not answer.get("ok") and what != "build":  # the others wait for this one for ever
                        raise NodeFailed(f"{what}: node {node}: {answer.get('error')}")
        return [found[node] for node in nodes]

    def _receive(self, node: int, what: str) -> Optional[Json]:
        """The line that has now come in full from a node, if one has."""
        try:
            data = self._channels[node].recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            raise NodeFailed(f"{what}: node {node} ended: {self._last_words()}")
        self._pending[node] += data
        line, end, rest = self._pending[node].partition(b"\n")
        if not end:
            return None
        self._pending[node] = rest
        answer: Json = json.loads(line)
        return answer

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            text = self._log.read_text(errors="replace")
            lines = [line for line in text.splitlines() if line.strip() and "gloo/transport" not in line]
            return " | ".join(lines[-3:])[-600:] or "no message"
        return "no message"

    def kill(self) -> None:
        """Ends all nodes at once."""
        self._process.kill()
        self._process.wait()
        for channel in self._channels:
            channel.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._meeting.cleanup()

    def close(self) -> None:
        """Lets the nodes end by themselves, and kills what does not."""
        for channel in self._channels:
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_WR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self.kill()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *problem: Any) -> None:
        self.close()
