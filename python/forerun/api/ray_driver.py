"""The process that talks to Ray for a sweep (ray_engine.py): a question on standard input, answers on standard output.

Ray ends a process whose cluster is lost: this one may end, and a notebook that asked goes on. A shard is asked of the
native part as on one machine, so that its rows are the same; what it answers goes home through Ray, and no storage is
shared. Ray starts a task again whose worker or node was lost. Files that the question names travel with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ..errors import InputError, LimitReached, Stopped
from .asking import Json, ask

FILES = ("model", "prices")  # words that may name files
RETRIES = 5  # of a shard whose worker was lost
SHARDS_A_CORE = 8  # so that a lost worker costs little, and all end at about the same time

Told = Tuple[str, Any]  # "answer" and a text, or the name of an exception and what it says


def main() -> None:
    """Tells, a line of JSON each, how many shards there are, each one's answer, or what is wrong."""
    question = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Ray prints is no answer
    try:
        for line in shards_of(question["words"], question["cases"], question["address"]):
            out.write(json.dumps(line) + "\n")
    except InputError as error:
        out.write(json.dumps({"fault": _fault(error)}) + "\n")
    except KeyboardInterrupt:
        sys.exit(130)


def shards_of(words: Mapping[str, Any], cases: int, address: Optional[str]) -> Iterator[Json]:
    """The number of shards, then their answers as they come."""
    import ray

    with _connected(ray, address):
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        shards = min(cases, cores * SHARDS_A_CORE)
        yield {"shards": shards}
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(answer_shard)
        try:
            files = ray.put({word: Path(words[word]).read_bytes() for word in FILES if _is_file(words.get(word))})
            asked = [task.remote({**words, "threads": 1, "shard": f"{i}/{shards}"}, files) for i in range(shards)]
            yield from _ended(ray, asked)
        except ray.exceptions.RayError as error:
            raise lost(error) from error


@contextlib.contextmanager
def _connected(ray: Any, address: Optional[str]) -> Iterator[None]:
    settings: Dict[str, Any] = {"include_dashboard": False} if address is None else {"address": address}
    try:
        ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise unreachable(address, error) from error
    try:
        yield
    finally:
        ray.shutdown()


def _ended(ray: Any, asked: List[Any]) -> Iterator[Json]:
    """The shards as they end; whatever ends the wait ends the tasks too."""
    waiting = list(asked)
    try:
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1)
            for reference in ready:
                kind, told = ray.get(reference)
                yield {"shard": asked.index(reference), kind: told}
    except BaseException:
        for reference in waiting:
            with contextlib.suppress(Exception):
                ray.cancel(reference, force=False)
        raise


def answer_shard(words: Dict[str, Any], files: Mapping[str, bytes]) -> Told:
    """In a worker. What is at fault comes home as a value: a task that raises would be wrapped in Ray's own error."""
    try:
        with tempfile.TemporaryDirectory(prefix="forerun-") as folder:
            here = {word: _placed(words[word], content, Path(folder) / word) for word, content in files.items()}
            text = ask("sweep", {**words, **here})
            for word, path in here.items():
                text = text.replace(json.dumps(path)[1:-1], json.dumps(words[word])[1:-1])
            return "answer", text
    except (InputError, LimitReached, Stopped) as error:
        return "fault", _fault(error)


def _fault(error: Any) -> List[str]:
    return [type(error).__name__, error.what, error.where, error.remedy]


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and os.path.isfile(value)


def _placed(path: str, content: bytes, folder: Path) -> str:
    """The file by a path of this machine: its own, where that is the same file."""
    wanted = hashlib.sha256(content).digest()
    if os.path.isfile(path) and hashlib.sha256(Path(path).read_bytes()).digest() == wanted:
        return path
    folder.mkdir()
    placed = folder / Path(path).name
    placed.write_bytes(content)
    return str(placed)


def unreachable(address: Optional[str], error: BaseException) -> InputError:
    remedy = "check that it runs (`ray status`), or leave the address out for a cluster of this machine"
    return InputError(f"cannot be reached: {_first_line(error)}", address or "a local Ray cluster", remedy)


def lost(reason: object) -> InputError:
    remedy = "start it again, and ask again; `ray status` says how it is"
    return InputError(f"the cluster was lost: {_first_line(reason)}", "engine", remedy)


def _first_line(told: object) -> str:
    return (str(told).strip().splitlines() or [type(told).__name__])[0]
