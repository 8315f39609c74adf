"""What a capture makes of values that the program reads: computed, assumed and said, or refused."""
import random
from typing import Any, Callable, Dict, List

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun.capture import capture  # noqa: E402
from forerun.host_values import CaptureError  # noqa: E402

Json = Dict[str, Any]


class Forward(torch.nn.Module):
    """A linear layer, and a function that is given it and the input."""

    def __init__(self, forward: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self._forward = forward

    def forward(self, x: Any) -> Any:
        return self._forward(self, x)


def captured(model: Any, batch: Any = None, **options: Any) -> Json:
    given = batch if batch is not None else (torch.ones(6, 4), torch.zeros(6, dtype=torch.long))
    return capture(model, torch.optim.SGD(model.parameters(), lr=0.1), given, backend="generic", **options)


def count(record: Json, name: str) -> int:
    names = [record["op_names"][index] for index in record["ops"]["name"]]
    return sum(name in one for one in names)


class Dropped(torch.nn.Module):
    """Twelve layers, each passed over in half of the iterations."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(12))
        self.last = torch.nn.Linear(4, 4)
        self._draw = draw

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            if not self._draw() < 0.5:
                x = layer(x)
        return self.last(x)


@pytest.mark.parametrize(
    "draw", [lambda: torch.rand([]), lambda: torch.rand(1).item(), lambda: torch.empty(1).uniform_(), random.random]
)
def test_layer_drop_records_the_median_draw_and_warns(draw: Callable[[], Any]) -> None:
    record = captured(Dropped(draw))
    layers = count(record, "aten.addmm.default") - 1
    assert 4 <= layers <= 8
    drawn = record["random"]
    assert drawn["draws"] == 9 and list(drawn["lines"].values()) == [0 if draw is random.random else 12]
    assert drawn["ops"]["least"] < drawn["ops"]["recorded"] < drawn["ops"]["most"]
    assert drawn["modules_skipped"] == 12 - layers
    where = "Python's random" if draw is random.random else "test_capture_values.py:"
    assert len(record["warnings"]) == 1 and where in record["warnings"][0]
    assert "unused" not in record  # another draw calls them
    again = captured(Dropped(draw))
    assert again["ops"] == {**record["ops"], "sequence": again["ops"]["sequence"]}


def test_the_programs_own_random_numbers_go_on_as_before() -> None:
    model, batch = Dropped(lambda: torch.rand([]) + random.random()), (torch.ones(6, 4), torch.zeros(6).long())
    torch.manual_seed(3)
    random.seed(3)
    expected = torch.rand(1).item(), random.random()
    torch.manual_seed(3)
    random.seed(3)
    captured(model, batch)
    assert (torch.rand(1).item(), random.random()) == expected


def test_random_numbers_that_nothing_depends_on_are_no_matter() -> None:
    record = captured(Forward(lambda m, x: m.linear(x) * torch.rand(4)))
    assert "random" not in record and "warnings" not in record and "assumed" not in record


def test_configuration_in_tensors_is_computed_and_not_mentioned() -> None:
    def forward(model: Any, x: Any) -> Any:
        for _ in range(torch.tensor([1, 2, 3]).sum().item()):
            x = model.linear(x)
        return x

    record = captured(Forward(forward))
    assert count(record, "aten.addmm.default") == 6 and "assumed" not in record


def test_values_of_the_batch_are_those_that_were_given() -> None:
    def forward(model: Any, x: Any) -> Any:
        kept = x[x.sum(1) > 3]  # all rows but the first
        return model.linear(kept).sum(0, keepdim=True).expand(6, 4)

    x = torch.ones(6, 4)
    x[0] = 0
    record = captured(Forward(forward), (x, torch.zeros(6, dtype=torch.long)))
    assert [5, 4] in record["shapes"]
    assert len(record["assumed"]) == 1 and "shape [5, 4]" in record["assumed"][0]


def test_a_branch_on_what_only_a_run_computes_is_tried_both_ways() -> None:
    def forward(model: Any, x: Any) -> Any:
        x = model.linear(x)
        if x.max() > 5:
            for _ in range(20):
                x = model.linear(x)
        return x

    record = captured(Forward(forward))
    assert len(record["warnings"]) == 1 and "another value gives" in record["warnings"][0]
    assert "test_capture_values.py:" in record["warnings"][0] and "assumed" not in record


def test_an_outcome_that_raises_or_changes_nothing_is_no_warning() -> None:
    def guarded(model: Any, x: Any) -> Any:
        x = model.linear(x)
        if torch.isnan(x).any():
            raise FloatingPointError("not a number")
        return x

    def logged(model: Any, x: Any) -> Any:
        x = model.linear(x)
        print(end=str(x.mean().item())[:0])
        return x

    guard, log = captured(Forward(guarded)), captured(Forward(logged))
    assert "warnings" not in guard and "another raises FloatingPointError" in guard["assumed"][0]
    assert "warnings" not in log and "the same ops" in log["assumed"][0]


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: m.linear(x)[: int((m.linear(x) > 0).sum())].sum(0, keepdim=True).expand(6, 4),
        lambda m, x: m.linear(x)[m.linear(x).sum(1) > 0].sum(0, keepdim=True).expand(6, 4),
        lambda m, x: m.linear(x) + torch.nonzero(m.linear(x)).sum(),
    ],
)
def test_shapes_that_only_a_run_computes_are_refused_with_the_line(forward: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(CaptureError, match=r"test_capture_values\.py:\d+: "):
        captured(Forward(forward))


def test_experts_are_chosen_evenly() -> None:
    class Experts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = torch.nn.Linear(4, 3)
            self.experts = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

        def forward(self, x: Any) -> Any:
            chosen = self.router(x).argmax(-1)
            out = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                rows = torch.where(chosen == number)[0]
                out = out.index_add(0, rows, expert(x[rows]))
            return out + self.router(x).mean()

    record = captured(Experts())
    ops = record["ops"]
    rows: List[int] = []
    for index, name in enumerate(ops["name"]):
        if record["op_names"][name] == "aten.addmm.default" and ops["phase"][index] == "f":
            rows.append(record["shapes"][record["tensors"]["shape"][ops["outputs"][index][0]]][0])
    assert sorted(rows) == [2, 2, 2, 6, 6]
    assert "taken to be even" in record["assumed"][0] and "warnings" not in record


def test_arrays_are_read_at_once_and_refused_where_only_a_run_computes_them() -> None:
    def known(model: Any, x: Any) -> Any:
        for _ in range(int(x.numpy().sum()) // 8 + len(x[0].tolist())):
            x = model.linear(x)
        return x

    record = captured(Forward(known))
    assert count(record, "aten.addmm.default") == 3 + 4 and count(record, "aten._local_scalar_dense") == 2
    with pytest.raises(CaptureError, match=r"test_capture_values\.py:\d+: an array"):
        captured(Forward(lambda model, x: x + model.linear(x).detach().numpy().sum()))
    assert torch.ones(2).numpy().tolist() == [1, 1]


def test_unused_parts_are_counted_and_much_of_them_is_a_warning() -> None:
    class Partly(torch.nn.Module):
        def __init__(self, spare: int) -> None:
            super().__init__()
            self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4)])  # never called itself
            self.functional = torch.nn.Linear(4, 4)
            self.frozen = torch.nn.Linear(4, 4).requires_grad_(False)
            self.spare = torch.nn.Linear(4, spare)
            self.table = torch.nn.Embedding(1000, 4)

        def forward(self, x: Any) -> Any:
            x = torch.nn.functional.linear(self.blocks[0](x), self.functional.weight, self.functional.bias)
            return self.frozen(x) + self.table.weight.mean()

    little = captured(Partly(1))
    assert little["unused"] == {
        "parameters": 5,
        "of_parameters": 3 * 20 + 5 + 4000,
        "modules": 1,
        "of_modules": 5,
        "names": ["spare"],
    }
    assert "20.0%" in little["warnings"][0]  # of the modules
    much = captured(Partly(1000))
    assert much["unused"]["parameters"] == 5000 and "spare" in much["warnings"][0]
    whole = captured(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4)))
    assert "unused" not in whole and "warnings" not in whole
