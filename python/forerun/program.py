"""The command `forerun` of the wheel: the program itself, in the native part."""

from __future__ import annotations

import signal
import sys

from .api.asking import native


def main() -> int:
    """Runs the program on the words of the command line; gives its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the program has its own way to stop
    return int(native().main(["forerun", *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
