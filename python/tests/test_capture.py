"""Captures without a GPU: what is recorded, what is left untouched, what autocast does."""
import json
import pathlib
import subprocess
import sys
from typing import Any, Dict, List

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun.capture import capture  # noqa: E402

Json = Dict[str, Any]


def names(record: Json, phase: str = "fbu") -> List[str]:
    ops = record["ops"]
    return [record["op_names"][name] for name, letter in zip(ops["name"], ops["phase"]) if letter in phase]


def operand(record: Json, tensor: int) -> Any:
    columns = record["tensors"]
    return record["dtypes"][columns["dtype"][tensor]], tuple(record["shapes"][columns["shape"][tensor]])


def convnet() -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(inplace=True),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(8, 10),
    )


def image_batch() -> Any:
    return torch.randn(4, 3, 16, 16), torch.randint(10, (4,))


def test_the_three_phases_of_a_convnet() -> None:
    model = convnet()
    record = capture(model, torch.optim.Adam(model.parameters()), image_batch(), backend="generic")
    assert "aten.convolution.default" in names(record, "f")
    assert "aten.native_batch_norm.default" in names(record, "f")
    assert "aten.native_dropout.default" in names(record, "f")
    assert "aten.convolution_backward.default" in names(record, "b")
    assert "aten._foreach_lerp_.Scalar" in names(record, "u")  # all tensors at once, as on a GPU
    assert list(dict.fromkeys(record["ops"]["phase"])) == ["f", "b", "u"]
    assert record["params"] == 3 * 8 * 9 + 8 + 16 + 90 and record["param_tensors"] == 6
    assert record["backend"] == "generic" and "time_ms" not in record


def test_backward_ops_carry_the_module_and_sequence_of_their_forward() -> None:
    model = convnet()
    record = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), image_batch(), backend="generic")
    ops = record["ops"]
    forward = names(record).index("aten.convolution.default")
    backward = names(record).index("aten.convolution_backward.default")
    assert ops["sequence"][forward] == ops["sequence"][backward]
    assert record["modules"][ops["module"][forward]] == record["modules"][ops["module"][backward]] == "0"
    assert record["nodes"][ops["node"][backward]] == "ConvolutionBackward0"


@pytest.mark.parametrize("told, impl", [({}, "foreach"), ({"fused": False}, "forloop"), ({"foreach": False}, "forloop"),
                                        ({"foreach": True}, "foreach"), ({"fused": True}, "fused")])
def test_optimizers_run_as_they_would_on_a_gpu(told: Any, impl: str) -> None:
    model = convnet()
    record = capture(model, torch.optim.AdamW(model.parameters(), **told), image_batch(), backend="generic")
    assert record["run"]["optimizer"]["impl"] == impl
    updates = names(record, "u")
    assert ("aten._foreach_addcdiv_.ScalarList" in updates) == (impl == "foreach")
    assert updates.count("aten.addcdiv_.default") == (6 if impl == "forloop" else 0)  # one for every parameter
    assert ("aten._fused_adamw_.default" in updates) == (impl == "fused")


def test_model_and_optimizer_are_left_as_they_were() -> None:
    model = convnet()
    optimizer = torch.optim.AdamW(model.parameters())
    parameters, before = list(model.parameters()), [parameter.detach().clone() for parameter in model.parameters()]
    capture(model, optimizer, image_batch(), backend="generic")
    assert all(now is then for now, then in zip(model.parameters(), parameters))
    assert all(torch.equal(now, then) for now, then in zip(model.parameters(), before))
    assert optimizer.param_groups[0]["params"][0] is parameters[0] and optimizer.param_groups[0]["foreach"] is None
    assert not optimizer.state and parameters[0].grad is None
    loss = torch.nn.functional.cross_entropy(model(image_batch()[0]), image_batch()[1])
    loss.backward()
    optimizer.step()
    assert torch.isfinite(parameters[0]).all()


def test_storages_die_when_their_last_tensor_does() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    batch = torch.randn(2, 4), torch.randint(4, (2,))
    record = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), batch, backend="generic")
    ops, frees = record["ops"], dict(zip(record["frees"]["storage"], record["frees"]["op"]))
    first = names(record).index("aten.addmm.default")
    relu = names(record).index("aten.relu.default")
    storage = record["tensors"]["storage"]
    hidden = storage[ops["outputs"][first][0]]
    activation = storage[ops["outputs"][relu][0]]
    assert relu < frees[hidden] <= relu + 2  # nobody saves the input of relu
    assert frees[activation] > names(record).index("aten.threshold_backward.default")
    parameters = set(record["roots"]["storage"][:4])
    assert record["roots"]["kind"].startswith("pppp") and not parameters & set(frees)


