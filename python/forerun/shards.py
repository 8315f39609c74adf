"""Append-only record files that survive being killed at any moment.

A folder holds shards PREFIX-0001.jsonl, PREFIX-0002.jsonl, ...; a line is a record (docs/records.md). Each writer
starts a shard of its own and adds a line with one write, so a kill can tear only the last line of a shard, and nothing
is ever written behind a torn line. A line without its end counts as not written: what it stood for is measured again.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple, Type, Union

from forerun.records import encode, head

PathLike = Union[str, Path]
OnBroken = Callable[[Path, int, str], None]
"""Told of each line that is no record: the file, the line's number and what is wrong with it."""


class ShardWriter:
    """Appends records to a new shard, which appears with the first of them."""

    def __init__(self, directory: PathLike, prefix: str, sync: bool = False) -> None:
        """With `sync` a record is on the disk when `append` returns: it outlives the machine, not only the process."""
        self.directory = Path(directory)
        self.prefix = prefix
        self.path: Optional[Path] = None
        self._sync = sync
        self._file: Optional[int] = None
        self.directory.mkdir(parents=True, exist_ok=True)

    def append(self, record: Mapping[str, object]) -> None:
        """Writes a record as one line. Raises RecordError, and writes nothing, if it cannot be written as JSON."""
        self.append_line(encode(record))

    def append_line(self, line: bytes) -> None:
        """Writes a record that `encode` has already turned into a line."""
        if not line.endswith(b"\n") or line.find(b"\n") != len(line) - 1:
            raise ValueError("a record is one line, with its end")
        if self._file is None:
            self.path, self._file = _create_next(self.directory, self.prefix)
        size = os.fstat(self._file).st_size
        try:
            _write_all(self._file, line)
        except BaseException:
            os.ftruncate(self._file, size)  # a full disk leaves no half line to write behind
            raise
        if self._sync:
            os.fsync(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def shards(directory: PathLike, prefix: str) -> List[Path]:
    """The shards of a folder, plain or gzip, in the order in which they were begun."""
    return [path for _, path in sorted(_numbered(Path(directory), prefix))]


def read_records(path: PathLike, on_broken: Optional[OnBroken] = None) -> Iterator[Dict[str, object]]:
    """The records of a file, passing over what is no record: a torn last line, or a line damaged later."""
    path = Path(path)
    for number, line in _lines(path, on_broken):
        try:
            record = json.loads(line)
        except ValueError as error:
            _tell(on_broken, path, number, f"not a record: {error}")
            continue
        if isinstance(record, dict):
            yield record
        else:
            _tell(on_broken, path, number, "not a record: not an object")


def finished(directory: PathLike, prefix: str, on_broken: Optional[OnBroken] = None) -> Dict[str, Dict[str, object]]:
    """The heads (forerun.records.HEAD) of all whole records by id; of several with one id, that of the last."""
    heads: Dict[str, Dict[str, object]] = {}
    for path in shards(directory, prefix):
        for number, line in _lines(path, on_broken):
            try:
                fields = head(line)
            except ValueError as error:
                _tell(on_broken, path, number, f"not a record: {error}")
                continue
            if "id" in fields:  # env/1 has none
                heads[str(fields["id"])] = fields
    return heads


def finished_ids(directory: PathLike, prefix: str, on_broken: Optional[OnBroken] = None) -> Set[str]:
    """The ids of all whole records, whatever their status."""
    return set(finished(directory, prefix, on_broken))


class InUse(Exception):
    """Another process is writing to the folder."""


@contextlib.contextmanager
def exclusive(directory: PathLike) -> Iterator[None]:
    """Keeps a second process from collecting into the same folder; the lock goes with this process."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    folder = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"another process is writing to {directory}: wait for it, or give another folder") from None
        yield
    finally:
        os.close(folder)


def _numbered(directory: Path, prefix: str) -> Iterator[Tuple[int, Path]]:
    name = re.compile(re.escape(prefix) + r"-(\d{4,})\.jsonl(\.gz)?")
    for path in directory.glob("*"):
        match = name.fullmatch(path.name)
        if match:
            yield int(match.group(1)), path


def _create_next(directory: Path, prefix: str) -> Tuple[Path, int]:
    number = max((number for number, _ in _numbered(directory, prefix)), default=0)
    while True:
        number += 1
        path = directory / f"{prefix}-{number:04d}.jsonl"
        with contextlib.suppress(FileExistsError):
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)


def _write_all(file: int, line: bytes) -> None:
    written = os.write(file, line)
    while written < len(line):
        written += os.write(file, line[written:])


def _lines(path: Path, on_broken: Optional[OnBroken]) -> Iterator[Tuple[int, bytes]]:
    """The numbered whole lines of a file that are not blank."""
    with (gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")) as file:
        number = 0
        try:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    _tell(on_broken, path, number, "torn: the line has no end")
                elif line.strip():
                    yield number, line
        except EOFError:
            _tell(on_broken, path, number + 1, "torn: the compressed file has no end")


def _tell(on_broken: Optional[OnBroken], path: Path, number: int, problem: str) -> None:
    if on_broken is not None:
        on_broken(path, number, problem)
