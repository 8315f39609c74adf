"""Shards of a sweep as tasks of a Ray cluster (docs/sweep.md): a local one, or one by its address.

ray_driver.py talks to Ray, in a process of its own; here it is started, listened to and ended.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Mapping, Optional

from .. import errors
from ..progress import Progress
from .asking import Json, plain
from .ray_driver import lost, unreachable

_KNOCK_S = 10.0
_PATIENCE_S = 10.0  # of a driver that was asked to stop


def sweep_on_ray(words: Mapping[str, Any], cases: int, engine: str, address: Optional[str]) -> List[Json]:
    """The answers of all shards, in order. `engine` is "ray" or an address as "ray://host:10001"."""
    if sys.modules.get("ray", importlib.util.find_spec("ray")) is None:
        raise errors.InputError("Ray is not there", "engine", "pip install ray, or leave engine= out")
    place = engine if engine != "ray" else address or _own_cluster()
    _knock(place)
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        answers: Dict[int, Json] = {}
        shards = cases
        given = {word: plain(word, value) for word, value in words.items() if value is not None}
        with _driver({"words": given, "cases": cases, "address": place}, said) as lines:
            first = next(lines, None)
            if first is not None and "shards" in first:
                shards = first["shards"]
                with Progress(shards, "shards") as progress:
                    for line in lines:
                        _raise_fault(line)
                        answers[line["shard"]] = json.loads(line["answer"])
                        progress.advance()
            elif first is not None:
                _raise_fault(first)
        if len(answers) < shards:
            said.seek(0)
            raise lost(_reason(said.read()))
    return [answers[shard] for shard in range(shards)]


def _own_cluster() -> Optional[str]:
    """The address of the cluster that this process is connected to."""
    ray: Any = sys.modules.get("ray")
    if ray is None or not hasattr(ray, "is_initialized") or not ray.is_initialized():
        return None
    return str(ray.get_runtime_context().gcs_address)


def _knock(address: Optional[str]) -> None:
    """Ray itself would knock for minutes at a door that is not there."""
    host, colon, port = (address or "").replace("ray://", "").rpartition(":")
    if not colon or not port.isdigit():  # "auto", "local", or none
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise unreachable(address, error) from error


@contextlib.contextmanager
def _driver(question: Json, said: IO[str]) -> Iterator[Iterator[Json]]:
    """A driver at work, as the lines that it tells. It ends with the block, and its tasks with it."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-c", "from forerun.api.ray_driver import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        start_new_session=True,  # Ctrl-C comes to the one who asked
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin:
            json.dump(question, process.stdin)
        yield map(json.loads, process.stdout)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _raise_fault(line: Json) -> None:
    if "fault" in line:
        kind, *told = line["fault"]
        raise {"InputError": errors.InputError, "LimitReached": errors.LimitReached}.get(kind, errors.Stopped)(*told)


def _reason(said: str) -> str:
    """What Ray said last."""
    lines = [line for line in said.splitlines() if line.strip() and "state-dump" not in line]
    return lines[-1].strip() if lines else "its driver ended"
