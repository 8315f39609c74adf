"""forerun.predict: what it answers, how it looks, and what it says to wrong input."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, List, Mapping

import needs_native  # noqa: F401
import pytest

import forerun as fr
from forerun.api import asking, card

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests/corpus/run_record/parametric.jsonl"


def program(*words: str) -> str:
    """What the command line of the same build prints."""
    command = [sys.executable, "-m", "forerun.program", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def prediction() -> fr.Prediction:
    return fr.predict("resnet18", gpu="a100_80gb", batch=8, precision="amp_bf16", samples="1M", price={"a100_80gb": 2})


def test_answers_what_the_program_prints(prediction: fr.Prediction) -> None:
    words = "resnet18 --gpu a100_80gb --batch 8 --precision amp_bf16 --samples 1M --price a100_80gb=2 --json"
    assert json.loads(program("predict", *words.split())) == prediction.json


def test_figures_are_those_of_the_json(prediction: fr.Prediction) -> None:
    told = prediction.json
    assert prediction.iteration.ms == told["iter_ms"]
    assert prediction.iteration.low_ms <= prediction.iteration.ms <= prediction.iteration.high_ms
    assert prediction.gpu_ms == told["gpu_ms"] and prediction.bound == told["bound"]
    assert prediction.memory.allocated.bytes == told["peak_allocated"]
    assert prediction.memory.reserved.gib == pytest.approx(told["peak_reserved"] / 2**30)
    assert prediction.fits and prediction.verdict == "fits" and prediction.must_fit() is prediction
    assert prediction.batch == 8 and prediction.parameters == 11689512
    assert prediction.assumptions and prediction.warnings == ()
    assert prediction.job is not None and prediction.job.iterations == 125000
    assert prediction.job.cost == pytest.approx(2 * prediction.job.hours)
    assert prediction.memory.parts["parameters"] > 0


def test_ops_add_up(prediction: fr.Prediction) -> None:
    ops = prediction.op_columns
    assert ops.height == prediction.json["ops"]
    assert sum(ops["gpu_us"]) / 1000 == pytest.approx(prediction.gpu_ms)
    assert {"forward", "backward", "update"} <= set(ops["phase"])
    assert "layer1.0.conv1" in ops["module"]


def test_memory_over_time_peaks_at_the_peak(prediction: fr.Prediction) -> None:
    chart = prediction.memory.chart()
    allocated = chart.columns["allocated"]
    assert max(allocated) == allocated[chart.peak] == prediction.memory.allocated.bytes
    assert chart.columns["at_op"] == sorted(chart.columns["at_op"])


def test_frames_are_pandas(prediction: fr.Prediction) -> None:
    pandas = pytest.importorskip("pandas")
    assert isinstance(prediction.ops, pandas.DataFrame) and len(prediction.ops) == prediction.json["ops"]
    assert isinstance(prediction.memory.timeline, pandas.DataFrame)


def test_without_pandas_it_says_so(prediction: fr.Prediction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # type: ignore[misc]
    with pytest.raises(ImportError, match="pip install pandas"):
        prediction.ops


def test_reads_well_in_a_terminal(prediction: fr.Prediction) -> None:
    lines = repr(prediction).splitlines()
    assert lines[0] == "resnet18 on NVIDIA A100-SXM4-80GB, batch 8, amp_bf16, SGD"
    assert "ms (" in lines[1] and "fits in" in lines[2] and "whole run" in lines[3]
    assert max(map(len, lines)) <= 120


def test_card_needs_no_network_and_escapes_names(prediction: fr.Prediction) -> None:
    page = prediction._repr_html_()
    assert "<svg" in page and "polygon" in page and "activations" in page and "reserved" in page
    assert "http" not in page and "<script" not in page
    evil = {**prediction.json, "id": "</script><img onerror=alert(1)>", "warnings": ["<b>"]}
    shown = card.html(fr.Prediction(evil, prediction._asked))
    assert "<img" not in shown and "&lt;img" in shown and "<b>" not in shown


def test_remedies_are_asked_for_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: List[str] = []
    answer = asking.ask

    def counted(name: str, words: Mapping[str, Any]) -> str:
        asked.append(name)
        return answer(name, words)

    monkeypatch.setattr(asking, "ask", counted)
    bound = fr.predict("resnet18", batch=4)
    assert bound.bound == "host" and bound.iteration.ms > 0 and bound.memory.reserved.gib > 0 and asked == ["predict"]
    remedies = bound.host_remedies
    assert {"cuda_graphs", "fused_optimizer", "batch"} == {each.kind for each in remedies}
    assert all(each.what in repr(bound) and each.what in bound._repr_html_() for each in remedies)
    assert asked.count("predict") == 2  # and kept then
    told = dict(bound.json)
    assert len(told.pop("host_remedies")) == 3
    brief = dict(fr.predict("resnet18", batch=4, brief=True).json)
    assert [each["kind"] for each in brief.pop("host_remedies")] == ["cuda_graphs"] and brief == told
    free = fr.predict("resnet18", batch=512)
    assert free.bound != "host" and free.host_remedies == ()


def test_takes_files_and_records() -> None:
    onnx = fr.predict(ROOT / "examples/onnx/small_cnn.onnx", gpu="t4")
    assert onnx.gpu == "NVIDIA T4" or "T4" in onnx.gpu
    from_file = fr.predict(CAPTURE, batch=5)
    record = json.loads(CAPTURE.read_text().splitlines()[0])
    from_record = fr.predict(record, batch=5)
    assert from_record.json == from_file.json
    assert from_record.op_columns.height == from_record.json["ops"]
    assert from_record.memory.chart().columns["allocated"]
    many = fr.predict_runs(ROOT / "tests/data/run1.jsonl.zst")
    assert len(many) > 1
    with pytest.raises(fr.InputError, match="predict_runs"):
        fr.predict(ROOT / "tests/data/run1.jsonl.zst")


def test_what_is_compiled_has_its_kernels_and_its_own_verdict() -> None:
    words = {"gpu": "h200", "batch": 8, "precision": "amp_bf16", "brief": True}
    run = fr.predict("gpt2_small", compile="default", samples="1M", **words)  # type: ignore[arg-type]
    compiled, told = run.compiled, run.json["compiled"]
    assert compiled is not None and compiled.verdict == "fits" and run.must_fit() is run
    assert compiled.gpu.low_ms < compiled.gpu_ms < compiled.gpu.high_ms
    assert compiled.allocated.low <= compiled.peak_allocated <= compiled.allocated.high
    assert compiled.pointwise + compiled.reductions + compiled.scatters + compiled.libraries < compiled.kernels
    assert [row.ops for row in compiled.largest_kernels] == [row["ops"] for row in told["largest_kernels"]]
    assert compiled.library_calls[0].name.startswith("aten.")
    assert compiled.job is not None and run.job is not None and compiled.job.hours < run.job.hours
    large = fr.predict("gpt2_small", compile="default", **{**words, "batch": 400})  # type: ignore[arg-type]
    with pytest.raises(fr.DoesNotFit):
        large.must_fit()
    lucky = fr.predict("gpt2_small", compile="default", **{**words, "batch": 120})  # type: ignore[arg-type]
    assert not lucky.fits and lucky.must_fit() is lucky, "the run that was asked for"


def test_a_run_that_must_fit_and_does_not() -> None:
    large = fr.predict("llama2_7b", gpu="t4")
    assert not large.fits and large.verdict == "does_not_fit"
    with pytest.raises(fr.DoesNotFit) as caught:
        large.must_fit()
    assert "T4" in caught.value.where and "forerun.fit" in caught.value.remedy


@pytest.mark.parametrize(
    "model, words, where, says",
    [
        ("resnet5O", {}, "", "resnet50"),
        ("resnet50", {"bacth": 8}, "", "batch"),
        ("resnet50", {"batch": 0}, "batch", "whole number"),
        ("resnet50", {"batch": "8"}, "batch", "whole number"),
        ("resnet50", {"batch": float("nan")}, "batch", "number"),
        ("resnet50", {"gpu": "h2000"}, "", "h200"),
        ("resnet50", {"precision": "bf17"}, "", "bf16"),
        ("resnet50", {"gpus": 4}, "gpus", "ddp"),
        ("resnet50", {"optimizer": object()}, "optimizer", "text"),
        ("no/such/file.onnx", {}, "no/such/file.onnx", ""),
        (3, {}, "model", "record"),
        ({"a": 1}, {}, "model", "forerun.capture"),
        ({"schema": "run/2", "x": float("nan")}, {}, "model", "forerun.capture"),
        ({"schema": "run/2"}, {}, "the capture", ""),
        ("resnet50", {"device_files": "/no/such.json"}, "/no/such.json", ""),
        ("resnet50", {"price": {"h200": 1}}, "", ""),
        ("\udcff", {}, "", ""),
    ],
)
def test_wrong_input_is_told(model: Any, words: Any, where: str, says: str) -> None:
    with pytest.raises(fr.InputError) as caught:
        fr.predict(model, **words)
    error = caught.value
    assert where in error.where and says in f"{error.what} {error.remedy}" and "--" not in str(error)
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_limits_are_kept() -> None:
    with pytest.raises(fr.LimitReached):
        fr.sweep("resnet50", batch=list(range(1, 200)), time_limit=0.01)


def test_threads_ask_at_once() -> None:
    answers: List[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(fr.predict("resnet18", batch=4).json)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4 and all(answer == answers[0] for answer in answers)


def test_control_c_stops_long_work() -> None:
    script = (
        "import _thread, threading, forerun as fr\n"
        "fr.predict('resnet18')\n"
        "threading.Timer(0.3, _thread.interrupt_main).start()\n"
        "try:\n"
        "    fr.sweep('resnet50', batch=list(range(1, 100000)), precision=['fp32', 'amp_bf16'])\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "stopped", done.stderr


def test_importing_brings_neither_torch_nor_pandas() -> None:
    script = "import sys, forerun; forerun.predict('resnet18'); print({'torch', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_program_is_the_same() -> None:
    assert program("--version").strip() == fr.__version__ == asking.native().__version__
    command = [sys.executable, "-m", "forerun.program", "predict", "llama2_7b", "--gpu", "t4"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 3
