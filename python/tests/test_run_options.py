"""Precision, accumulation, checkpointing and clipping, as a capture is asked for them."""
from typing import Any, Dict, Set

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun.capture import capture  # noqa: E402

Json = Dict[str, Any]


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 4))


def captured(**options: Any) -> Json:
    net = options.pop("model", None) or model()
    optimizer = options.pop("optimizer", None) or torch.optim.AdamW(net.parameters())
    batch = torch.randn(6, 8), torch.randint(4, (6,))
    return capture(net, optimizer, batch, backend="generic", **options)


def names(record: Json, phases: str = "fbu") -> Set[str]:
    ops = record["ops"]
    return {record["op_names"][name] for name, phase in zip(ops["name"], ops["phase"]) if phase in phases}


def types_of(record: Json, kind: str) -> Set[str]:
    storages = {s for s, k in zip(record["roots"]["storage"], record["roots"]["kind"]) if k == kind}
    tensors = record["tensors"]
    pairs = zip(tensors["storage"], tensors["dtype"])
    return {record["dtypes"][dtype] for storage, dtype in pairs if storage in storages}


def test_float16_autocast_scales_the_loss_and_takes_the_step() -> None:
    record = captured(precision="amp_fp16")
    assert record["run"]["precision"] == "amp_fp16"
    assert "aten._amp_foreach_non_finite_check_and_unscale_.default" in names(record, "u")
    assert "aten._amp_update_scale_.default" in names(record, "u")
    assert "aten._foreach_addcdiv_.ScalarList" in names(record, "u")  # no infinity was assumed
    assert "scaler.scale" in record["roots"]["name"] and "warnings" not in record
    assert captured(autocast="fp16")["run"] == record["run"]


@pytest.mark.parametrize("precision, dtype", [("bf16", "bfloat16"), ("fp16", "float16")])
def test_pure_half_precision_turns_parameters_state_and_inputs(precision: str, dtype: str) -> None:
    net = model()
    record = captured(model=net, precision=precision)
    assert types_of(record, "p") == {dtype} and types_of(record, "i") == {dtype, "int64"}
    assert dtype in types_of(record, "s") and record["run"]["precision"] == precision
    assert next(net.parameters()).dtype is torch.float32  # the model itself is left alone
    own = captured(model=model().to(torch.bfloat16 if precision == "bf16" else torch.float16), precision=None)
    assert own["run"]["precision"] == precision


def test_a_librarys_loop_widens_results_and_clips() -> None:
    plain, trainer = captured(precision="amp_bf16"), captured(precision="amp_bf16", loop="trainer")
    assert trainer["run"]["loop"] == "trainer" and trainer["run"]["clip_grad"] == 1.0
    assert "loop" not in plain["run"]
    assert "aten._foreach_norm.Scalar" in names(trainer, "u") and "aten._foreach_norm.Scalar" not in names(plain, "u")
    assert "clip_grad" not in captured(loop="trainer", clip_grad=0)["run"]
    assert captured(precision="amp_bf16", loop="lightning")["ops"]["name"] == plain["ops"]["name"]
    with pytest.raises(ValueError, match="loop is"):
        captured(loop="keras")


class WithOwnLoss(torch.nn.Module):
    """Computes its loss itself, and hands out its logits beside it, as models of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = model()

    def forward(self, x: Any, y: Any) -> Dict[str, Any]:
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, y), "logits": logits}


def test_a_loop_that_widens_results_copies_logits_that_the_loss_had_already() -> None:
    def casts(loop: str, precision: str) -> int:
        loss = lambda net, batch: net(*batch)["loss"]  # noqa: E731
        record = captured(model=WithOwnLoss(), loss_fn=loss, precision=precision, loop=loop)
        copy = record["op_names"].index("aten._to_copy.default") if "aten._to_copy.default" in names(record) else -1
        return int(record["ops"]["name"].count(copy))

    assert casts("accelerate", "amp_bf16") == casts("trainer", "amp_bf16") == casts("plain", "amp_bf16") + 1
    assert casts("lightning", "amp_bf16") == casts("plain", "amp_bf16")
    assert casts("trainer", "fp32") == casts("plain", "fp32")


def test_tf32_is_said() -> None:
    assert captured(precision="tf32")["run"]["precision"] == "tf32"
    assert captured()["run"]["precision"] == "fp32"


def test_clipping_norms_all_gradients_before_the_step() -> None:
    record = captured(clip_grad=1.0)
    assert "aten._foreach_norm.Scalar" in names(record, "u") and record["run"]["clip_grad"] == 1.0
    assert "aten._foreach_norm.Scalar" not in names(captured(), "u")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gradient_checkpointing = False
        self.inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8))

    def forward(self, x: Any) -> Any:
        if self.gradient_checkpointing:
            return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False)
        return self.inner(x)


class Checkpointed(torch.nn.Module):
    """What transformers' models have."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.head = Block(), torch.nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(torch.relu(x)) ** 2)

    def gradient_checkpointing_enable(self) -> None:
        self.block.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        self.block.gradient_checkpointing = False


