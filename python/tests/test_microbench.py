"""The loop of `forerun.microbench` with a timer that needs no device: batches, resuming, budgets, and deaths."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

import pytest

from fake_op_timer import FakeOpTimer
from forerun import microbench
from forerun.grids import plan
from forerun.grids.sampling import Sample
from forerun.op_measurement import Measurement
from forerun.op_worker import BATCH_SAMPLES, PREFIX, Attempt, DeviceLost, Journal, OpWorker
from forerun.records import check
from forerun.shards import read_records, shards

PLAN = ["--grid", "gemm,softmax", "--scale", "0.05"]


@pytest.fixture(scope="module")
def samples() -> List[Sample]:
    return plan(grids=["gemm", "softmax"], scale=0.05)


def records(directory: Path) -> List[Dict[str, object]]:
    return [record for path in shards(directory, PREFIX) for record in read_records(path)]


def ops(directory: Path) -> Dict[str, Dict[str, object]]:
    """Records by id; no id may come twice."""
    found: Dict[str, Dict[str, object]] = {}
    for record in records(directory):
        if record["schema"] == "op/1":
            assert record["id"] not in found
            found[str(record["id"])] = record
    return found


def test_every_sample_gets_a_whole_record(tmp_path: Path, samples: List[Sample]) -> None:
    timer = FakeOpTimer(0)
    summary = OpWorker(tmp_path, timer).run(samples)
    found = ops(tmp_path)
    assert set(found) == {sample.id for sample in samples}
    assert summary.statuses == {"ok": len(samples)}
    for record in records(tmp_path):
        assert check(record) == [], record
    first = found[samples[0].id]
    assert first["kernels"] == [[f"kernel of {samples[0].op}", 1.0]] and first["us"] == samples[0].cost_us
    assert max(timer.profiled) <= BATCH_SAMPLES and sum(timer.profiled) == len(samples)
    assert timer.batches == -(-len(samples) // BATCH_SAMPLES)
    assert Journal(tmp_path).read() is None


def test_what_is_done_is_not_done_again(tmp_path: Path, samples: List[Sample]) -> None:
    OpWorker(tmp_path, FakeOpTimer(0)).run(samples[:100])
    timer = FakeOpTimer(0)
    OpWorker(tmp_path, timer).run(samples[:150])
    assert timer.measured == [sample.id for sample in samples[100:150]]
    again = FakeOpTimer(0)
    assert OpWorker(tmp_path, again).run(samples[:150]).statuses == {}
    assert again.measured == [] and len(ops(tmp_path)) == 150


def test_a_sample_that_raises_or_does_not_fit_is_recorded_and_passed(tmp_path: Path, samples: List[Sample]) -> None:
    timer = FakeOpTimer(0)
    timer.out_of_memory.append(samples[3].id)
    timer.raises[samples[5].id] = ValueError("no such engine\nand a long story")
    summary = OpWorker(tmp_path, timer).run(samples[:20])
    found = ops(tmp_path)
    assert summary.statuses == {"ok": 18, "oom": 1, "failed": 1}
    assert found[samples[3].id]["status"] == "oom" and "us" not in found[samples[3].id]
    assert found[samples[5].id]["error"] == "ValueError: no such engine"
    assert [record for record in records(tmp_path) if check(record)] == []
    assert timer.recoveries == 2


def test_a_batch_ends_early_when_it_keeps_much_memory(tmp_path: Path, samples: List[Sample]) -> None:
    timer = FakeOpTimer(0)
    timer.kept_bytes = timer.keep_limit_bytes // 4
    OpWorker(tmp_path, timer).run(samples[:20])
    assert timer.profiled == [5, 5, 5, 5]


def test_the_deadline_ends_a_run_and_the_batch_at_hand_is_written(tmp_path: Path, samples: List[Sample]) -> None:
    now = [0.0]

    class Slow(FakeOpTimer):
        def measure(self, sample: Sample) -> Measurement:
            now[0] += 1.0
            return super().measure(sample)

    summary = OpWorker(tmp_path, Slow(0), clock=lambda: now[0]).run(samples, deadline=10.0)
    assert len(ops(tmp_path)) == 10
    assert sum(summary.seconds.values()) == 10.0 and summary.text().startswith("timed 10 ok; seconds: gemm ")


def test_a_lost_device_ends_the_worker_and_the_journal_names_the_sample(tmp_path: Path, samples: List[Sample]) -> None:
    timer = FakeOpTimer(0)
    timer.fatal.append(samples[BATCH_SAMPLES + 7].id)
    with pytest.raises(DeviceLost, match=samples[BATCH_SAMPLES + 7].op):
        OpWorker(tmp_path, timer).run(samples)
    assert Journal(tmp_path).read() == Attempt("time", samples[BATCH_SAMPLES + 7].id)
    assert set(ops(tmp_path)) == {sample.id for sample in samples[:BATCH_SAMPLES]}
    died = {samples[BATCH_SAMPLES + 7].id: "the process lost the device"}
    OpWorker(tmp_path, FakeOpTimer(0)).run(samples, died=died)
    found = ops(tmp_path)
    assert len(found) == len(samples)
    assert found[samples[BATCH_SAMPLES + 7].id]["error"] == "the process lost the device"


def test_an_orphan_stops(tmp_path: Path, samples: List[Sample]) -> None:
    OpWorker(tmp_path, FakeOpTimer(0), orphaned=lambda: True).run(samples)
    assert ops(tmp_path) == {}


# -- with processes ----------------------------------------------------------------------------------------------------


def start(directory: Path, timer: str = "fake_op_timer:FakeOpTimer", more: Optional[List[str]] = None,
          **environment: str) -> subprocess.Popen[str]:
    here = Path(__file__).resolve().parent
    path = os.pathsep.join([str(here), str(here.parent)])
    command = [sys.executable, "-m", "forerun.microbench", "--out", str(directory), "--timer", timer, *PLAN,
               *(more or [])]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path, **environment}, stderr=subprocess.PIPE,
                            text=True)


def finish(directory: Path, timer: str = "fake_op_timer:FakeOpTimer", more: Optional[List[str]] = None,
           **environment: str) -> str:
    process = start(directory, timer, more, **environment)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def test_killing_it_twenty_times_loses_no_finished_record(tmp_path: Path, samples: List[Sample]) -> None:
    moments = random.Random(7)
    seen: Dict[str, Dict[str, object]] = {}
    for _ in range(20):
        process = start(tmp_path)
        time.sleep(moments.uniform(0.1, 0.9))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        time.sleep(0.05)
        found = ops(tmp_path)
        assert all(found.get(id_) == record for id_, record in seen.items())
        seen = found
    finish(tmp_path)
    assert set(ops(tmp_path)) == {sample.id for sample in samples}


@pytest.mark.parametrize("way, how", [("CRASH_AT", "was killed by signal 11"), ("LOSE_AT", "lost the device"),
                                      ("HANG_AT", "hung and was killed")])
def test_a_sample_that_kills_its_process_is_left_out(tmp_path: Path, samples: List[Sample], way: str, how: str) -> None:
    guilty = samples[40].id
    said = finish(tmp_path, "fake_op_timer:CrashingOpTimer", ["--limit", "60", "--stall", "1.5"], **{way: guilty})
    found = ops(tmp_path)
    assert len(found) == 60
    assert found[guilty]["status"] == "failed" and found[guilty]["error"] == f"the process {how}"
    assert sum(record["status"] == "ok" for record in found.values()) == 59
    assert how in said


def test_a_crash_in_the_profiler_costs_one_batch_its_kernels(tmp_path: Path) -> None:
    finish(tmp_path, "fake_op_timer:CrashingOpTimer", ["--limit", "300"], CRASH_PROFILE_ONCE=str(tmp_path / "crashed"))
    found = ops(tmp_path)
    assert len(found) == 300 and all(record["status"] == "ok" for record in found.values())
    assert sum(record["kernels"] == [] for record in found.values()) == BATCH_SAMPLES


def test_a_budget_of_minutes_ends_it(tmp_path: Path, samples: List[Sample]) -> None:
    finish(tmp_path, "fake_op_timer:SlowOpTimer", ["--minutes", "0.03"])
    assert len(ops(tmp_path)) < len(samples)


def test_what_cannot_be_done_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert microbench.main(["--out", str(tmp_path), "--grid", "convs"]) == microbench.EXIT_USAGE
    assert "no grid convs; there are conv" in capsys.readouterr().err
    bad = tmp_path / "list.jsonl"
    bad.write_text('{"op": "aten.mm.default", "inputs": []}\n{"op": 3}\n')
    assert microbench.main(["--out", str(tmp_path), "--closed-list", str(bad)]) == microbench.EXIT_USAGE
    assert "list.jsonl:2: a sample is {op, inputs, attributes, precision}" in capsys.readouterr().err
    process = start(tmp_path, "fake_op_timer:Nothing")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and "before it timed anything" in said


def test_a_closed_list_is_timed_once_each(tmp_path: Path, samples: List[Sample]) -> None:
    listed = tmp_path / "list.jsonl"
    listed.write_text("".join(json.dumps(sample.describe()) + "\n" for sample in samples[:5] + samples[:2]))
    finish(tmp_path / "out", more=["--closed-list", str(listed)])
    found = ops(tmp_path / "out")
    assert list(found) == [sample.id for sample in samples[:5]]
    assert {record["grid"] for record in found.values()} == {"list"}


def test_the_listing_counts_by_grid_and_op(capsys: pytest.CaptureFixture[str]) -> None:
    assert microbench.main(["--list", "--grid", "softmax", "--scale", "0.02"]) == 0
    text = capsys.readouterr().out
    assert "softmax          50 samples" in text and "aten._log_softmax.default" in text
    assert text.splitlines()[-1].startswith("total            50 samples")
