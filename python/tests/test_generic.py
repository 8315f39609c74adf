"""Dispatch on the CPU as CUDA's would be: which ops are recorded, in which types, with which layouts."""

from typing import Any, Dict, List, Tuple

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun import cuda_autocast  # noqa: E402
from forerun import torch_version  # noqa: E402
from forerun.capture import capture  # noqa: E402
from forerun.cuda_fakes import complete_fakes  # noqa: E402

Json = Dict[str, Any]
VERSION = torch_version.installed()
needs_groups = pytest.mark.skipif(VERSION < (2, 5), reason="attention with groups of heads came with PyTorch 2.5")


def record_of(model: Any, batch: Any, **options: Any) -> Json:
    return capture(model, torch.optim.SGD(model.parameters(), lr=0.1), batch, backend="generic", **options)


def find(record: Json, name: str, phase: str = "fbu") -> List[int]:
    ops = record["ops"]
    return [
        i for i in range(len(ops["name"])) if record["op_names"][ops["name"][i]] == name and ops["phase"][i] in phase
    ]


def attributes(record: Json, op: int) -> Json:
    found: Json = record["attributes"][record["ops"]["attributes"][op]]
    return found


def tensor(record: Json, index: int) -> Tuple[int, str, List[int], List[int]]:
    """Storage, type, shape and strides ([]: contiguous)."""
    columns, shapes = record["tensors"], record["shapes"]
    strides = columns["strides"][index]
    return (
        columns["storage"][index],
        record["dtypes"][columns["dtype"][index]],
        shapes[columns["shape"][index]],
        [] if strides < 0 else shapes[strides],
    )


class Tagger(torch.nn.Module):
    """Classes from the last hidden state of a recurrent layer, or from all outputs."""

    def __init__(self, kind: str, last_state: bool) -> None:
        super().__init__()
        self.rnn = getattr(torch.nn, kind)(8, 16, 2, batch_first=True)
        self.out = torch.nn.Linear(16, 4)
        self.last_state = last_state

    def forward(self, x: Any) -> Any:
        y, state = self.rnn(x)
        if self.last_state:
            return self.out(state[0][-1] if isinstance(state, tuple) else state[-1])
        return self.out(y)


class Attention(torch.nn.Module):
    def __init__(self, key_heads: int = 4, mask: bool = False) -> None:
        super().__init__()
        self.projection = torch.nn.Linear(32, 32 + 16 * key_heads)
        self.bias = torch.nn.Parameter(torch.zeros(1, 4, 6, 6)) if mask else None
        self.key_heads = key_heads

    def forward(self, x: Any) -> Any:
        parts = self.projection(x).split([32, 8 * self.key_heads, 8 * self.key_heads], -1)
        query, key, value = (part.unflatten(-1, (-1, 8)).transpose(1, 2) for part in parts)
        gqa = {"enable_gqa": True} if self.key_heads != 4 else {}
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, self.bias, **gqa)
        return mixed.transpose(1, 2).flatten(2)


SEQUENCE = (6, 8)


def attention_record(**options: Any) -> Json:
    model = Attention(options.pop("key_heads", 4), options.pop("mask", False))
    return record_of(model, (torch.randn(2, 6, 32), torch.randint(32, (2, 6))), **options)


def test_every_op_that_cudas_autocast_lists_has_a_rule() -> None:
    known = {*cuda_autocast._LOWER, *cuda_autocast._FLOAT32, *cuda_autocast._FLOAT32_RESULT, *cuda_autocast._WIDEST}
    inner = {"_convolution.deprecated", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "cudnn_convolution"}
    inner |= {"cudnn_convolution_transpose", "_scaled_dot_product_flash_attention", "binary_cross_entropy"}
    listed = {name for name in cuda_autocast._names_under("AutocastCUDA") if "name" not in name.lower()} - inner
    assert len(listed) > 80
    assert listed - known <= {"linalg_matrix_sqrth"}


