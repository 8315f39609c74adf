"""Captures of training loops as they are written: own autocast, own steps, several optimizers, models outside."""
import collections
import copy
import dataclasses
from types import SimpleNamespace
from typing import Any, Dict, List

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun.capture import capture  # noqa: E402
from forerun.capture_session import _gpu_of  # noqa: E402
from forerun.host_values import CaptureError  # noqa: E402

Json = Dict[str, Any]
F = torch.nn.functional


def network() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


def batch() -> Any:
    return torch.ones(8, 16), torch.zeros(8, dtype=torch.long)


def cross_entropy(model: Any, given: Any) -> Any:
    return F.cross_entropy(model(given[0]), given[1])


def captured(model: Any, loss: Any = cross_entropy, optimizer: Any = None, **options: Any) -> Json:
    return capture(
        model, optimizer or torch.optim.Adam(model.parameters()), batch(), loss, backend="generic", **options
    )


def ops(record: Json) -> List[Any]:
    columns = record["ops"]
    return [(record["op_names"][name], phase) for name, phase in zip(columns["name"], columns["phase"])]


def name_of(record: Json, op: int) -> str:
    return record["op_names"][record["ops"]["name"][op]]


def count(record: Json, name: str) -> int:
    return sum(op.startswith(name) for op, _ in ops(record))


@pytest.mark.parametrize("checkpointed", [False, True])
def test_an_autocast_for_the_gpu_is_one_here(checkpointed: bool) -> None:
    def forward(model: Any, given: Any) -> Any:
        if not checkpointed:
            return cross_entropy(model, given)
        out = torch.utils.checkpoint.checkpoint(model, given[0], use_reentrant=False)
        return F.cross_entropy(out, given[1])

    def loss(model: Any, given: Any) -> Any:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return forward(model, given)

    own, asked = captured(network(), loss), captured(network(), forward, precision="amp_bf16")
    assert ops(own) == ops(asked) and own["tensors"] == asked["tensors"]
    assert own["run"]["precision"] == "amp_bf16" and "warnings" not in own
    assert not torch.is_autocast_enabled("cpu") and torch.autocast("cpu", torch.bfloat16).device == "cpu"


def test_autocast_for_the_gpu_is_in_float16_where_it_does_not_say() -> None:
    def loss(model: Any, given: Any) -> Any:
        with torch.autocast("cuda"):
            return cross_entropy(model, given)

    record = captured(network(), loss)
    assert record["run"]["precision"] == "amp_fp16" and "float16" in record["dtypes"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU they are on")
@pytest.mark.filterwarnings("ignore")
def test_an_autocast_and_a_scaler_that_are_off_are_warnings() -> None:
    autocast, scaler = torch.autocast("cuda", dtype=torch.bfloat16), torch.amp.GradScaler("cuda")

    def loss(model: Any, given: Any) -> Any:
        with autocast:
            return scaler.scale(cross_entropy(model, given))

    warnings = captured(network(), loss)["warnings"]
    assert any("enters an autocast of CUDA that is off" in text for text in warnings)
    assert any("GradScaler that is off" in text for text in warnings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU they are there")
def test_tensors_that_are_moved_to_the_gpu_are_there() -> None:
    def loss(model: Any, given: Any) -> Any:
        scale = torch.ones(8, 1, device="cuda")
        return F.cross_entropy(model(given[0].cuda(non_blocking=True)) * scale, given[1].to(torch.device("cuda:0")))

    assert count(captured(network(), loss), "aten.addmm") == 2


def test_parts_keep_their_mode() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 4))
    model[1].eval()
    record = captured(model)
    assert model.training and not model[1].training
    trains = [record["attributes"][i] for i in record["ops"]["attributes"] if "training" in record["attributes"][i]]
    assert trains and not any(entry["training"] for entry in trains)


