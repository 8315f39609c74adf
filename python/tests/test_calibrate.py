"""`forerun.calibrate` without a GPU: the plan, resuming, Ctrl-C, refusals, and the file it writes."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import pytest

torch = pytest.importorskip("torch")

from forerun import calibrate, machine_readings  # noqa: E402
from forerun.calibration_iterations import ops_of_iteration, ops_within, read_iterations, task_of  # noqa: E402
from forerun.calibration_nets import KINDS, Net, Room, draw_net  # noqa: E402
from forerun.calibration_ops import CHOSEN, SHARES, calibration_plan, choose, chosen, spent, to_table  # noqa: E402
from forerun.op_binding import bind  # noqa: E402
from forerun.recorder import OpRecorder  # noqa: E402

CARD = {"gpu": "NVIDIA Test", "gpus": 1, "driver": "1", "cuda": "13.0", "cudnn": 9, "torch": "2", "cpu": "a cpu",
        "host": "c0ffee00", "date": "2026-01-01", "python": "3.11"}
HOST = [{"view": 3.0, "add": 9.0, "backward": {"view": 7.0}, "module": 1.0}]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Dict[str, Any]:
    """A GPU that is none: ops are timed by SteadyOpTimer in a process of its own."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    card = dict(CARD)

    def read_machine(work: calibrate.Work, state: Dict[str, Any], device: object, clock: object) -> None:
        state.update(device={"name": "NVIDIA Test", "compute_capability": 90}, cuda=HOST, links=[],
                     queued_kernel_us=2.0)
        work.write(state)

    monkeypatch.setattr(calibrate, "ready_gpu", lambda options: torch.device("cpu"))
    monkeypatch.setattr(calibrate, "card_of", lambda device: dict(card))
    monkeypatch.setattr(calibrate, "read_machine", read_machine)
    monkeypatch.setattr(calibrate, "_OPS_A_MINUTE", 600)
    monkeypatch.setattr(calibrate, "_MOST_WITHIN", 6)
    return card


def small_room() -> Room:
    return Room(torch.device("cpu"), 1 << 12, "amp_bf16")


def profile_of(net: Net) -> Dict[str, Any]:
    """The iteration as the GPU would be profiled: every op with a kernel of five microseconds."""
    task = task_of(net)
    recorder = OpRecorder(task.model)
    recorder.root_model(task.model, task.optimizer)

    def on_phase(letter: str) -> None:
        recorder.phase = letter

    with recorder:
        task.iterate("cpu", on_phase)
    recorder.close()
    columns = recorder.columns()
    count = len(columns["ops"]["name"])
    return {**columns, "kernels": {"start": [5000] * count, "ns": [5000] * count, "op": list(range(count))},
            "profile": {"aligned": True}}


def run(out: Path, *words: str) -> int:
    return calibrate.main(["--out", str(out), "--minutes", "0.3", "--timer", "fake_op_timer:SteadyOpTimer",
                           "--reader", "fake_reader:FakeReader", *words])


def test_the_plan_has_every_source_in_proportion_wherever_it_is_stopped() -> None:
    plan = calibration_plan(2000)
    assert len({sample.id for sample in plan}) == len(plan) == 2000
    for stop in (200, 1000, 2000):
        counts = Counter(sample.grid for sample in plan[:stop])
        for name, share in SHARES.items():
            assert abs(counts[name] - stop * share / 100) <= 0.02 * stop, (stop, name)
    assert [sample.id for sample in calibration_plan(300)][:200] == [sample.id for sample in plan[:200]]


def test_every_chosen_op_can_be_called() -> None:
    device = torch.device("cuda")
    samples = chosen()
    assert 3900 < len(samples) <= 4000 and not any("_grouped_mm" in sample.op for sample in samples)
    for sample in samples:
        bind(sample, device)