def test_what_only_the_cpu_casts_is_left_alone() -> None:
    class Pools(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv3d(1, 4, 3)

        def forward(self, x: Any) -> Any:
            y = torch.nn.functional.avg_pool3d(self.conv(x), 2)
            return torch.cat([y, y], 1).mean((2, 3, 4))

    record = record_of(Pools(), (torch.randn(2, 1, 6, 6, 6), torch.randint(8, (2,))), autocast="bf16")
    for name in ("aten.avg_pool3d.default", "aten.cat.default"):
        assert tensor(record, record["ops"]["outputs"][find(record, name, "f")[0]][0])[1] == "bfloat16"


def test_weights_of_a_recurrent_layer_lie_in_one_buffer() -> None:
    record = record_of(Tagger("LSTM", False), (torch.randn(2, *SEQUENCE), torch.randint(4, (2, 6))))
    weights = record["ops"]["inputs"][find(record, "forerun.rnn.default")[0]][3:]
    storages = {tensor(record, index)[0] for index in weights}
    assert len(weights) == 8 and len(storages) == 1
    root = record["roots"]["storage"].index(storages.pop())
    assert record["roots"]["kind"][root] == "p"
    gradients = record["ops"]["outputs"][find(record, "forerun.rnn_backward.default")[0]][3:]
    assert len({tensor(record, index)[0] for index in gradients}) == 1


@pytest.mark.parametrize("kind, given", [("LSTM", [False, True, False]), ("GRU", [False, True])])
def test_gradients_flow_through_the_last_state(kind: str, given: List[bool]) -> None:
    record = record_of(Tagger(kind, True), (torch.randn(2, *SEQUENCE), torch.randint(4, (2,))))
    backward = find(record, "forerun.rnn_backward.default")
    assert len(backward) == 1 and attributes(record, backward[0])["given"] == given


def test_autocast_copies_recurrent_weights_to_float16() -> None:
    record = record_of(Tagger("LSTM", False), (torch.randn(2, *SEQUENCE), torch.randint(4, (2, 6))), autocast="bf16")
    op = find(record, "forerun.rnn.default")[0]
    assert {tensor(record, index)[1] for index in record["ops"]["inputs"][op]} == {"float16"}
    assert len(find(record, "aten.copy_.default", "f")) == len(find(record, "aten.set_.source_Storage_storage_offset"))
    buffer = tensor(record, record["ops"]["inputs"][op][3])[0]
    freed = dict(zip(record["frees"]["storage"], record["frees"]["op"]))
    assert freed[buffer] == find(record, "forerun.rnn_backward.default")[0] + 1
    for index in find(record, "aten.set_.source_Storage_storage_offset"):  # what it lets go of dies behind it
        assert freed[tensor(record, record["ops"]["inputs"][index][0])[0]] > index


def test_attention_writes_as_the_kernel_of_its_type_does() -> None:
    strides = {}
    for precision in (None, "bf16"):
        record = attention_record(autocast=precision)
        op = find(record, "forerun.attention.default")[0]
        strides[precision] = tensor(record, record["ops"]["outputs"][op][0])
        assert len(record["ops"]["outputs"][find(record, "forerun.attention_backward.default")[0]]) == 3
    assert strides[None][1:] == ("float32", [2, 4, 6, 8], [192, 8, 32, 1])
    assert strides["bf16"][1:] == ("bfloat16", [2, 4, 6, 8], [192, 8, 32, 1])


@needs_groups
def test_attention_that_no_kernel_takes_is_composed() -> None:
    record = attention_record(key_heads=2)
    assert not find(record, "forerun.attention.default") and len(find(record, "aten.bmm.default", "f")) == 2
    assert find(attention_record(key_heads=2, autocast="bf16"), "forerun.attention.default")


def test_views_of_views_that_are_written_into_are_recorded_once() -> None:
    class Corner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            whole = x.new_zeros(2, 4, 8)
            whole.transpose(0, 1).narrow(2, 1, 2).select(1, 1).copy_(self.linear(x))
            return whole[1]

    record = record_of(Corner(), (torch.randn(4, 8), torch.randint(8, (4,))))
    assert len(find(record, "aten.transpose.int", "f")) == len(find(record, "aten.slice.Tensor", "f")) == 1
    assert [attributes(record, op)["size"] for op in find(record, "aten.as_strided.default", "b")] == [[4, 2]]


@needs_groups
def test_attention_to_scattered_heads_is_composed() -> None:
    class Scattered(Attention):
        def forward(self, x: Any) -> Any:
            parts = self.projection(x)[..., :32].reshape(2, 4, 8, 6)
            heads = parts.transpose(-1, -2)  # the features of a head do not lie together
            return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).reshape(2, 6, 32)

    record = record_of(Scattered(), (torch.randn(2, 6, 32), torch.randint(32, (2, 6))))
    assert not find(record, "forerun.attention.default") and len(find(record, "aten.bmm.default", "f")) == 2


