"""A file that is written whole or not at all: beside its target first, renamed when it is on the disk.

What is no plain file (/dev/stdout, a pipe) is written as it comes; links are followed. Needs no more than the standard
library.
"""
from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Iterator, TextIO, Union


@contextlib.contextmanager
def output_file(path: Union[str, Path]) -> Iterator[TextIO]:
    """Opens a text file for writing; it takes its place where the block ends without an exception."""
    target = Path(os.path.realpath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as out:
            yield out
        return
    if os.fspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/self/fd/")):  # a plain file that is open already
        with open(path, "a", encoding="utf-8") as out:
            yield out
        return
    mode = _mode_of(target)
    number, partial = tempfile.mkstemp(prefix=target.name[:200] + ".partial-", dir=target.parent)
    try:
        with open(number, "w", encoding="utf-8") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(OSError):  # some file systems have no permissions
            os.chmod(partial, mode)
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _mode_of(target: Path) -> int:
    """Permissions of the earlier file, else those of the umask: `tempfile` lets nobody else read."""
    with contextlib.suppress(OSError):
        return os.stat(target).st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
