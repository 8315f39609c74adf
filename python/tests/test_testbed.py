"""The testbed without torch: settings, plans, series, and real nodes that answer, fail and are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from forerun import kernels
from forerun.testbed import __main__ as testbed
from forerun.testbed import kernel_activity, measurement, sampling, workloads
from forerun.testbed.group import Group, NodeFailed, WorkloadFailed
from forerun.testbed.program import NoProgram, build_program, find_program
from forerun.testbed.setting import Setting, partition

BASE = Setting.parse("P1w2-10G")

# A node without torch: says that it is there, then answers every message; "fail" and "die" do as they say.
FAKE_NODE = """
import json, os, sys, time
channel_in, channel_out = os.fdopen(3, "r", closefd=False), os.fdopen(3, "w", closefd=False)
answer = {"ok": True, "environment": {"node": os.environ["FORERUN_NODE"]}}
while True:
    print(json.dumps(answer), file=channel_out, flush=True)
    line = channel_in.readline()
    if not line:
        break
    what = json.loads(line)["do"]
    if what == "die":
        sys.exit(9)
    if what == "hang":
        time.sleep(60)
    answer = {"ok": what != "build"} if what == "build" else {"ok": True, "node": int(os.environ["FORERUN_NODE"]),
              "address": os.environ["FORERUN_ADDRESSES"].split(",")[int(os.environ["FORERUN_NODE"])]}
    if what == "build":
        answer["error"] = "no such model"