def test_masks_of_booleans_become_numbers_for_composed_attention_too() -> None:
    class Masked(Attention):
        def forward(self, x: Any) -> Any:
            self.bias = torch.ones(6, 6, dtype=torch.bool)
            return super().forward(x)

    record = record_of(Masked(key_heads=2), (torch.randn(2, 6, 32), torch.randint(32, (2, 6))))
    softmax = find(record, "aten._safe_softmax.default")[0]
    scores = [op for op in find(record, "aten.add.Tensor", "f") if op < softmax][-1]
    assert [tensor(record, operand)[1] for operand in record["ops"]["inputs"][scores]] == ["float32", "float32"]
    assert len(find(record, "aten.where.self", "f")) == 1


def test_writes_into_slices_are_recorded_as_tensors_with_data_run_them() -> None:
    class Joined(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = torch.nn.Linear(8, 6), torch.nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            whole = x.new_empty(x.shape)
            whole[:, :6].copy_(self.left(x))
            whole[:, 6:].copy_(self.right(x))
            return whole

    record = record_of(Joined(), (torch.randn(4, 8), torch.randint(8, (4,))))
    # Autograd replays the views of tensors without data alone. Up to PyTorch 2.8 `:` is a view of its own.
    assert len(find(record, "aten.slice.Tensor", "f")) == (2 if VERSION > (2, 8) else 4)
    strided = find(record, "aten.as_strided.default", "b")
    assert [attributes(record, op)["storage_offset"] for op in strided] == [6, 0]
    assert not find(record, "aten.slice.Tensor", "b")


def test_a_learned_mask_gets_its_gradient() -> None:
    record = attention_record(mask=True, autocast="bf16")
    backward = find(record, "forerun.attention_backward.default")[0]
    assert attributes(record, backward)["mask_gradient"]
    assert len(record["ops"]["outputs"][backward]) == 4
    assert find(record, "aten.constant_pad_nd.default", "f")  # rows of 6 do not begin at multiples of 8


def test_norms_are_cudas() -> None:
    class Norms(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.group, self.rms = torch.nn.Conv2d(3, 8, 3), torch.nn.GroupNorm(2, 8), torch.nn.RMSNorm(8)

        def forward(self, x: Any) -> Any:
            return self.rms(self.group(self.conv(x)).mean((2, 3)))

    model = Norms().to(memory_format=torch.channels_last)
    batch = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last), torch.randint(8, (2,))
    record = record_of(model, batch)
    group = find(record, "aten.native_group_norm.default")[0]
    assert tensor(record, record["ops"]["inputs"][group][0])[3] == []  # made contiguous
    if hasattr(torch.ops.aten, "_fused_rms_norm_backward"):
        assert find(record, "aten._fused_rms_norm.default", "f") and find(
            record, "aten._fused_rms_norm_backward.default"
        )
        assert not find(record, "aten.pow.Tensor_Scalar")
    else:
        assert find(record, "aten.pow.Tensor_Scalar")  # CUDA composed it


def test_an_optimizer_works_on_all_tensors_at_once() -> None:
    model = torch.nn.Linear(4, 4)
    batch = torch.randn(2, 4), torch.randint(4, (2,))
    record = capture(model, torch.optim.AdamW(model.parameters()), batch, backend="generic")
    assert find(record, "aten._foreach_lerp_.Scalar", "u")


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_fake_of_cudnns_recurrent_layer_works_time_first(batch_first: bool) -> None:
    def meta(*shape: int) -> Any:
        return torch.empty(shape, device="meta")

    weights, flat = [meta(16, 8), meta(16, 4), meta(16), meta(16)], meta(16 * 14)
    x = meta(2, 5, 8) if batch_first else meta(5, 2, 8)
    options: Any = (2, 4, 0, 1, batch_first, 0.0, True, False, [], None)
    with complete_fakes():
        y, hidden, cell, reserve, buffer = torch.ops.aten._cudnn_rnn(
            x, weights, 4, flat, meta(1, 2, 4), meta(1, 2, 4), *options
        )
    assert y.shape == (*x.shape[:2], 4) and y.stride() == ((4, 8, 1) if batch_first else (8, 4, 1))
    assert hidden.shape == cell.shape == (1, 2, 4) and reserve.numel() == 0 and buffer.shape == flat.shape