def test_no_family_that_is_judged_was_chosen_from(tmp_path: Path) -> None:
    def line(family: str, size: int) -> str:
        return json.dumps({"schema": "op/1", "status": "ok", "family": family, "us": 10.0, "op": "aten.relu.default",
                           "inputs": [["float32", [size], None]], "attributes": {}, "precision": "fp32"},
                          separators=(",", ":"))
    file = tmp_path / "ops.jsonl"
    file.write_text(line("vgg", 8) + "\n" + line("bert", 16) + "\n")
    found = spent([str(file)], {"vgg"})
    assert [entry[0].inputs[0].shape for entry in found.values() if entry[0].inputs[0]] == [(16,)]
    table = to_table(choose(found, 10))
    assert table["ops"] == [["aten.relu.default", "fp32", {}, [[["float32", [16], None]]]]]
    assert table["first"] == [0] and found[next(iter(found))][0].grid == CHOSEN


def test_a_file_is_written_and_more_minutes_go_on(tmp_path: Path, stand_in: Dict[str, Any],
                                                  capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "machine.json"
    assert run(out) == 0
    machine = json.loads(out.read_text())
    assert machine["format"] == "machine/1" and machine["card"]["gpu"] == "NVIDIA Test"
    assert machine["host"] == {"cuda": HOST} and machine["links"] == []
    ops = machine["gpu"]["ops"]
    alone = [op for op in ops if not op.get("within")]
    within = [op for op in ops if op.get("within")]
    assert len(alone) == 200  # the whole of a plan that short
    assert {tuple(op["inputs"][0][1]) for op in within} >= {(1,), (2,), (4,)}  # of networks 0, 1 and 3
    assert all(op["us"] > 0 and op["kernels"] >= 1 for op in ops)
    before = sorted(path.name for path in (tmp_path / "machine.json.work").glob("ops-*"))
    assert run(out) == 0
    again = json.loads(out.read_text())
    assert again["gpu"] == machine["gpu"]
    assert sorted(path.name for path in (tmp_path / "machine.json.work").glob("ops-*")) == before
    assert again["card"]["minutes"] >= machine["card"]["minutes"]
    assert "--machine" in capfd.readouterr().err


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_networks_of_every_kind_train_and_give_their_ops(kind: str) -> None:
    net = next(net for net in (draw_net(number, small_room()) for number in range(400)) if net.kind == kind)
    ops = ops_of_iteration(profile_of(net), net)
    assert len(ops) > 10 and all(op["us"] == 5.0 and op["family"] == "calibration" for op in ops)
    backward = {"images": "aten.convolution_backward.default", "pixels": "aten.convolution_backward.default",
                "sound": "aten.convolution_backward.default", "tokens": "aten.native_layer_norm_backward.default",
                "series": "aten.embedding_dense_backward.default", "tables": "aten._embedding_bag_backward.default"}
    assert backward[kind] in {op["op"] for op in ops}
    profile = profile_of(net)
    assert ops_of_iteration({**profile, "profile": {"aligned": False}}, net) == []
    profile["kernels"]["ns"] = [1000] * len(profile["kernels"]["ns"])
    assert 0 < len(ops_of_iteration(profile, net)) < len(ops) / 2 + 5


def test_a_network_is_known_by_its_number() -> None:
    first, again = draw_net(7, small_room()), draw_net(7, small_room())
    assert first.run == again.run and repr(first.model) == repr(again.model)
    assert all(torch.equal(one, other) for one, other in zip(first.batch, again.batch))
    shapes = {tuple(draw_net(number, small_room()).batch[0].shape) for number in range(12)}
    assert len(shapes) > 8


def test_networks_that_kill_or_fail_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    read_iterations(tmp_path, time.time() + 60, 5, "fake_reader:FakeReader")
    assert "was killed by signal 9" in capfd.readouterr().err
    statuses = {record["id"]: record["status"] for path in sorted(tmp_path.glob("iterations-*"))
                for record in map(json.loads, path.read_text().splitlines())}
    assert statuses["net/00002"] == statuses["net/00004"] == "failed"
    assert statuses["net/00003"] == statuses["net/00006"] == "ok" and statuses["net/00005"] == "oom"
    assert len({op["id"] for op in ops_within(tmp_path)}) == len(list(ops_within(tmp_path))) == 5


def test_other_software_begins_anew_only_when_told(tmp_path: Path, stand_in: Dict[str, Any],
                                                   capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "machine.json"
    assert run(out) == 0
    stand_in["driver"] = "2"
    assert run(out) == 1
    assert "driver 1" in capfd.readouterr().err
    assert run(out, "--again") == 0
    assert json.loads(out.read_text())["card"]["driver"] == "2"


def test_an_interrupt_leaves_a_file(tmp_path: Path, stand_in: Dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    out, real = tmp_path / "machine.json", calibrate.time_ops

    def stopped(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrate, "time_ops", stopped)
    assert run(out) == calibrate.EXIT_INTERRUPTED
    assert json.loads(out.read_text())["gpu"]["ops"]
    monkeypatch.setattr(calibrate, "time_ops", real)
    assert run(out) == 0


def test_without_a_timed_op_no_file_is_written(tmp_path: Path, stand_in: Dict[str, Any],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "time_ops", lambda *arguments: None)
    monkeypatch.setattr("forerun.calibration_iterations.read_iterations", lambda *arguments: None)
    assert run(tmp_path / "machine.json") == 1
    assert not (tmp_path / "machine.json").exists()


def test_without_a_gpu_the_host_alone_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "machine.json"
    if not torch.cuda.is_available():
        assert calibrate.main(["--out", str(out)]) == 1
        assert "--host-only" in capfd.readouterr().err and not out.exists()
    assert calibrate.main(["--out", str(out), "--host-only", "--minutes", "0.1"]) == 0
    machine = json.loads(out.read_text())
    assert "gpu" not in machine
    for reading in machine["host"]["cpu"]:
        assert {"view", "add", "matmul", "foreach", "module", "sgd", "adamw", "iteration"} <= set(reading)
        assert all(value > 0 for name, value in reading.items() if name != "backward")
        assert all(value > 0 for value in reading["backward"].values())


def test_a_busy_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cuda", 0)
    memory = [99 << 30, 100 << 30]
    monkeypatch.setattr(machine_readings, "board_index", lambda device: "0")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: tuple(memory))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)

    def says(*shares: Optional[str]) -> Any:
        answers: List[Optional[str]] = list(shares)

        def ask(fields: Sequence[str], index: str) -> Optional[List[str]]:
            answer = answers.pop(0)
            return None if answer is None else [answer]
        return ask

    assert machine_readings.busy_word(device, says("0", "0", "0")) == ""
    assert machine_readings.busy_word(device, says("95", "3", "97")) == ""  # a moment's work is no reason
    assert "95 % busy" in machine_readings.busy_word(device, says("95", "96", "97"))
    assert machine_readings.busy_word(device, says(None, "[N/A]", None)) == ""
    memory[0] = 60 << 30
    assert "40.0 GiB" in machine_readings.busy_word(device, says("0", "0", "0"))


def test_kernels_are_summed_and_repeats_kept() -> None:
    record = {"op": "aten.mm.default", "precision": "fp32", "inputs": [], "outputs": [], "attributes": {}, "us": 9.0,
              "spread": 0.1, "kernels": [["a", 3.0], ["b", 4.0, 5]]}
    reading = calibrate.op_reading(record, 9.5)
    assert (reading["us"], reading["span_us"], reading["kernels"], reading["again_us"]) == (7.0, 9.0, 6, 9.5)
    record["kernels"] = []
    reading = calibrate.op_reading(record, None)
    assert (reading["us"], reading["kernels"]) == (9.0, 1) and "again_us" not in reading


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "1e9"])
def test_minutes_out_of_range_are_refused(minutes: str) -> None:
    with pytest.raises(SystemExit) as refused:
        calibrate.parse(["--minutes", minutes])
    assert refused.value.code == 2


def test_the_file_is_found_in_the_configuration_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert calibrate.parse([]).out == tmp_path / "forerun" / "machine.json"


def test_what_is_written_is_what_the_schema_says(tmp_path: Path, stand_in: Dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(__file__).resolve().parents[2] / "docs/schema/files/machine.json").read_text())
    out = tmp_path / "machine.json"
    assert run(out) == 0
    machine = json.loads(out.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(machine, schema)
    del machine["card"]["date"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(machine, schema)
