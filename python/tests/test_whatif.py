"""The native module: scenes of models, primitives, faults. Skipped where it is not built."""

from pathlib import Path

import needs_native  # noqa: F401  (skips first)
import pytest

from forerun import whatif

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def iteration():  # type: ignore[no-untyped-def]
    return whatif.EditableIteration.from_model("resnet50", batch=64)


def test_primitives_change_the_time_and_leave_the_original(iteration):  # type: ignore[no-untyped-def]
    before = iteration.iteration_ms()

    def half_norms(changed):  # type: ignore[no-untyped-def]
        norms = changed.select(kind="kernel", op="batch_norm")
        assert norms and all("batch_norm" in changed.task(i).op for i in norms)
        with whatif.editing(changed) as edit:
            edit.scale(norms, 0.5)
        changed.assume("norms take half the time")

    outcome = whatif.compare(iteration, [half_norms])
    assert outcome.names == ["half_norms"]
    assert outcome.predicted_ms < before
    assert "norms take half the time" in outcome.assumptions
    assert iteration.iteration_ms() == pytest.approx(before)


def test_named_optimizations_compose_with_own_ones(iteration):  # type: ignore[no-untyped-def]
    def second_kernel(changed):  # type: ignore[no-untyped-def]
        first = changed.select(kind="kernel", phase="forward")[0]
        with whatif.editing(changed) as edit:
            made = edit.insert_kernel(first, False, "own", 5000, 10)
            edit.depend(made, first)

    alone = whatif.compare(iteration, ["cuda_graphs"])
    both = whatif.compare(iteration, ["cuda_graphs", second_kernel])
    assert both.predicted_ms == pytest.approx(alone.predicted_ms + 5, abs=0.1)


def test_removing_frees_what_it_took(iteration):  # type: ignore[no-untyped-def]
    changed = iteration.copy()
    kernels = changed.select(kind="kernel")
    removed = sum(changed.task(i).duration_us for i in kernels[:50]) / 1000
    gpu = changed.gpu_ms()
    with whatif.editing(changed) as edit:
        edit.remove_kernels(kernels[:50])
    assert changed.gpu_ms() == pytest.approx(gpu - removed, abs=0.01)


def test_predicates_see_tasks(iteration):  # type: ignore[no-untyped-def]
    longest = iteration.select(kind="gpu", predicate=lambda task: task.duration_us > 500)
    assert longest and all(iteration.task(i).duration_us > 500 for i in longest)


def test_faults_say_what_and_remedy(iteration):  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="fused_adam"):
        iteration.copy().apply("fused_adm")
    with pytest.raises(ValueError):
        whatif.EditableIteration.from_trace("no_such_trace.json")
    with pytest.raises(ValueError, match="is a device file"):
        whatif.EditableIteration.from_trace(str(DATA / "devices" / "h200.json"))
    with pytest.raises(ValueError):
        whatif.EditableIteration.from_model("no_such_model")
    with pytest.raises(IndexError):
        iteration.task(len(iteration))
    with pytest.raises(ValueError):
        whatif.Edit(iteration).scale([0], -1)
