"""The other questions: fit, compare, sweep, whatif, trace, scale, schedule, catalogues."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import needs_native  # noqa: F401
import pytest

import forerun as fr

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests/corpus/run_record/parametric.jsonl"
TRACE = ROOT / "tests/corpus/kineto/small.json"
JOBS = ROOT / "examples/jobs.csv"


def test_fit_finds_the_largest_batch() -> None:
    answer = fr.fit("resnet18", gpu="t4")
    assert answer.batch is not None and answer.batch == answer.largest == answer.prediction.batch
    assert answer.prediction.fits and answer.changes
    assert f"{answer.batch:,}" in repr(answer)
    alone = fr.predict("resnet18", gpu="t4", batch=answer.batch)
    assert alone.json["peak_reserved"] == answer.prediction.json["peak_reserved"]
    assert answer.prediction.op_columns.height > 0


def test_fit_looks_along_other_axes() -> None:
    answer = fr.fit("gpt2_small", gpu="a100_80gb", axis="length", batch=1, brief=True)
    assert answer.axis == "length" and answer.batch == 1 and answer.largest is not None and answer.changes == ()
    assert fr.fit("llama2_7b", gpu="t4").batch is None


def test_compare_puts_the_best_on_top() -> None:
    price = {"h200": 3, "t4": 0.3}
    answer = fr.compare("gpt2_small", gpus=["t4", "h200"], precision="amp_fp16", tokens=2e9, price=price)
    assert [row["gpu"] for row in answer.rows][0] == answer.best == "NVIDIA H200"
    assert "run_cost" in answer.columns and "ms" in repr(answer)
    everywhere = fr.compare("resnet18", batch=4, gpus="all", no_largest_batch=True)
    assert len(everywhere.rows) == len(fr.devices())
    pytest.importorskip("pandas")
    assert list(answer.frame["gpu"]) == answer.columns["gpu"]


def test_sweep_goes_over_lists() -> None:
    price = {"t4": 0.3, "h200": 4}
    runs = fr.sweep("resnet18", gpu=["t4", "h200"], batch=fr.powers(8, 32), samples=1e6, price=price)
    assert runs.axes == ("gpu", "batch") and len(runs) == 6
    assert runs.columns["batch"] == [8, 16, 32, 8, 16, 32]
    alone = fr.predict("resnet18", gpu="h200", batch=16)
    assert runs.columns["iteration_ms"][4] == alone.iteration.ms
    best = runs.pareto("hours", "cost")
    assert 1 <= len(best) < 6
    costs = [(row["hours"], row["cost"]) for row in best.columns.rows()]
    for row in runs.columns.rows():
        assert not any(row["hours"] < hours and row["cost"] < cost for hours, cost in costs)
    assert len(runs.fitting) == 6 and "configurations" in repr(runs)


def test_sweep_goes_over_models_and_settings() -> None:
    runs = fr.sweep(["resnet18", "vit_b_16"], over={"image": [224, 256]}, batch=2)
    assert runs.axes == ("model", "image") and runs.columns["image"] == [224, 256, 224, 256]
    broken = fr.sweep("vit_b_16", over={"image": [224, 225]}, batch=2)
    assert broken.columns["error"][0] is None and broken.columns["error"][1]
    assert fr.sweep(CAPTURE, batch=[3, 5]).columns["batch"] == [3, 5]


def test_sweep_says_what_is_wrong() -> None:
    with pytest.raises(fr.InputError, match="nothing to go through"):
        fr.sweep("resnet18", batch=8)
    with pytest.raises(fr.InputError, match="price"):
        fr.sweep("resnet18", batch=[8, 16]).pareto("iteration_ms", "cost")
    with pytest.raises(fr.InputError, match="no column"):
        fr.sweep("resnet18", batch=[8, 16]).pareto("iteration")
    with pytest.raises(fr.InputError, match="does not get to its end"):
        fr.powers(0, 8)


def test_whatif_applies_and_ranks() -> None:
    asked = fr.whatif("resnet18", batch=8)
    answer = asked.apply("amp", "channels_last")
    assert answer.applied == ("amp", "channels_last") and answer.low_ms <= answer.predicted_ms <= answer.high_ms
    ranking = asked.rank()
    assert len(ranking) > 3 and ranking[0].gain >= ranking[-1].gain
    assert ranking.columns["optimization"][0] == ranking[0].applied[0] and "gained" in repr(ranking)
    with pytest.raises(fr.InputError, match="did you mean"):
        asked.apply("ampp")


def test_whatif_is_a_module_too() -> None:
    from forerun import whatif
    from forerun.whatif import EditableIteration

    assert fr.whatif is whatif and whatif.EditableIteration is EditableIteration
    assert whatif("resnet18", batch=4).apply("amp").baseline_ms > 0
    assert {name for name, _ in whatif.optimizations()} == {one["name"] for one in fr.optimizations()}


def test_trace_has_tables() -> None:
    answer = fr.trace(TRACE)
    kernels = answer.columns("kernels")
    assert kernels.height > 0 and kernels["gpu_us"] == sorted(kernels["gpu_us"], reverse=True)
    assert answer.json["schema"] == "forerun.trace/1" and "kernels" in repr(answer)
    with pytest.raises(fr.InputError):
        fr.trace(JOBS)
    with pytest.raises(fr.InputError, match="no trace"):
        fr.trace()


def test_scale_searches_plans() -> None:
    answer = fr.scale("gpt2_small", gpu="a100", gpus=8, global_batch=64)
    assert len(answer.steps) == 1 and answer.best["gpus"] == 8
    plans = answer.search()
    assert len(plans.steps) > 1 and plans.best["step_ms"] <= plans.steps[-1]["step_ms"]
    assert plans.columns["tensor"] and "GPUs" in repr(plans)
    mixed = fr.scale("resnet18", kinds={"h200": 8, "a100": 8}, batches="by-speed")
    assert len(mixed.json["kinds"]) == 2
    with pytest.raises(fr.InputError, match="micro_batch"):
        fr.scale("gpt2_small", batch=8)


def test_schedule_under_policies_of_ours_and_yours() -> None:
    def longest(waiting: List[Any], now: float) -> List[Any]:
        assert now >= 0 and all(job.gpus >= 1 for job in waiting)
        return sorted(waiting, key=lambda job: -job.predicted)

    def shortest(waiting: List[Any], now: float) -> List[Any]:
        return sorted(waiting, key=lambda job: (job.predicted, job.submit))

    gpus = {"a100": 4, "v100": 8}
    answer = fr.schedule(JOBS, ["sjf-skip", shortest, longest], gpus=gpus)
    theirs, ours, other = answer.json
    assert [one["policy"] for one in answer.json] == ["sjf-skip", "shortest", "longest"]
    assert ours["mean_jct"] == theirs["mean_jct"] <= other["mean_jct"]
    jobs = answer.job_columns
    assert jobs.height == 3 * theirs["jobs"] and set(jobs["policy"]) == {"sjf-skip", "shortest", "longest"}
    assert fr.schedule(synthetic="jobs=50,gpus=8,seed=1", gpus=8).json[0]["jobs"] == 50


def test_schedule_says_what_a_policy_did_wrong() -> None:
    def raises(waiting: List[Any], now: float) -> List[Any]:
        raise KeyError("mine")

    def twice(waiting: List[Any], now: float) -> List[Any]:
        return waiting + waiting

    for policy, says in ((raises, "mine"), (twice, "twice"), (lambda waiting, now: [1], "no list of jobs")):
        with pytest.raises(fr.InputError, match=says):
            fr.schedule(JOBS, policy, gpus={"a100": 4, "v100": 8})
    with pytest.raises(fr.InputError, match="names or functions"):
        fr.schedule(JOBS, [3], gpus=8)  # type: ignore[list-item]


def test_catalogues() -> None:
    devices = {device.name: device for device in fr.devices()}
    assert "h200" in devices["NVIDIA H200"].aliases and devices["NVIDIA H200"].memory.gib > 100
    families = {family.name: family for family in fr.models()}
    assert "resnet50" in families["resnet"].models and families["resnet"].parameters
    assert any("name" in link for link in fr.links())


def test_hostile_words_are_refused() -> None:
    from forerun.api.asking import ask, native

    wild: List[Any] = ["", "\0", "x" * 100000, -1, 0, 2**63, -(2**70), 1e308, True, [], {}, [[]], {"": 1}, ["\0"]]
    words = ("model", "batch", "gpu", "set", "over", "price", "samples", "files", "file", "policies", "gpus", "apply")
    for name in native().questions():
        model = {} if name in ("trace", "schedule", "jobs") else {"model": "resnet18"}
        for word in words:
            for value in wild:
                given = {**model, word: value}
                try:
                    ask(name, given)
                except fr.InputError as error:
                    assert error.what
    endless: List[Any] = []
    endless.append(endless)
    with pytest.raises(fr.InputError, match="without end"):
        fr.predict("resnet18", set={"image": endless})
