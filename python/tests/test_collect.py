"""The collector with a fake instrument: broken configurations, budgets, signals, and kills at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, List, Sequence

import pytest

from fake_instrument import ENVIRONMENT, configuration
from forerun.collect import PlanError, only, read_plan, sample_plan, without_duplicates
from forerun.configuration import Configuration
from forerun.records import check
from forerun.shards import exclusive, read_records, shards

TESTS = Path(__file__).resolve().parent
KILLS = 20
CONFIGURATIONS = 60


class Sitting:
    """A folder to collect into, its plan, and the notes of the fake instrument."""

    def __init__(self, folder: Path, plan: Sequence[Configuration]) -> None:
        self.out = folder / "out"
        self.plan = folder / "plan.jsonl"
        self.plan.write_text("".join(entry.line() + "\n" for entry in plan))
        self._begun = folder / "begun"
        self._begun.touch()

    def start(self, *options: str, instrument: str = "FakeInstrument") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "forerun.collect", "--out", str(self.out), "--plan", str(self.plan),
                   "--instrument", f"fake_instrument:{instrument}", *options]
        environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}",
                       "FORERUN_TEST_BEGUN": str(self._begun)}
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, *options: str, instrument: str = "FakeInstrument", code: int = 0) -> str:
        process = self.start(*options, instrument=instrument)
        _, said = process.communicate(timeout=300)
        assert process.returncode == code, said
        return said

    def records(self) -> List[Dict[str, object]]:
        return [record for path in shards(self.out, "run") for record in read_records(path)]

    def ids(self) -> List[str]:
        return [str(record["id"]) for record in self.records()]

    def begun(self) -> List[str]:
        """The ids whose measurement began, in order; one per worker that was closed properly says `closed`."""
        return [line.split()[1] for line in self._begun.read_text().splitlines()]

    def workers(self) -> List[int]:
        return sorted({int(line.split()[0]) for line in self._begun.read_text().splitlines()})


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_whole_plan_is_recorded_in_its_order(tmp_path: Path) -> None:
    plan = [configuration(number) for number in (5, 3, 9, 1)]
    sitting = Sitting(tmp_path, plan)
    said = sitting.run()
    assert sitting.ids() == [entry.id for entry in plan]
    assert [check(record) for record in sitting.records()] == [[]] * 4
    assert sitting.begun() == [*sitting.ids(), "closed"]
    assert len(shards(sitting.out, "run")) == 1
    assert "4 ok, 0 oom, 0 failed; 0 left" in said
    assert f"forerun data summary {sitting.out}" in said


def test_a_broken_configuration_stops_nothing(tmp_path: Path) -> None:
    acts = ["ok", "raise", "ok", "exit", "crash", "oom", "hang", "nan", "foreign", "incomplete", "ok"]
    sitting = Sitting(tmp_path, [configuration(number, act) for number, act in enumerate(acts)])
    said = sitting.run("--timeout", "1")
    records = sitting.records()
    kept = {"ok": "ok", "oom": "oom", "incomplete": "ok"}
    assert [record["status"] for record in records] == [kept.get(act, "failed") for act in acts]
    errors = {act: str(record.get("error")) for act, record in zip(acts, records)}
    assert errors["raise"].startswith("Traceback") and "illegal memory access" in errors["raise"]
    assert errors["exit"] == "the worker ended with exit code 3\nnoise of fake-0003\nlast words"
    assert errors["crash"].startswith("the worker ended with signal SIGSEGV")
    assert errors["hang"].startswith("no answer in 1 s")
    assert "JSON compliant" in errors["nan"]
    assert "answered 'another'" in errors["foreign"]
    for act, record in zip(acts, records):
        assert check(record) == (["mem is missing"] if act == "incomplete" else []), act
        assert record["env"] == ENVIRONMENT
        assert "args" in record and "run" in record
    assert "4 ok, 1 oom, 6 failed; 0 left; 1 with something missing" in said
    assert "fake-0001 failed: RuntimeError: CUDA error" in said
    assert "fake-0009 is kept, but: mem is missing" in said
    assert len(sitting.workers()) == 7  # a new one after each failure
    assert not any(alive(pid) for pid in sitting.workers())


def test_going_on_measures_only_what_is_left(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(number, "raise" if number == 1 else "ok") for number in range(3)])
    sitting.run()
    assert "0 records" in sitting.run()
    assert len(sitting.begun()) == 4 and len(shards(sitting.out, "run")) == 1  # no worker and no shard for nothing
    longer = Sitting(tmp_path, [configuration(number, "raise" if number == 1 else "ok") for number in range(5)])
    assert "5 configurations, 3 of them recorded" in longer.run()
    assert longer.ids() == ["fake-0000", "fake-0001", "fake-0002", "fake-0003", "fake-0004"]


def test_failed_ones_are_repeated_when_asked(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(number, act) for number, act in enumerate(["ok", "flaky", "oom"])])
    sitting.run()
    assert "0 records" in sitting.run()
    assert "1 ok, 0 oom, 0 failed" in sitting.run("--retry-failed")
    assert "0 records" in sitting.run("--retry-failed")
    assert [(record["id"], record["status"]) for record in sitting.records()] == [
        ("fake-0000", "ok"), ("fake-0001", "failed"), ("fake-0002", "oom"), ("fake-0001", "ok")]


def test_a_torn_line_is_measured_again(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(number) for number in range(3)])
    sitting.run()
    first = shards(sitting.out, "run")[0]
    os.truncate(first, first.stat().st_size - 1)
    sitting.run()
    assert sitting.ids() == ["fake-0000", "fake-0001", "fake-0002"]
    assert sitting.begun().count("fake-0002") == 2 and sitting.begun().count("fake-0001") == 1


def test_nothing_starts_after_the_time_is_up(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(number, ms=400) for number in range(1000)])
    assert "0 records" in sitting.run("--minutes", "0")
    assert sitting.begun() == []
    said = sitting.run("--minutes", "0.05")
    done = sitting.ids()
    assert 0 < len(done) < 1000
    assert sitting.begun() == [*done, "closed"]  # what began was finished
    assert f"{1000 - len(done)} left" in said and "to go on: " in said


def test_only_the_ids_asked_for(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(number) for number in range(4)])
    wanted = tmp_path / "ids"
    wanted.write_text("fake-0003\nfake-0001\n")
    sitting.run("--repeat", str(wanted))
    assert sitting.ids() == ["fake-0001", "fake-0003"]
    wanted.write_text("fake-0007\n")
    assert "'fake-0007'" in sitting.run("--repeat", str(wanted), code=1)


def test_records_serve_as_a_plan(tmp_path: Path) -> None:
    plan = [configuration(number) for number in range(3)]
    sitting = Sitting(tmp_path, plan)
    sitting.run()
    assert read_plan(shards(sitting.out, "run")[0]) == plan


def test_a_worker_that_never_starts_is_given_up(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(0)])
    said = sitting.run(instrument="BrokenInstrument", code=1)
    assert sitting.begun() == ["made"] * 5
    assert "RuntimeError: driver is ill" in said
    assert sitting.records() == []
    sitting.run()
    assert sitting.ids() == ["fake-0000"]


def test_a_machine_that_cannot_ever_work_is_given_up_at_once(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(0)])
    said = sitting.run(instrument="RefusingInstrument", code=1)
    assert "RefusingInstrument does not start: no GPU is visible" in said
    assert sitting.begun() == ["made"]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(0)])
    with exclusive(sitting.out):
        assert "another process is writing" in sitting.run(code=1)
    assert sitting.begun() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_group", [True, False])
def test_a_signal_leaves_whole_files_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals,
                                                           whole_group: bool) -> None:
    sitting = Sitting(tmp_path, [configuration(0), configuration(1, "hang"), configuration(2)])
    process = sitting.start()
    wait_until(lambda: "fake-0001" in sitting.begun())
    os.killpg(process.pid, number) if whole_group else os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert sitting.ids() == ["fake-0000"]
    assert "2 left" in said and "to go on: " in said
    assert not any(alive(pid) for pid in sitting.workers())


def test_a_worker_does_not_outlive_its_supervisor(tmp_path: Path) -> None:
    sitting = Sitting(tmp_path, [configuration(0, "hang")])
    process = sitting.start()
    wait_until(lambda: bool(sitting.workers()))
    process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: not any(alive(pid) for pid in sitting.workers()))


def test_kills_at_random_moments_lose_no_finished_record(tmp_path: Path) -> None:
    """Kills all processes of the collector; what a kill finds finished must stay, once, and be begun only once."""
    moments = random.Random(3)
    plan = [configuration(number, ms=moments.uniform(1, 20), padding=moments.randrange(1 << 20))
            for number in range(CONFIGURATIONS)]
    sitting = Sitting(tmp_path, plan)
    finished: List[str] = []
    for _ in range(KILLS):
        before = len(sitting.begun())
        steps, pause = moments.randrange(5), moments.uniform(0, 0.03)
        process = sitting.start()
        wait_until(lambda: len(sitting.begun()) >= before + steps or process.poll() is not None)
        time.sleep(pause if steps else 10 * pause)  # without steps: while it starts
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        wait_until(lambda: not any(alive(pid) for pid in sitting.workers()))
        now = sitting.ids()
        assert now[:len(finished)] == finished, "a finished record is lost"
        begun = [what for what in sitting.begun()[before:] if what != "closed"]
        assert set(begun) >= set(now[len(finished):])
        assert not set(begun) & set(finished), "a finished configuration was measured again"
        assert len(begun) - len(now[len(finished):]) <= 1, "a kill lost more than one configuration"
        finished = now
    assert finished
    sitting.run()
    assert sitting.ids() == [entry.id for entry in plan]  # each once, in the order of the plan
    begun = [what for what in sitting.begun() if what != "closed"]
    assert len(begun) <= len(plan) + KILLS
    assert [check(record) for record in sitting.records()] == [[]] * len(plan)


def test_plans_are_checked(tmp_path: Path) -> None:
    one, two = configuration(1), configuration(2)
    assert without_duplicates([one, two, one]) == [one, two]
    with pytest.raises(PlanError, match="fake-0001"):
        without_duplicates([one, configuration(1, "oom")])
    ids = tmp_path / "ids"
    ids.write_text("fake-0002")
    assert only([one, two], ids) == [two]
    broken = tmp_path / "plan.jsonl"
    broken.write_text(one.line() + "\n{\n")
    with pytest.raises(PlanError, match=r"plan\.jsonl:2: not a record"):
        read_plan(broken)
    broken.write_text('{"id": "a"}\n')
    with pytest.raises(PlanError, match="family is missing"):
        read_plan(broken)
    with pytest.raises(PlanError, match="No such file"):
        read_plan(tmp_path / "absent")
    with pytest.raises(PlanError, match="no family zebra; there are .*resnet"):
        sample_plan("resnet,zebra", 2, 0)


def test_an_id_stands_for_one_configuration(tmp_path: Path) -> None:
    Sitting(tmp_path, [configuration(0), configuration(1)]).run()
    sitting = Sitting(tmp_path, [configuration(2), configuration(1, ms=7)])
    assert "another configuration under the id 'fake-0001'" in sitting.run(code=1)
    assert sitting.ids() == ["fake-0000", "fake-0001"]


def test_sampled_ids_say_what_is_measured() -> None:
    plan = sample_plan("resnet,vit", 6, 5)
    assert Counter(entry.family for entry in plan) == {"resnet": 3, "vit": 3}
    assert plan == without_duplicates(plan) == sample_plan("resnet,vit", 6, 5)
    more = {entry.id: entry.key for entry in sample_plan("", 200, 5) + sample_plan("vit", 9, 6)}
    assert len(set(more)) == len(set(more.values()))
    assert {entry.id for entry in plan if entry.id in more}, "a larger plan of the same seed has the smaller"
    assert all(more[entry.id] == entry.key for entry in plan if entry.id in more)
