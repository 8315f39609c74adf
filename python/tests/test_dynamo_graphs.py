"""Where Dynamo breaks the graphs of models that are captured without a GPU."""
from __future__ import annotations

import math
import threading
from typing import Any, Dict, List

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun.capture import capture  # noqa: E402
from forerun.dynamo_graphs import dynamo_words  # noqa: E402

if not hasattr(torch.compiler, "set_stance"):
    pytest.skip("PyTorch before 2.6 traces nothing while ops are heard", allow_module_level=True)

_SIZE = 16
_LOCK = threading.Lock()


class Net(torch.nn.Module):
    """Two layers with something between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(_SIZE, _SIZE)
        self.second = torch.nn.Linear(_SIZE, _SIZE)

    def forward(self, x: Any) -> Any:
        return self.second(torch.relu(self.first(x)))


class Prints(Net):
    def forward(self, x: Any) -> Any:
        x = self.first(x)
        print("half way")
        return self.second(torch.relu(x))


class PrintsWithin(Net):
    def between(self, x: Any) -> Any:
        print("half way")
        return torch.relu(x)

    def forward(self, x: Any) -> Any:
        return self.second(self.between(self.first(x)))


class Branches(Net):
    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.second(torch.relu(x) if x.sum() > 0 else torch.sigmoid(x))


class Numbers(Net):
    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.second(x * math.ceil(float(torch.rand(()) + 1)))


class Prepared(Net):
    """Makes itself ready in its first call, as transformers' models do that are asked for their layers' results."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = False

    def forward(self, x: Any) -> Any:
        return self.second(self.prepared(self.first(x)))

    def prepared(self, x: Any) -> Any:
        if not self.ready:
            self.prepare()
        return torch.relu(x)

    def prepare(self) -> None:
        with _LOCK:
            self.first.register_forward_hook(lambda *_: None)
            self.ready = True


class LossInside(Net):
    def forward(self, x: Any, labels: Any) -> Any:  # type: ignore[override]
        loss = torch.nn.functional.cross_entropy(super().forward(x), labels)
        return type("Output", (), {"loss": loss})()


def captured(model: Any, **words: Any) -> Dict[str, Any]:
    batch = words.pop("batch", (torch.randn(8, _SIZE), torch.randint(0, _SIZE, (8,))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return capture(model, optimizer, batch, compile=True, backend="generic", **words)


def pieces(record: Dict[str, Any]) -> List[int]:
    """By forward op; 0: runs eagerly."""
    found = [0] * len(record["ops"]["name"])
    for first, end, piece in zip(*record["dynamo"]["traced"].values()):
        found[first:end] = [piece] * (end - first)
    return [piece for piece, phase in zip(found, record["ops"]["phase"]) if phase == "f"]


def names(record: Dict[str, Any]) -> List[str]:
    ops = record["ops"]
    return [record["op_names"][name] for name, phase in zip(ops["name"], ops["phase"]) if phase == "f"]


def piece_of(record: Dict[str, Any], name: str) -> List[int]:
    return [piece for piece, op in zip(pieces(record), names(record)) if op == name]


def test_a_model_in_one_piece_has_no_breaks() -> None:
    record = captured(Net())
    dynamo = record["dynamo"]
    assert dynamo["torch"] == str(torch.__version__)
    assert (dynamo["graphs"], dynamo["breaks"]) == (1, [])
    assert piece_of(record, "aten.addmm.default") == [1, 1]
    assert piece_of(record, "aten.nll_loss_forward.default") == [0], "the loss is not the model's"
    assert dynamo_words(dynamo) == "Dynamo traces the model without a break"


def test_without_the_word_dynamo_is_not_asked() -> None:
    model = Net()
    batch = (torch.randn(8, _SIZE), torch.randint(0, _SIZE, (8,)))
    assert "dynamo" not in capture(model, torch.optim.SGD(model.parameters(), lr=0.1), batch, backend="generic")


def test_code_that_is_not_traced_breaks_where_it_stands() -> None:
    record = captured(Prints())
    dynamo = record["dynamo"]
    assert dynamo["graphs"] == 2
    assert piece_of(record, "aten.addmm.default") == [1, 2]
    assert piece_of(record, "aten.relu.default") == [2]
    (found,) = dynamo["breaks"]
    assert found["op"] == "aten.relu.default"
    assert found["where"].startswith("test_dynamo_graphs.py:")
    assert found["why"]
    assert "test_dynamo_graphs.py" in dynamo_words(dynamo)


def test_a_function_that_breaks_is_a_graph_of_its_own() -> None:
    record = captured(PrintsWithin())
    assert piece_of(record, "aten.relu.default") == [2]
    assert piece_of(record, "aten.addmm.default") == [1, 3]
    assert record["dynamo"]["graphs"] == 3


def test_what_breaks_in_the_first_call_alone_leaves_its_callers_apart() -> None:
    model = Prepared()
    record = captured(model)
    assert not model.ready and not model.first._forward_hooks, "the model is left as it was"
    assert record["dynamo"]["graphs"] == 3
    assert piece_of(record, "aten.addmm.default") == [1, 3]
    assert piece_of(record, "aten.relu.default") == [2]
    first, second = (row["why"] for row in record["dynamo"]["breaks"])
    assert second == f"its caller broke before ({first})"
    model(torch.zeros(1, _SIZE))
    assert captured(model)["dynamo"]["graphs"] == 1, "it was called before"


def test_a_branch_that_depends_on_data_runs_the_reading_eagerly() -> None:
    record = captured(Branches())
    assert record["dynamo"]["graphs"] == 2
    assert piece_of(record, "aten.addmm.default") == [1, 2]
    assert piece_of(record, "aten._local_scalar_dense.default") == [0]
    assert record["dynamo"]["breaks"][0]["why"] == "Data-dependent branching"


def test_a_number_that_is_read_breaks() -> None:
    record = captured(Numbers())
    first, second = piece_of(record, "aten.addmm.default")
    assert first == 1 and second > 1
    assert record["dynamo"]["breaks"]


def test_a_graph_that_runs_for_every_layer_is_a_piece_each_time() -> None:
    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([Net() for _ in range(3)])
            for layer in self.layers:
                layer.compile(dynamic=False)

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x) + 1
            return x

    record = captured(Layers())
    dynamo = record["dynamo"]
    assert piece_of(record, "aten.addmm.default") == [1, 1, 2, 2, 3, 3]
    assert piece_of(record, "aten.add.Tensor") == [0, 0, 0], "only the layers are compiled"
    assert dynamo["breaks"] == [], "what nobody compiled breaks nothing"


def test_only_what_its_author_compiled_is_traced() -> None:
    model = torch.nn.Sequential(Net(), torch.compile(Net()))
    record = captured(model)
    assert piece_of(record, "aten.addmm.default") == [0, 0, 1, 1]
    assert record["dynamo"]["graphs"] == 1


def test_a_model_that_is_compiled_already_is_traced_as_it_is() -> None:
    record = captured(torch.compile(Prints()))
    assert piece_of(record, "aten.addmm.default") == [1, 2]
    assert piece_of(record, "aten.nll_loss_forward.default") == [0]
    assert len(record["dynamo"]["breaks"]) == 1


def test_containers_of_torch_itself_are_traced() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(_SIZE, _SIZE), torch.nn.ReLU(), torch.nn.Linear(_SIZE, _SIZE))
    record = captured(model)
    assert piece_of(record, "aten.addmm.default") == [1, 1]
    assert record["dynamo"]["breaks"] == []