"""


# -- settings and plans ------------------------------------------------------------------------------------------------

def test_a_setting_is_its_name() -> None:
    assert (BASE.servers, BASE.workers, BASE.nodes, BASE.bits_per_second, BASE.rate) == (1, 2, 3, 10e9, "10G")
    ring = Setting.parse("AR4-2.5G")
    assert (ring.servers, ring.workers, ring.modes, ring.bits_per_second) == (0, 4, ("allreduce",), 2.5e9)
    for name in ("P0w2-10G", "P1w0-10G", "AR1-10G", "P1w2", "P1w2-10", "p1w2-10G", "P20w20-1G", ""):
        with pytest.raises(ValueError):
            Setting.parse(name)


def test_exchange_takes_the_time_of_the_busiest_link() -> None:
    bytes_per_second = 10e9 / 8
    assert BASE.exchange_seconds(1e6) == pytest.approx(2 * 2 * 4e6 / bytes_per_second)
    assert Setting.parse("P4w2-10G").exchange_seconds(1e6) == pytest.approx(2 * 4e6 / bytes_per_second)
    assert Setting.parse("AR4-10G").exchange_seconds(1e6) == pytest.approx(2 * 3 / 4 * 4e6 / bytes_per_second)


def test_partition_covers_all_parameters_once() -> None:
    for count, servers in ((10, 3), (7, 1), (2, 4)):
        slices = partition(count, servers)
        assert [index for begin, end in slices for index in range(begin, end)] == list(range(count))


def test_a_plan_is_repeatable_different_and_a_beginning_of_a_longer_one() -> None:
    long = workloads.plan(BASE, 155, 0)
    assert len({workload.id for workload in long}) == 155
    assert workloads.plan(BASE, 40, 0) == long[:40]
    assert workloads.plan(BASE, 40, 1) != long[:40]
    assert {workload.mode for workload in long} == {"sync", "async"}
    assert len({workload.configuration.family for workload in long}) >= 24
    assert len({workload.model for workload in long}) >= 60


@pytest.mark.parametrize("name", ["P1w2-1G", "P1w4-10G", "AR4-10G", "P2w2-10G", "P1w2-40G"])
def test_a_setting_gets_only_models_that_cross_its_links_in_time(name: str) -> None:
    setting = Setting.parse(name)
    by_name = {model.name: model for model in workloads.MODELS}
    drawn = workloads.plan(setting, 60, 0)
    assert len(drawn) == 60
    for workload in drawn:
        seconds = setting.exchange_seconds(by_name[workload.model].millions * 1e6)
        assert seconds <= workloads.LONGEST_EXCHANGE_S
        assert workload.mode in setting.modes


def test_settings_of_a_command_line_have_counts() -> None:
    assert testbed.settings_of("P1w2-10G:150,AR4-1G", 7) == [(BASE, 150), (Setting.parse("AR4-1G"), 7)]


# -- series ------------------------------------------------------------------------------------------------------------

def test_lines_of_the_sampler_are_readings_or_passed_over() -> None:
    assert sampling.parse_line("n 12 3 4 5 6\n") == ("n", 12, (3.0, 4.0, 5.0, 6.0))
    assert sampling.parse_line("g 12 45.5 7\n") == ("g", 12, (45.5, 7.0))
    for line in ("source gpm NVIDIA", "n 12", "n 1x 3", "", "cpu 0.1 2.0"):
        assert sampling.parse_line(line) is None


def test_rates_follow_a_counter_between_its_readings() -> None:
    readings: List[sampling.Reading] = [(0, (100.0,)), (10, (200.0,)), (30, (200.0,)), (40, (240.0,))]
    assert sampling.rates(readings, 0, 0, 40, 10) == pytest.approx([100 * 1e8, 0.0, 0.0, 40 * 1e8])
    assert sampling.rates(readings, 0, 5, 100, 10) == pytest.approx([50 * 1e8, 0.0, 20 * 1e8])
    assert sampling.rates(readings[:1], 0, 0, 40, 10) == []


def test_busy_share_counts_overlapping_intervals_once() -> None:
    intervals = [(-5, 5), (12, 18), (15, 25), (16, 17), (38, 99)]
    assert sampling.busy_share(intervals, 0, 45, 10) == pytest.approx([50.0, 80.0, 50.0, 20.0])


def test_mean_level_is_that_of_whole_intervals_within() -> None:
    readings: List[sampling.Reading] = [(0, (9.0,)), (10, (50.0,)), (30, (20.0,)), (40, (99.0,))]
    assert sampling.mean_level(readings, 0, 0, 30) == pytest.approx((50 * 10 + 20 * 20) / 30)
    assert sampling.mean_level(readings, 0, 50, 90) == 0.0


def test_levels_of_bursts_make_up_the_mean_of_the_counters() -> None:
    counters: List[sampling.Reading] = [(number * 100_000_000, (30.0, 6.0)) for number in range(20)]
    compute = [100.0, 100.0, 0.0, 0.0]
    assert measurement.gpu_levels(counters, compute, 0, 1_900_000_000) == {"gpu": 60.0, "memory": 12.0}
    assert measurement.gpu_levels(counters, [20.0], 0, 1_900_000_000)["gpu"] == 100.0  # not more than all of it
    assert measurement.gpu_levels([], compute, 0, 1_900_000_000) == {}


def test_kernels_share_the_bytes_of_their_ops_and_count_from_the_iteration() -> None:
    recorded = [("a", 100.0), ("b", 40.0), ("b", 60.0)]
    events = [(0, 10, "a"), (10, 14, "b"), (20, 26, "b"), (30, 40, "Memcpy DtoH (Device -> Pinned)"), (50, 55, "c"),
              (100, 120, "a"), (130, 140, "b"), (150, 160, "b")]
    found = kernel_activity.activities(events, [0, 100], recorded, host_bytes=400)
    assert [one[2] for one in found[:4]] == [100.0, 40.0, 60.0, 400.0]
    assert [one[2] for one in found[5:]] == [100.0, 40.0, 60.0]
    known = [one for number, one in enumerate(found) if number != 4]
    assert found[4][2] == pytest.approx(5 * sum(one[2] for one in known) / sum(one[1] - one[0] for one in known))
    assert kernel_activity.spread(found[:2], 0, 40, 5) == pytest.approx([50.0, 50.0, 40.0, 0, 0, 0, 0, 0])


def test_recorded_kernels_are_of_the_op_that_launched_them() -> None:
    def event(name: str, on_gpu: bool, start: int, duration: int, correlation: int = 0) -> kernels.Event:
        return kernels.Event(name, on_gpu, start, duration, correlation, 1, 7)

    events = [event("forerun.op.0", False, 0, 10), event("cudaLaunchKernel", False, 2, 1, 1),
              event("cudaLaunchKernel", False, 5, 1, 2), event("forerun.op.1", False, 20, 10),
              event("cudaLaunchKernel", False, 22, 1, 3), event("cudaLaunchKernel", False, 40, 1, 4),
              event("k2", True, 60, 30, 2), event("k1", True, 50, 10, 1), event("k3", True, 90, 5, 3),
              event("k4", True, 95, 5, 4)]
    shared = [("k1", 200.0), ("k2", 600.0), ("k3", 7.0), ("k4", -1.0)]
    assert kernel_activity.recorded_kernels(events, [800, 7]) == shared


def test_a_profiler_with_another_clock_is_set_to_the_end_of_training() -> None:
    assert kernel_activity.on_clock([(5, 9, "a")], 20) == [(5, 9, "a")]
    day = 86_400_000_000_000
    moved = kernel_activity.on_clock([(day, day + 4, "a"), (day + 6, day + 9, "b")], 20)
    assert moved == [(11, 15, "a"), (17, 20, "b")]


def test_kernels_told_as_stretches_keep_their_bytes() -> None:
    activity = [(number * 1000, number * 1000 + 900, 1.0) for number in range(300)]
    stretches = kernel_activity.merged(activity)
    assert len(stretches) < 10 and sum(one[2] for one in stretches) == 300.0
    assert all(end - begin <= 100_000 for begin, end, _ in stretches)


def test_memory_has_bursts_of_its_own_and_the_mean_of_the_counters() -> None:
    ms = 1_000_000
    counters: List[sampling.Reading] = [(number * 100 * ms, (30.0, 6.0)) for number in range(20)]
    light = [(number * ms, (number + 1) * ms, 1.0) for number in range(0, 900)]
    heavy = [(number * ms, (number + 1) * ms, 9.0) for number in range(900, 1000)]
    seen = measurement.kernel_series(light + heavy, counters, 0, 1900 * ms)
    assert seen["gpu"][:1000] == [100.0] * 1000 and sum(seen["gpu"][1000:]) == 0
    assert sum(seen["memory"]) / len(seen["memory"]) == pytest.approx(6.0)
    assert seen["memory"][950] == pytest.approx(9 * seen["memory"][10])
    assert measurement.kernel_series(light, [], 0, 1900 * ms) == {}


def test_iterations_fill_the_window() -> None:
    assert measurement.iterations_for(0.1, 1.6) == 16
    assert measurement.iterations_for(1.0, 1.6) == 4
    assert measurement.iterations_for(1e-5, 1.6) == 400
    with pytest.raises(measurement.TooSlow):
        measurement.iterations_for(9.0, 1.6)


def test_steps_give_iteration_times_and_mean_phases() -> None:
    ms = 1_000_000
    first = [[0, 10 * ms, 11 * ms, 15 * ms, 16 * ms], [17 * ms, 27 * ms, 28 * ms, 34 * ms, 35 * ms]]
    second = [[0, 20 * ms, 21 * ms, 25 * ms, 26 * ms], [26 * ms, 46 * ms, 47 * ms, 53 * ms, 54 * ms]]
    fields = measurement.step_fields([first, second], [{"update_ns": 4 * ms}])
    assert fields["iteration_ms"] == [17.0, 18.0]
    assert fields["phases_ms"] == {"compute": 15.0, "to_host": 1.0, "exchange": 5.0, "to_device": 1.0,
                                   "server_update": 2.0}


def test_what_is_recorded_is_not_measured_again(tmp_path: Path) -> None:
    lines = [{"id": "a", "status": "ok", "schema": "resources/1"}, {"id": "b", "status": "failed",
                                                                    "schema": "resources/1"}]
    (tmp_path / "resources-0001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert testbed.done_ids(tmp_path, [], retry_failed=False) == {"a", "b"}
    assert testbed.done_ids(tmp_path, [], retry_failed=True) == {"a"}
    assert testbed.done_ids(tmp_path / "x", [tmp_path / "resources-0001.jsonl"], retry_failed=True) == {"a"}


def test_measured_again_are_the_workloads_of_the_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [one.id for one in workloads.plan(BASE, 6, 0)]
    records = [(ids[1], "ok"), (ids[4], "ok"), (ids[4], "ok"), (ids[5], "failed")]
    kept = tmp_path / "resources-0001.jsonl"
    kept.write_text("".join(json.dumps({"schema": "resources/1", "id": one, "status": status}) + "\n"
                            for one, status in records))
    assert testbed.times_measured([kept]) == {ids[1]: 1, ids[4]: 2}
    arguments = ["--settings", "P1w2-10G:6", "--out", str(tmp_path / "more"), "--again", str(kept), "--dry-run"]
    assert testbed.main(arguments) == 0
    assert capsys.readouterr().out.split() == [ids[1], ids[4]]
    kept.write_text("{broken\n")
    assert testbed.main(arguments) == 1
    assert "--again" in capsys.readouterr().err


# -- real nodes --------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = os.environ.get("FORERUN_PROGRAM")
    beside = Path(built).parent / "forerun-testbed" if built else None
    if beside is not None and beside.exists():
        found = beside
    else:
        if not shutil.which("g++"):
            pytest.skip("no g++ to build forerun-testbed with")
        found = build_program(tmp_path_factory.mktemp("program") / "forerun-testbed")
    probe = subprocess.run([str(found), "run", "--rates", "1G", "--", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"no network namespaces here: {probe.stderr.strip()}")
    return found


@pytest.fixture()
def fake(tmp_path: Path) -> List[str]:
    script = tmp_path / "node.py"
    script.write_text(FAKE_NODE)
    return [sys.executable, str(script)]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for has no namespace."""
    try:
        os.readlink(f"/proc/{pid}/ns/net")
        return True
    except OSError:
        return False


