"""An optimization of one's own: what if the optimizer ran on a side stream of the previous iteration's idle time?

usage: PYTHONPATH=python python3 examples/whatif/own_optimization.py TRACE-OR-MODEL

Prints what it, mixed precision, and both together would bring. The model's name is one of `forerun zoo`.
"""

import sys
from pathlib import Path

from forerun import whatif


def free_update(iteration: whatif.EditableIteration) -> None:
    """The kernels of the update cost nothing: the most that hiding them could bring."""
    update = iteration.select(kind="kernel", phase="update")
    with whatif.editing(iteration) as edit:
        edit.scale(update, 0)
    iteration.assume(f"{len(update)} kernels of the update are hidden entirely")


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "resnet50"
    if Path(given).exists():
        iteration = whatif.EditableIteration.from_trace(given)
    else:
        iteration = whatif.EditableIteration.from_model(given, batch=128)
    for optimizations in (["amp"], [free_update], ["amp", free_update]):
        outcome = whatif.compare(iteration, optimizations)
        print(f"{' + '.join(outcome.names):20} {outcome.baseline_ms:8.2f} -> {outcome.predicted_ms:8.2f} ms")


if __name__ == "__main__":
    main()