@pytest.mark.parametrize("loop", ["plain", "lightning", "trainer", "accelerate"])
def test_autocast_is_where_the_loop_has_it(loop: str) -> None:
    """Accelerate wraps the model's forward pass alone, and so the product here is in float32."""

    def loss(model: Any, given: Any) -> Any:
        out = model(given[0])
        return (out @ out.T).sum()

    record = captured(network(), loss, precision="amp_bf16", loop=loop)
    columns, tensors = record["ops"], record["tensors"]
    product = max(i for i, phase in enumerate(columns["phase"]) if phase == "f" and "aten.mm" in name_of(record, i))
    dtype = record["dtypes"][tensors["dtype"][columns["outputs"][product][0]]]
    assert dtype == ("bfloat16" if loop in ("plain", "lightning") else "float32")


def test_a_loss_function_that_steps_is_the_whole_step() -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters())

    def step(model: Any, given: Any) -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model, given)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    own, plain = captured(model, step, optimizer), captured(network(), clip_grad=1.0)
    assert ops(own)[: len(ops(plain))] == ops(plain) and "unused" not in own
    assert [op for op, _ in ops(own)[len(ops(plain)) :]] == ["aten._local_scalar_dense.default"]
    with pytest.raises(CaptureError, match="steps the optimizer itself, so that accumulate 2 and clip_grad 1.0"):
        captured(model, step, optimizer, accumulate=2, clip_grad=1.0)


def test_backward_passes_of_the_loss_function_accumulate() -> None:
    def loss(model: Any, given: Any) -> Any:
        (cross_entropy(model, given) / 2).backward()
        return cross_entropy(model, given) / 2

    own, plain = captured(network(), loss), captured(network(), accumulate=2)
    assert ops(own) == ops(plain)


class Adversaries(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.nn.Linear(4, 16)
        self.critic = torch.nn.Linear(16, 1)


def test_a_second_optimizer_steps_too() -> None:
    model = Adversaries()
    first, second = (torch.optim.Adam(part.parameters()) for part in (model.generator, model.critic))

    def loss(model: Any, given: Any) -> Any:
        made = model.generator(torch.randn(8, 4))
        second.zero_grad()
        (model.critic(made.detach()) - model.critic(given[0])).mean().backward()
        second.step()
        return -model.critic(made).mean()

    record = captured(model, loss, first)
    assert count(record, "aten._foreach_addcdiv_") == 2
    states = [name for kind, name in zip(record["roots"]["kind"], record["roots"]["name"]) if kind == "s"]
    assert "critic.weight.exp_avg" in states and "generator.weight.exp_avg" in states
    phases = record["ops"]["phase"]
    assert "u" not in phases.rstrip("u")
    assert not second.state and second.param_groups[0]["params"][0] is model.critic.weight


def test_parameters_that_the_model_does_not_have_are_refused() -> None:
    model, head = network(), torch.nn.Linear(4, 4)

    def loss(model: Any, given: Any) -> Any:
        return F.cross_entropy(head(model(given[0])), given[1])

    both = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    with pytest.raises(CaptureError, match="SGD holds 2 parameters that the model does not have"):
        captured(model, loss, both)
    with pytest.raises(CaptureError, match=r"loops.py:\d+: a parameter of shape \[4, 4\] .* gets a gradient"):
        captured(model, loss)
    assert head.weight.grad is None and head.bias.grad is None


def test_what_lies_outside_the_model_is_counted_once_and_left_as_it_was() -> None:
    model, teacher = network(), torch.nn.Linear(16, 1 << 17)
    average = copy.deepcopy(model)
    before = [parameter.clone() for parameter in average.parameters()]

    def loss(model: Any, given: Any) -> Any:
        with torch.no_grad():
            for kept, now in zip(average.parameters(), model.parameters()):
                kept.mul_(0.9).add_(now, alpha=0.1)
            taught = teacher(given[0]).mean()
        return cross_entropy(model, given) + taught

    record = captured(model, loss)
    assert all(torch.equal(now, then) for now, then in zip(average.parameters(), before))
    assert count(record, "aten.mul_.Tensor") == 4
    weight = teacher.weight.numel() * 4
    assert sum(size == weight for size in record["storages"]["bytes"]) == 1
    assert any("MiB outside the model" in text for text in record["assumed"])


def test_wrapped_models_say_what_is_recorded() -> None:
    model = network()
    assert "torch.compile" in captured(torch.compile(model))["warnings"][0]
    model.compile()
    assert "torch.compile" in captured(model)["warnings"][0]
    assert "DataParallel" in captured(torch.nn.DataParallel(network()))["warnings"][0]


class FullyShardedDataParallel(torch.nn.Sequential):
    """By its name alone."""


def test_sharded_models_and_steps_with_closures_are_refused() -> None:
    with pytest.raises(CaptureError, match="sharded over GPUs: record it before it is wrapped"):
        captured(FullyShardedDataParallel(network()))
    model = network()
    with pytest.raises(CaptureError, match="LBFGS runs the model as often"):
        captured(model, optimizer=torch.optim.LBFGS(model.parameters()))


def test_parameters_without_an_optimizer_are_told() -> None:
    model = network()
    record = captured(model, optimizer=torch.optim.SGD(model[0].parameters(), lr=0.1))
    told = "2 parameter tensors get a gradient and no optimizer steps them: 2.weight"
    assert any(told in text for text in record["assumed"])


def test_choices_read_by_the_backward_pass_are_told_so() -> None:
    class Routed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.out = torch.nn.Linear(16, 2), torch.nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            result, chosen = x.new_zeros(8, 4), self.gate(x).argmax(-1) == 1
            result[chosen] = self.out(x[chosen])
            return result + self.gate(x).mean()

    lines = " ".join(captured(Routed())["assumed"])
    assert "the backward pass (shape" in lines


def test_each_gradient_is_kept_by_one_op() -> None:
    """Before PyTorch 2.10 a mode sees it twice."""
    record = captured(network())
    kept = [node for node in record["ops"]["node"] if node >= 0 and "AccumulateGrad" in record["nodes"][node]]
    assert len(kept) == record["param_tensors"]


def test_hooks_of_gradients_run() -> None:
    model = network()
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient.clamp(-1, 1))
    assert count(captured(model), "aten.clamp") == 4