def wait_gone(pids: List[int], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.02)
    return False


def test_metrics_are_those_of_the_program(program: Path) -> None:
    found = measurement.metrics_of({"memory": [0.0, 9.0, 9.0, 0.0, 0.0, 9.0, 0.0]},
                                   {"compute": [0.0, 100.0, 100.0, 0.0, 0.0, 50.0]}, {"send": [0.0, 0.5, 0.0]}, 1e9,
                                   program)
    assert found["memory"]["burst_ms"] == 5 * measurement.KERNEL_STEP_MS  # a gap of two steps is none
    assert found["compute"]["pattern"] == "BIB"
    assert found["compute"]["burst_ms"] == 2 * measurement.STEP_MS
    assert found["send"]["amount"] == 500.0  # megabytes a second


def test_nodes_answer_and_a_failed_build_leaves_them_whole(program: Path, fake: List[str], tmp_path: Path) -> None:
    with Group(BASE, program, tmp_path / "log", command=fake) as group:
        assert [environment["node"] for environment in group.environments] == ["0", "1", "2"]
        with pytest.raises(WorkloadFailed, match="no such model"):
            group.ask({"do": "build"}, [1, 2], 10)
        answers = group.ask({"do": "warm"}, [0, 1, 2], 10)
        assert [answer["node"] for answer in answers] == [0, 1, 2]
        assert len({answer["address"] for answer in answers}) == 3
        assert all(map(alive, group.pids))
        pids = group.pids
    assert wait_gone(pids)


