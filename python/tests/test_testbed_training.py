"""The testbed's training is right: nodes over real shaped links end with the parameters of plain training."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, List, Tuple

import needs_torch  # noqa: F401  (skips first)
import pytest

torch = pytest.importorskip("torch")

from forerun import torch_models as models  # noqa: E402
from forerun.configuration import Configuration  # noqa: E402
from forerun.measure import make_optimizer  # noqa: E402
from forerun.testbed.group import Group  # noqa: E402
from forerun.testbed.program import build_program  # noqa: E402
from forerun.testbed.setting import Setting  # noqa: E402

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

CONFIGURATION = Configuration(
    "tiny", "gru", {"vocab": 50, "d": 8, "h": 8, "layers": 1}, ("tokens", 2, 6, 50, "lm"),
    {"precision": "fp32", "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1, "momentum": 0.9,
                                        "weight_decay": 0.0},
     "channels_last": False, "cudnn_benchmark": False, "accumulate": 1})
WARM, MEASURED = 2, 3


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("FORERUN_TESTBED")
    built = os.environ.get("FORERUN_PROGRAM")
    beside = Path(built).parent / "forerun-testbed" if built else None
    if named:
        found = Path(named)
    elif beside is not None and beside.exists():
        found = beside
    elif shutil.which("g++"):
        found = build_program(tmp_path_factory.mktemp("program") / "forerun-testbed")
    else:
        pytest.skip("no forerun-testbed and no g++ to build it with")
    probe = subprocess.run([str(found), "run", "--rates", "1G", "--", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"no network namespaces here: {probe.stderr.strip()}")
    return found


def train_plainly(iterations: int) -> List[float]:
    """The sums of the parameters after so many iterations in one process, from the seed that nodes use."""
    torch.manual_seed(1)
    with models.fast_initialisation():
        model = models.build(CONFIGURATION.family, CONFIGURATION.args, CONFIGURATION.input)
    models.initialise(model)
    model.train()
    batch = models.make_batch(CONFIGURATION.input, "cpu", CONFIGURATION.args)
    optimizer = make_optimizer(dict(CONFIGURATION.run["optimizer"]), model)
    for _ in range(iterations):
        optimizer.zero_grad()
        result: Any = models.training_loss(model, batch)
        (result[0] if isinstance(result, tuple) else result).backward()
        optimizer.step()
    flat = torch.cat([parameter.detach().reshape(-1).double() for parameter in model.parameters()])
    return [float(flat.sum()), float(flat.abs().sum())]


def train_on_nodes(name: str, mode: str, program: Path, log: Path) -> Tuple[Setting, List[List[float]], List[Any]]:
    setting = Setting.parse(name)
    everyone = list(range(setting.nodes))
    with Group(setting, program, log) as group:
        built = group.ask({"do": "build", "mode": mode, "workload": CONFIGURATION.to_json()},
                          everyone[setting.servers:], 120)
        group.ask({"do": "warm", "mode": mode, "parameters": built[0]["parameters"],
                   "optimizer": CONFIGURATION.run["optimizer"], "iterations": WARM}, everyone, 60)
        measured = group.ask({"do": "measure", "iterations": MEASURED}, everyone, 60)
        digests = [answer["digest"] for answer in group.ask({"do": "digest"}, everyone, 30)]
    return setting, digests, measured


@pytest.mark.parametrize("name", ["P1w2-1G", "P2w2-1G"])
def test_synchronous_servers_train_as_one_process_does(name: str, program: Path, tmp_path: Path) -> None:
    setting, digests, measured = train_on_nodes(name, "sync", program, tmp_path / "log")
    expected = train_plainly(WARM + MEASURED)
    assert expected != pytest.approx(train_plainly(0), rel=1e-4)  # it does train
    for worker in digests[setting.servers:]:
        assert worker == pytest.approx(expected, rel=1e-4, abs=1e-4)
    held = [sum(values) for values in zip(*digests[:setting.servers])]
    assert held == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for answer in measured[setting.servers:]:
        assert len(answer["steps"]) == MEASURED
        assert all(times == sorted(times) for times in answer["steps"])


def test_all_reduce_trains_as_one_process_does(program: Path, tmp_path: Path) -> None:
    _, digests, _ = train_on_nodes("AR2-1G", "allreduce", program, tmp_path / "log")
    for worker in digests:
        assert worker == pytest.approx(train_plainly(WARM + MEASURED), rel=1e-4, abs=1e-4)


def test_asynchronous_servers_take_every_gradient(program: Path, tmp_path: Path) -> None:
    """Two workers' gradients are applied one by one, so the parameters move further than one process moves them."""
    setting, digests, measured = train_on_nodes("P1w2-1G", "async", program, tmp_path / "log")
    begin, plain = train_plainly(0), train_plainly(WARM + MEASURED)
    assert abs(digests[0][1] - begin[1]) > 1.2 * abs(plain[1] - begin[1])
    assert all(len(answer["steps"]) == MEASURED for answer in measured[setting.servers:])
