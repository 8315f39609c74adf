"""What-ifs from Python: a traced or predicted iteration, and the primitives that change it.

    from forerun import whatif
    iteration = whatif.EditableIteration.from_trace("trace.json.gz")
    print(iteration.iteration_ms())
    iteration.apply("amp")                                       # any optimization of `forerun whatif --help`
    with whatif.editing(iteration) as edit:                      # or the primitives themselves
        edit.scale(iteration.select(kind="kernel", op="norm"), 0.5)
    print(iteration.iteration_ms(), iteration.assumptions)

An optimization of one's own is a function of an iteration; `compare` takes functions and names alike. Tasks are numbers
that hold until an edit is committed: select again afterwards. `select` takes parts of names, `kind` ("kernel",
"launch", "host_op", "sync", ..., or "gpu" for all device work), `phase` ("forward", "backward", "update", "data") and a
predicate on the task. The module itself can be called: `forerun.whatif("trace.json.gz").rank()` (api/whatifs.py).
"""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Iterator, List, Sequence, Union

from .api.whatifs import whatif
from .callable_module import make_callable

try:
    from ._native import Edit, EditableIteration, Task, optimizations
except ImportError as error:  # pragma: no cover - depends on the build
    raise ImportError("forerun.whatif needs its native part: pip install . or ./run python") from error

__all__ = ["Edit", "Outcome", "EditableIteration", "Task", "compare", "editing", "optimizations", "whatif"]

Optimization = Union[str, Callable[[EditableIteration], None]]


@contextmanager
def editing(iteration: EditableIteration) -> Iterator[Edit]:
    """Changes of an iteration that take effect together at the end of the block; not at all where it raises."""
    edit = Edit(iteration)
    yield edit
    edit.commit()


@dataclass(frozen=True)
class Outcome:
    """What optimizations, applied in order, make of an iteration."""

    names: List[str]
    baseline_ms: float
    predicted_ms: float
    assumptions: List[str]

    @property
    def gain(self) -> float:
        return 1 - self.predicted_ms / self.baseline_ms if self.baseline_ms > 0 else 0.0


def compare(iteration: EditableIteration, optimizations_in_order: Sequence[Optimization]) -> Outcome:
    """The iteration with and without optimizations; the iteration itself stays as it is."""
    changed = iteration.copy()
    names: List[str] = []
    for optimization in optimizations_in_order:
        if isinstance(optimization, str):
            changed.apply(optimization)
            names.append(optimization)
        else:
            optimization(changed)
            names.append(optimization.__name__)
    return Outcome(names, iteration.iteration_ms(), changed.iteration_ms(), list(changed.assumptions))


make_callable(__name__, whatif)
