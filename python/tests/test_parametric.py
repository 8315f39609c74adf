"""Captures at several sizes: moved to another size they are what is captured there."""
import json
from typing import Any, Dict, List, Sequence

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun.capture import capture  # noqa: E402

Json = Dict[str, Any]


def attention_model() -> Any:
    class Attends(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.mix = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 24)
            self.out = torch.nn.Linear(8, 50)

        def forward(self, tokens: Any) -> Any:
            n, length = tokens.shape
            parts = self.mix(self.embed(tokens)).view(n, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
            scores = torch.softmax(parts[0] @ parts[1].transpose(-2, -1), -1)
            return self.out((scores @ parts[2]).transpose(1, 2).reshape(n, length, 8))

    return Attends()


def tokens(n: int, length: int) -> Any:
    torch.manual_seed(n)
    return torch.randint(50, (n, length)), torch.randint(50, (n, length))


def captured(model: Any, batch: Any, **options: Any) -> Json:
    return capture(model, torch.optim.AdamW(model.parameters()), batch, backend="generic", **options)


def value(record: Json, form: int, point: Sequence[int]) -> int:
    total = 0
    for coefficient, term in zip(record["parametric"]["forms"][form], record["parametric"]["terms"]):
        for size, power in zip(point, term):
            coefficient *= size**power
        total += coefficient
    return total


def moved(record: Json, point: Sequence[int]) -> Json:
    """The plain twin of what the program does (size_forms.cpp)."""
    record = json.loads(json.dumps(record))
    field = record["parametric"]
    for entry, place, form in zip(*(field["shapes"][key] for key in ("entry", "place", "form"))):
        record["shapes"][entry][place] = value(record, form, point)
    for table, column in ((record["storages"], "bytes"), (record["tensors"], "offset")):
        places = field["storages" if column == "bytes" else "offsets"]
        for entry, form in zip(places["entry"], places["form"]):
            table[column][entry] = value(record, form, point)
    for entry, form in zip(field["input"]["entry"], field["input"]["form"]):
        record["input"][entry] = value(record, form, point)
    for entry, parts in zip(field["attributes"]["entry"], field["attributes"]["text"]):
        text = "".join(part if isinstance(part, str) else str(value(record, part, point)) for part in parts)
        record["attributes"][entry] = json.loads(text)
    return record


def rows(record: Json) -> List[Any]:
    """Every op with its operands spelled out."""
    tensors, ops = record["tensors"], record["ops"]

    def operand(tensor: int) -> Any:
        shape = record["shapes"][tensors["shape"][tensor]]
        strides = tensors["strides"][tensor]
        step = 1
        contiguous: List[int] = []
        for extent in reversed(shape):
            contiguous.insert(0, step)
            step *= max(extent, 1)
        laid = record["shapes"][strides] if strides >= 0 else contiguous
        return tensors["storage"][tensor], record["dtypes"][tensors["dtype"][tensor]], shape, laid

    return [
        (
            record["op_names"][ops["name"][i]],
            record["attributes"][ops["attributes"][i]],
            [operand(tensor) for tensor in ops["inputs"][i] + ops["outputs"][i]],
        )
        for i in range(len(ops["name"]))
    ]


@pytest.mark.parametrize("options", [{}, {"precision": "amp_bf16"}, {"accumulate": 2, "clip_grad": 1.0}])
def test_a_moved_capture_is_the_one_at_that_batch(options: Json) -> None:
    model = attention_model()
    record = captured(model, tokens(4, 16), batch_sizes=(4, 6, 10), **options)
    assert "fixed" not in record["parametric"] and record["input"][1] == 4
    there, here = captured(model, tokens(7, 16), **options), moved(record, (7,))
    assert rows(here) == rows(there) and here["storages"] == there["storages"] and here["input"] == there["input"]


def test_batch_and_length_move_together() -> None:
    model = attention_model()
    record = captured(model, tokens(4, 16), batch_sizes=(4, 6, 10), lengths=(16, 24, 40))
    assert record["parametric"]["dimensions"] == ["batch", "length"]
    there, here = captured(model, tokens(3, 32)), moved(record, (3, 32))
    assert rows(here) == rows(there) and here["storages"] == there["storages"] and here["input"] == there["input"]


def test_a_capture_at_one_size_reads_as_before() -> None:
    model = attention_model()
    several, one = captured(model, tokens(4, 16), batch_sizes=(4, 6, 10)), captured(model, tokens(4, 16))
    assert rows(several) == rows(one) and several["storages"] == one["storages"]


def test_what_cannot_be_moved_names_the_op() -> None:
    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            for _ in range(x.shape[0] // 4):
                x = self.linear(x)
            return x + self.linear(x)[: x.shape[0] // 2 * 2].sum()

    model = Steps()
    batch = torch.randn(4, 4), torch.randint(4, (4,))
    record = captured(model, batch, batch_sizes=(4, 8, 12))
    assert record["parametric"]["fixed"] == "op 4, aten.slice.Tensor, is another one at size 4 and at 8"
    halves = captured(torch.nn.Sequential(torch.nn.Linear(4, 4), _Half()), batch, batch_sizes=(4, 5, 7))
    assert "aten.slice" in halves["parametric"]["fixed"] and "2 at 4, 2 at 5, 3 at 7" in halves["parametric"]["fixed"]


class _Half(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x + x[: x.shape[0] // 2].sum()


def test_sizes_are_checked() -> None:
    model = attention_model()
    with pytest.raises(ValueError, match="three different ones"):
        captured(model, tokens(4, 16), batch_sizes=(4, 6))
    with pytest.raises(ValueError, match="go with batch_sizes"):
        captured(model, tokens(4, 16), lengths=(8, 16, 24))
    with pytest.raises(ValueError, match="no common first dimension"):
        captured(model, (torch.randint(50, (4, 16)), torch.randint(50, (5, 16))), batch_sizes=(4, 6, 10))