def test_optimizers_that_step_within_the_backward_pass_free_gradients_there() -> None:
    model = network()
    own = {parameter: torch.optim.SGD([parameter], lr=0.1, momentum=0.9) for parameter in model.parameters()}

    def step(parameter: Any) -> None:
        own[parameter].step()
        own[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    record = captured(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    assert count(record, "aten._foreach_add_") == 2 * 4
    assert "u" not in record["ops"]["phase"].rstrip("u")
    assert all(parameter.grad is None for parameter in model.parameters()) and "unused" not in record


def test_batches_of_other_types() -> None:
    model = network()

    @dataclasses.dataclass
    class Samples:
        images: Any
        labels: Any

    batches = [Samples(*batch()), collections.UserDict(images=batch()[0], labels=batch()[1])]

    def loss(model: Any, given: Any) -> Any:
        pair = (given.images, given.labels) if isinstance(given, Samples) else (given["images"], given["labels"])
        return cross_entropy(model, pair)

    for given in batches:
        record = capture(model, torch.optim.Adam(model.parameters()), given, loss, backend="generic")
        assert record["roots"]["kind"].count("i") == 2
        assert ops(record) == ops(captured(model))


def test_sparse_gradients_are_refused() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4, sparse=True), torch.nn.Flatten(), torch.nn.Linear(8, 4))
    tokens = torch.zeros(8, 2, dtype=torch.long), torch.zeros(8, dtype=torch.long)
    with pytest.raises(CaptureError, match="a sparse tensor"):
        capture(model, torch.optim.SGD(model.parameters(), lr=0.1), tokens, backend="generic")


def test_stand_ins_are_on_the_gpu_of_the_model() -> None:
    def on(*devices: str) -> Any:
        return SimpleNamespace(parameters=lambda: [SimpleNamespace(device=torch.device(name)) for name in devices])

    assert _gpu_of(on("cpu", "cuda:3")) == torch.device("cuda:3")
    assert _gpu_of(on("cpu", "meta")) == _gpu_of(on()) == torch.device("cuda:0")