def test_autocast_follows_cudas_rules_and_casts_a_weight_once() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

        def forward(self, x: Any) -> Any:
            return self.linear(torch.softmax(self.norm(self.linear(x)), -1))

    model = Twice()
    batch = torch.randn(4, 8), torch.randint(8, (4,))
    record = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), batch, autocast="bf16", backend="generic")
    ops = record["ops"]
    results = {
        record["op_names"][ops["name"][i]]: operand(record, ops["outputs"][i][0])[0]
        for i in range(len(ops["name"]))
        if ops["outputs"][i] and ops["phase"][i] == "f"
    }
    assert results["aten.addmm.default"] == "bfloat16"
    assert results["aten.native_layer_norm.default"] == results["aten._softmax.default"] == "float32"
    assert results["aten._log_softmax.default"] == "bfloat16"  # cross_entropy asks for the type of the logits
    assert results["aten.nll_loss_forward.default"] == "float32"
    casts = [
        operand(record, ops["inputs"][i][0])
        for i in range(len(ops["name"]))
        if record["op_names"][ops["name"][i]] == "aten._to_copy.default" and ops["phase"][i] == "f"
    ]
    assert casts.count(("float32", (8, 8))) == 1


def test_attention_and_recurrent_layers_stay_whole() -> None:
    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = torch.nn.LSTM(8, 16, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            heads = self.rnn(x)[0].reshape(2, 6, 4, 4).transpose(1, 2)
            mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.1, is_causal=True)
            return mixed.transpose(1, 2).reshape(2, 6, 16)

    model = Layers()
    batch = torch.randn(2, 6, 8), torch.randint(16, (2, 6))
    record = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), batch, backend="generic")
    for name, phase in (("attention", "f"), ("attention_backward", "b"), ("rnn", "f"), ("rnn_backward", "b")):
        assert names(record, phase).count(f"forerun.{name}.default") == 1
    index = names(record).index("forerun.rnn.default")
    attributes = record["attributes"][record["ops"]["attributes"][index]]
    assert attributes["mode"] == "lstm" and attributes["layers"] == 2 and attributes["hidden"] == 16
    grads = record["ops"]["outputs"][names(record).index("forerun.rnn_backward.default")]
    assert len(grads) == 1 + 2 + 8


def test_dispatch_is_itself_again_after_a_capture() -> None:
    test_attention_and_recurrent_layers_stay_whole()
    model = torch.nn.LSTM(4, 4)
    out, _ = model(torch.randn(3, 2, 4))
    out.sum().backward()
    query = torch.randn(1, 2, 3, 4)
    assert torch.nn.functional.scaled_dot_product_attention(query, query, query).shape == query.shape
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.nn.functional.linear(torch.randn(2, 4), torch.randn(4, 4)).dtype is torch.bfloat16


def test_accumulation_repeats_forward_and_backward() -> None:
    model = convnet()
    once = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), image_batch(), backend="generic")
    thrice = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), image_batch(), accumulate=3, backend="generic")
    assert names(thrice).count("aten.convolution.default") == 3 * names(once).count("aten.convolution.default")
    assert len(names(thrice, "u")) == len(names(once, "u"))
    assert thrice["run"]["accumulate"] == 3


def test_a_branch_on_data_is_assumed_and_said() -> None:
    class Checks(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            if (x > 100).any():
                raise AssertionError("took the unusual branch")
            return self.linear(x)

    model = Checks()
    batch = torch.randn(2, 4), torch.randint(4, (2,))
    record = capture(model, torch.optim.SGD(model.parameters(), lr=0.1), batch, backend="generic")
    assert len(record["assumed"]) == 1


def test_a_wrong_argument_is_told() -> None:
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="known: bf16"):
        capture(model, optimizer, image_batch(), autocast="int8")
    with pytest.raises(ValueError, match="micro-batches"):
        capture(model, optimizer, image_batch(), accumulate=0)


def test_the_command_writes_a_record(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\n\ndef build():\n    model = torch.nn.Linear(4, 3)\n"
        "    return model, torch.optim.SGD(model.parameters(), lr=0.1), (torch.randn(2, 4), torch.randint(3, (2,)))\n"
    )
    output = tmp_path / "model.jsonl"
    command = [sys.executable, "-m", "forerun.capture", f"{script}:build", "-o", str(output), "--backend", "generic"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    record = json.loads(output.read_text())
    assert record["id"] == "Linear" and record["input"][:2] == ["flat", 2]
    wrong = subprocess.run([*command[:3], f"{script}:nothing"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "it has: build" in wrong.stderr