def test_what_calls_a_recurrent_layer_runs_eagerly() -> None:
    class Words(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = torch.nn.LSTM(_SIZE, _SIZE, batch_first=True)
            self.out = torch.nn.Linear(_SIZE, _SIZE)

        def forward(self, x: Any) -> Any:
            return self.out(self.cells(x.unsqueeze(1))[0][:, -1])

    record = captured(Words())
    assert piece_of(record, "aten.addmm.default")[-1:] == [0]
    assert record["dynamo"]["breaks"]


class MasksWhileTraced(Net):
    def forward(self, x: Any) -> Any:
        y = self.first(x)[None, None]
        mask = torch.ones(len(x), len(x), device=x.device) if torch.compiler.is_compiling() else None
        y = torch.nn.functional.scaled_dot_product_attention(y, y, y, attn_mask=mask)
        return self.second(torch.nn.functional.scaled_dot_product_attention(y, y, y)[0, 0])


def test_attention_that_is_masked_while_it_is_traced_is_told() -> None:
    assert captured(MasksWhileTraced())["dynamo"]["masks"] == [1, 0]
    assert "masks" not in captured(Net())["dynamo"]


def test_a_loss_that_the_model_computes_is_in_its_graph() -> None:
    batch = {"x": torch.randn(8, _SIZE), "labels": torch.randint(0, _SIZE, (8,))}
    record = captured(LossInside(), batch=batch)
    assert piece_of(record, "aten.nll_loss_forward.default") == [1]


def test_under_autocast_casts_go_with_what_they_serve() -> None:
    record = captured(Prints(), precision="amp_bf16")
    assert record["dynamo"]["graphs"] == 2
    assert piece_of(record, "aten.addmm.default") == [1, 2]
    casts = [piece for piece, name in zip(pieces(record), names(record)) if name == "aten._to_copy.default"]
    assert set(casts) <= {0, 1, 2} and {1, 2} <= set(casts)


def test_every_micro_batch_has_the_same_pieces() -> None:
    record = captured(Prints(), accumulate=2)
    assert piece_of(record, "aten.addmm.default") == [1, 2, 1, 2]
    assert len(record["dynamo"]["breaks"]) == 1, "those of one micro-batch"


def test_a_capture_at_several_sizes_has_it_too() -> None:
    record = captured(Prints(), batch_sizes=[8, 12, 20])
    assert "fixed" not in record["parametric"]
    assert piece_of(record, "aten.addmm.default") == [1, 2]


def test_the_model_is_left_as_it_was() -> None:
    model = Net()
    before = dict(vars(model))
    captured(model)
    after = dict(vars(model))
    assert after.pop("_compiled_call_impl", None) is None
    before.pop("_compiled_call_impl", None)
    assert after.keys() == before.keys()
    assert model(torch.randn(2, _SIZE)).shape == (2, _SIZE)


def test_what_dynamo_fails_on_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: Any, **_words: Any) -> None:
        raise RuntimeError("no compiler today\nat all")

    monkeypatch.setattr(torch, "compile", fails)
    dynamo = captured(Net())["dynamo"]
    assert dynamo["problem"] == "RuntimeError: no compiler today"
    assert "traced" not in dynamo
    assert "warning" in dynamo_words(dynamo)