@pytest.mark.parametrize("what", ["die", "hang"])
def test_a_node_that_dies_or_hangs_ends_the_group(program: Path, fake: List[str], tmp_path: Path, what: str) -> None:
    group = Group(BASE, program, tmp_path / "log", command=fake)
    with pytest.raises(NodeFailed):
        group.ask({"do": what}, [1], 1.0)
    group.kill()
    assert wait_gone(group.pids)


def test_nodes_that_cannot_start_say_why(program: Path, tmp_path: Path) -> None:
    with pytest.raises(NodeFailed, match="no-such-program"):
        Group(BASE, program, tmp_path / "log", command=["/no-such-program"])


def test_nothing_outlives_a_coordinator_that_is_killed(program: Path, fake: List[str], tmp_path: Path) -> None:
    script = tmp_path / "coordinator.py"
    script.write_text(f"""
import time
from pathlib import Path
from forerun.testbed.group import Group
from forerun.testbed.setting import Setting
group = Group(Setting.parse("P1w2-10G"), Path({str(program)!r}), Path({str(tmp_path / 'log')!r}), command={fake!r})
print(*group.pids, flush=True)
time.sleep(60)
""")
    environment = {**os.environ, "PYTHONPATH": str(Path(testbed.__file__).parents[2])}
    coordinator = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)
    assert coordinator.stdout is not None
    pids = [int(word) for word in coordinator.stdout.readline().split()]
    assert len(pids) == 3 and all(map(alive, pids))
    coordinator.send_signal(signal.SIGKILL)
    coordinator.wait()
    coordinator.stdout.close()
    assert wait_gone(pids)


def test_the_sampler_counts_what_nodes_send(program: Path, tmp_path: Path) -> None:
    """Real traffic from node 1 to node 0 over links of 1 Gb/s."""
    command = [str(program), "run", "--rates", "1G,1G", "--", str(program), "traffic", "1.0"]
    nodes = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert nodes.stdout is not None
    layout: Dict[str, Any] = json.loads(nodes.stdout.readline())
    with sampling.Sampler(program, [node["pid"] for node in layout["nodes"]], 200, 10) as sampler:
        begin = time.monotonic_ns()
        result = json.loads(nodes.stdout.readline())
        readings = sampler.readings("n")
    assert nodes.wait(20) == 0
    nodes.stdout.close()
    assert readings and sampler.source in ("none", "rates", "samples", "gpm")
    received, sent = readings[-1][1][1], readings[-1][1][2]
    assert 0 < received <= 1.12 * result["bytes"]
    assert 0.8 * received <= sent <= 1.2 * received + 4e6  # what is on its way, or came after
    peak = max(sampling.rates(readings, 1, begin, readings[-1][0], 100_000_000), default=0.0)
    assert peak <= 1.1 * 125e6  # the bucket holds it back


def test_a_missing_program_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoProgram, match="can be run"):
        find_program(str(tmp_path / "none"), tmp_path)