def test_checkpointing_computes_blocks_again_and_is_undone() -> None:
    net = Checkpointed()
    kept, again = captured(model=net), captured(model=net, checkpoint="block", precision="amp_bf16")
    assert "aten.addmm.default" not in names(kept, "b") and "aten.addmm.default" in names(again, "b")
    assert again["run"]["checkpoint"] == "block" and "checkpoint" not in kept["run"]
    assert not net.block.gradient_checkpointing
    net.gradient_checkpointing_enable()
    assert captured(model=net)["run"]["checkpoint"] == "block"
    assert "checkpoint" not in captured(model=net, checkpoint="none")["run"] and net.block.gradient_checkpointing


def test_recomputed_ops_belong_to_their_module() -> None:
    net = Checkpointed()
    record = captured(model=net, checkpoint="block")
    ops = record["ops"]
    rows = zip(ops["name"], ops["phase"], ops["module"])
    modules = [
        record["modules"][m] for n, p, m in rows if p == "b" and record["op_names"][n] == "aten.addmm.default"
    ]
    assert modules == ["block.inner.0"]  # the last layer's result is not needed again


def test_what_does_not_go_together_is_told() -> None:
    with pytest.raises(ValueError, match="known: fp32, tf32, amp_bf16"):
        captured(precision="int8")
    with pytest.raises(ValueError, match="contradict"):
        captured(precision="fp32", autocast="bf16")
    with pytest.raises(ValueError, match="build the model in float32"):
        captured(model=model().to(torch.bfloat16), precision="fp32")
    with pytest.raises(ValueError, match="gradient_checkpointing_enable"):
        captured(checkpoint="block")
    with pytest.raises(ValueError, match="known: none, block"):
        captured(checkpoint="all")
    with pytest.raises(ValueError, match="above 0"):
        captured(clip_grad=-1.0)


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this PyTorch has no grouped products")
@pytest.mark.parametrize("precision, dtype", [("fp32", "float32"), ("amp_bf16", "float32"), ("bf16", "bfloat16")])
def test_grouped_products_run_in_the_type_of_their_matrices(precision: str, dtype: str) -> None:
    class Grouped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(2, 8, 4))

        def forward(self, x: Any) -> Any:
            return torch._grouped_mm(x, self.weight, offs=torch.tensor([3, 6], dtype=torch.int32))

    record = captured(model=Grouped(), precision=precision)
    ops = record["ops"]
    results = [
        record["tensors"]["dtype"][ops["outputs"][i][0]]
        for i, name in enumerate(ops["name"])
        if record["op_names"][name] == "aten._grouped_mm.default"
    ]
    assert len(results) == 2 and {record["dtypes"][index] for index in results} == {dtype}
    assert "spread evenly" in record["assumed"][0]


def test_a_model_of_two_types_stays_as_it_was_built() -> None:
    net = model().to(torch.bfloat16)
    net[2].to(torch.float32)
    net[1].register_forward_hook(lambda module, inputs, output: output.float())  # as an adapter casts what it reads
    batch = torch.randn(6, 8, dtype=torch.bfloat16), torch.randint(4, (6,))
    record = capture(net, torch.optim.AdamW(net.parameters()), batch, backend="generic", precision="bf16")
    assert record["run"]["precision"] == "bf16" and types_of(record, "p") == {"bfloat16", "float32"}
