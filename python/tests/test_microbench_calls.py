"""Calls of ops made from plain data, on this machine's PyTorch without a GPU.

Every op of every grid is bound to its schema and called: on CPU with small tensors, or, where there is only a CUDA
kernel, on meta tensors.
"""

from __future__ import annotations

import types
from collections import defaultdict
from typing import Any, Dict, Iterator, List, Tuple

import needs_torch  # noqa: F401  (skips first)
import pytest

torch = pytest.importorskip("torch")

from forerun import op_timing  # noqa: E402
from forerun.grids import plan  # noqa: E402
from forerun.grids.sampling import Sample, TensorSpec  # noqa: E402
from forerun.op_binding import BindingError, bind, find_op  # noqa: E402
from forerun.op_calls import describe, flatten, make_call, own_storages  # noqa: E402
from forerun.op_measurement import DeviceOutOfMemory  # noqa: E402
from forerun.op_timing import split_at_marks  # noqa: E402
from forerun.tensor_pool import PoolTooSmall, TensorPool  # noqa: E402

CPU = torch.device("cpu")
# No kernel on CPU, or not for all dtypes that CUDA has.
ONLY_CUDA = ("_cudnn_rnn", "cudnn_batch_norm", "_scaled_dot_product", "_fused_rms_norm_backward")
NO_META = ("aten._cudnn_rnn_backward", "aten._fused_sgd_")
# What CPU kernels say where CUDA's take other dtypes.
CPU_DIFFERS = ("expected scalar type", "not implemented for")
SMALL = 4 << 20


def _cases() -> List[Tuple[str, List[Sample]]]:
    by_op: Dict[str, List[Sample]] = defaultdict(list)
    for sample in plan(seed=1, scale=0.06):
        by_op[sample.op].append(sample)
    return sorted(by_op.items())


CASES = _cases()


def small_ones(samples: List[Sample]) -> List[Sample]:
    """The cheapest of the samples that a CPU can run."""
    found = [sample for sample in samples
             if sum(spec.bytes() for spec in sample.inputs if spec is not None) <= SMALL and sample.cost_us < 100]
    return sorted(found, key=lambda sample: sample.cost_us)[:12]


@pytest.fixture(scope="module")
def pool() -> TensorPool:
    return TensorPool(CPU, 16 * SMALL)


@pytest.fixture(scope="module")
def meta_pool() -> TensorPool:
    return TensorPool(torch.device("meta"), 4 << 30)


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def is_there(op: str) -> bool:
    try:
        find_op(op)
        return True
    except BindingError:
        return False


@pytest.mark.parametrize("op, samples", CASES, ids=[op for op, _ in CASES])
def test_every_op_of_the_grids_can_be_called(op: str, samples: List[Sample], pool: TensorPool,
                                             meta_pool: TensorPool) -> None:
    if not is_there(op):
        pytest.skip(f"PyTorch {torch.__version__} has no {op}")
    for sample in samples[:40]:
        bind(sample, CPU)
        if not op.startswith(NO_META) and not sample.attributes.get("dropout"):
            call = make_call(sample, meta_pool)
            call()
            assert len(call.inputs()) == len(sample.inputs)
    if any(name in op for name in ONLY_CUDA):
        return
    for sample in small_ones(samples):
        call = make_call(sample, pool)
        call.vary(3, 50 << 20)
        try:
            made = [call(place) for place in range(3)]
        except RuntimeError as error:
            assert any(words in str(error) for words in CPU_DIFFERS), sample
            continue
        shown = call.inputs()
        for given, asked in zip(shown, sample.inputs):
            assert given is None if asked is None else given is not None and given[0] == asked.dtype
        assert all(describe(one) == describe(other) for one, other in zip(flatten(made[0]), flatten(made[2])))


def test_convolutions_of_the_grid_give_the_output_they_expect(meta_pool: TensorPool) -> None:
    """The gradient's first input has the shape of the forward's output."""
    found = plan(grids=["conv"], scale=0.01)
    outputs = {}
    for sample in found:
        if sample.op == "aten.convolution.default":
            key = (sample.inputs[0], sample.inputs[1], str(sorted(sample.attributes.items())))
            outputs[key] = tuple(make_call(sample, meta_pool)().shape)
    compared = 0
    for sample in found:
        if sample.op == "aten.convolution_backward.default":
            attributes = {name: value for name, value in sample.attributes.items()
                          if name not in ("bias_sizes", "output_mask")}
            key = (sample.inputs[1], sample.inputs[2], str(sorted(attributes.items())))
            if key in outputs:
                assert sample.inputs[0] is not None and sample.inputs[0].shape == outputs[key]
                compared += 1
    assert compared > 50


def spec(dtype: str, *shape: int) -> TensorSpec:
    return TensorSpec(dtype, shape)


def names_with_tensors(sample: Sample) -> Dict[str, int]:
    """How many tensors each argument got."""
    return {argument.name: sum(one is not None for one in argument.specs) for argument in bind(sample, CPU).arguments
            if argument.specs is not None}


def test_inputs_of_run_records_bind_without_nulls() -> None:
    state = spec("float32", 1, 135, 650)
    weights = (spec("float32", 2600, 256), spec("float32", 2600, 650), spec("float32", 2600), spec("float32", 2600))
    shared = {"weight_stride0": 4, "hidden_size": 650, "proj_size": 0, "num_layers": 1, "batch_first": True,
              "dropout": 0.0, "train": True, "bidirectional": False}
    lstm = Sample("", "aten._cudnn_rnn.default", (spec("float32", 135, 64, 256),) + weights
                  + (spec("float32", 2360800), state, state), {"mode": 2, **shared})
    assert names_with_tensors(lstm) == {"input": 1, "weight": 4, "weight_buf": 1, "hx": 1, "cx": 1, "dropout_state": 0}
    gru = Sample("", "aten._cudnn_rnn.default", lstm.inputs[:-1], {"mode": 3, **shared})
    assert names_with_tensors(gru)["cx"] == 0 and names_with_tensors(gru)["hx"] == 1
    output, reserve = spec("float32", 135, 64, 650), spec("uint8", 112320256)
    backward = Sample("", "aten._cudnn_rnn_backward.default", lstm.inputs + (output, output, reserve),
                      {"mode": 2, **shared, "output_mask": [True, False, False, True]})
    got = names_with_tensors(backward)
    assert (got["output"], got["grad_output"], got["grad_hy"], got["grad_cy"], got["dropout_state"], got["reserve"]) \
        == (1, 1, 0, 0, 0, 1)

    four = (spec("bfloat16", 7, 16, 32, 64),) * 4
    seeds = (spec("int64"), spec("int64"))
    attention = Sample("", "aten._scaled_dot_product_cudnn_attention_backward.default",
                       four + (four[0], spec("float32", 7, 16, 32, 1)) + seeds,
                       {"max_q": 32, "max_k": 32, "dropout_p": 0.1, "is_causal": False})
    got = names_with_tensors(attention)
    assert got["philox_seed"] == 1 and got["philox_offset"] == 1 and got["attn_bias"] == 0 and got["cum_seq_q"] == 0

    conv = Sample("", "aten.convolution.default", (spec("float32", 2, 3, 8, 8), spec("float32", 4, 3, 3, 3)),
                  {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": False,
                   "output_padding": [0, 0], "groups": 1})
    assert names_with_tensors(conv) == {"input": 1, "weight": 1, "bias": 0}


def test_lists_of_fused_optimizers_share_the_tensors(pool: TensorPool) -> None:
    parameters = (spec("float32", 8, 4), spec("float32", 8))
    steps = (spec("float32"),) * 2
    attributes = {"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-08, "amsgrad": False,
                  "maximize": False}
    for nulls in ((), (None, None)):
        sample = Sample("", "aten._fused_adam_.default", parameters * 4 + steps + nulls, attributes)
        assert names_with_tensors(sample) == {"self": 2, "grads": 2, "exp_avgs": 2, "exp_avg_sqs": 2,
                                              "max_exp_avg_sqs": 0, "state_steps": 2, "grad_scale": 0, "found_inf": 0}
        make_call(sample, pool)()
    plain = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.01, "dampening": 0.0, "nesterov": False, "maximize": False,
             "is_first_step": False}
    for nulls in ((), (None, None)):
        sgd = Sample("", "aten._fused_sgd_.default", parameters * 2 + nulls, plain)
        assert names_with_tensors(sgd)["grads"] == 2 and names_with_tensors(sgd)["momentum_buffer_list"] == 0


def test_numbers_stand_in_for_tensors_and_names_for_dtypes(pool: TensorPool) -> None:
    halved = make_call(Sample("", "aten.mul.Tensor", (spec("float32", 4),), {"other": 0.5}), pool)
    assert halved().shape == (4,)
    cast = make_call(Sample("", "aten._to_copy.default", (spec("float32", 2, 3, 4, 4),),
                            {"dtype": "bfloat16", "memory_format": "channels_last"}), pool)
    assert describe(cast()) == ["bfloat16", [2, 3, 4, 4], [48, 1, 12, 3]]
    zeros = make_call(Sample("", "aten.zeros.default", (), {"size": [2, 3], "dtype": "float16"}), pool)
    assert describe(zeros()) == ["float16", [2, 3], None]


@pytest.mark.parametrize("sample, problem", [
    (Sample("", "aten.no_such_op.default", ()), "no op aten.no_such_op.default"),
    (Sample("", "aten.mm.default", (spec("float32", 2, 2),) * 3), "takes fewer tensors than 3"),
    (Sample("", "aten.mm.default", (spec("float32", 2, 2),)), "1 tensors are missing, 0 may be"),
    (Sample("", "aten.relu.default", (spec("float32", 2),), {"slope": 1}), "has no argument slope"),
    (Sample("", "aten.gather.default", (spec("float32", 2), spec("int64", 2))), "needs dim"),
    (Sample("", "aten._foreach_add_.List", (spec("float32", 2),) * 3), "3 tensors do not fit 2 lists"),
])
def test_what_does_not_fit_the_schema_is_refused(sample: Sample, problem: str) -> None:
    with pytest.raises(BindingError, match=problem):
        bind(sample, CPU)


def test_inputs_move_but_for_the_one_just_written(pool: TensorPool) -> None:
    call = make_call(Sample("", "aten.convolution_backward.default",
                            (spec("float32", 2, 4, 8, 8), spec("float32", 2, 3, 8, 8), spec("float32", 4, 3, 3, 3)),
                            {"bias_sizes": [0], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1],
                             "transposed": False, "output_padding": [0, 0], "groups": 1,
                             "output_mask": [True, True, False]}), pool)
    call.vary(3, 50 << 20)
    places = [[tensor.data_ptr() for tensor in variant[0][:3]] for variant in call._variants]
    assert len({place[0] for place in places}) == 1
    assert len({place[1] for place in places}) == 3 and len({place[2] for place in places}) == 3
    call.forget_variants()
    large = make_call(Sample("", "aten.mul.Tensor", (spec("float32", 1 << 18),) * 2), pool)
    large.vary(3, 1 << 16)
    assert len(large._variants) == 1


def test_indices_stay_within_bounds(pool: TensorPool) -> None:
    for sample in (Sample("", "aten.embedding.default", (spec("float32", 3, 8), spec("int64", 500))),
                   Sample("", "aten.index_put.default", (spec("float32", 3, 8), spec("int64", 500),
                                                         spec("float32", 500, 8)), {"accumulate": True}),
                   Sample("", "aten.gather.default", (spec("float32", 4, 3), spec("int64", 4, 500)), {"dim": 1}),
                   Sample("", "aten.nll_loss_forward.default", (spec("float32", 500, 3), spec("int64", 500), None),
                          {"reduction": 1, "ignore_index": -100})):
        call = make_call(sample, pool)
        call()
        indices = [tensor for tensor in flatten(tuple(call._fixed.values())) if tensor is not None][0]
        assert int(indices.min()) == 0 and int(indices.max()) == 2


def test_what_is_written_to_is_renewed_and_what_is_read_is_not(pool: TensorPool) -> None:
    sample = Sample("", "aten.zero_.default", (spec("float32", 1000),))
    call = make_call(sample, pool)
    view = call()
    assert float(view.abs().sum()) == 0
    pool.refresh()
    assert float(view.std()) > 0.5
    with pytest.raises(PoolTooSmall):
        pool.tensor(spec("float32", 1 << 30))


# -- the timer itself, with a stand-in for torch.cuda ------------------------------------------------------------------


class FakeEvent:
    """Events a microsecond apart each, so that times are known."""

    clock = 0.0

    def __init__(self, enable_timing: bool) -> None:
        self.at = 0.0

    def record(self) -> None:
        FakeEvent.clock += 0.001
        self.at = FakeEvent.clock

    def elapsed_time(self, other: FakeEvent) -> float:
        return other.at - self.at

    def query(self) -> bool:
        return False

    def synchronize(self) -> None:
        pass


class FakeProfile:
    """Shows a kernel named after each op, between marks."""

    events: List[Any] = []

    def __init__(self, **_: Any) -> None:
        self.kineto_results = types.SimpleNamespace(events=lambda: FakeProfile.events)

    def __enter__(self) -> None:
        FakeProfile.events = []

    def __exit__(self, *_: Any) -> None:
        pass

    @staticmethod
    def add(name: str) -> None:
        start = len(FakeProfile.events)
        FakeProfile.events.append(types.SimpleNamespace(
            name=lambda: name, device_type=lambda: "DeviceType.CUDA", start_ns=lambda: start, duration_ns=lambda: 1500))


@pytest.fixture()
def timer(monkeypatch: pytest.MonkeyPatch) -> Any:
    stats = {"requested_bytes": {"all": {"current": 100, "peak": 100 + 4096}}}
    properties = types.SimpleNamespace(L2_cache_size=1 << 20, total_memory=24 * SMALL)
    for name, value in {
            "is_available": lambda: True, "set_device": lambda device: None, "init": lambda: None,
            "get_device_properties": lambda device: properties, "synchronize": lambda: None,
            "empty_cache": lambda: None, "Event": FakeEvent, "memory_stats_as_nested_dict": lambda device: stats,
            "_sleep": lambda cycles: FakeProfile.add("at::cuda::spin_kernel(long)"),
            "reset_peak_memory_stats": lambda device: None}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.autograd.profiler, "profile", FakeProfile)
    monkeypatch.setattr(op_timing.CudaOpTimer, "_wake", lambda self: None)
    monkeypatch.setattr(op_timing, "_REPEATS", (3, 3))
    before = torch.get_float32_matmul_precision()
    yield op_timing.CudaOpTimer("cpu")
    torch.set_float32_matmul_precision(before)


def test_a_measurement_has_times_outputs_and_workspace(timer: Any) -> None:
    product = Sample("gemm", "aten.mm.default", (spec("float32", 16, 8), spec("float32", 8, 32)), {}, "tf32")
    made = timer.measure(product)
    assert torch.get_float32_matmul_precision() == "high"
    assert made.outputs == [["float32", [16, 32], None]]
    assert made.workspace == 4096 - 16 * 32 * 4
    assert made.us == pytest.approx(0.0, abs=1e-6)  # an event apart, less an event
    in_place = timer.measure(Sample("", "aten.relu_.default", (spec("float32", 8),)))
    assert in_place.workspace == 4096 and torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(DeviceOutOfMemory):
        timer.measure(Sample("", "aten.relu.default", (spec("float32", 1 << 30),)))
    assert timer.recover()


def test_a_profile_gives_each_call_its_kernels(timer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [timer.measure(Sample("", f"aten.{op}.default", (spec("float32", 8),))) for op in ("relu", "exp", "tanh")]
    for one in made:
        call = one.replay[0]
        monkeypatch.setattr(call.binding, "op", lambda *_, name=str(call.binding.op): FakeProfile.add(name))
    assert timer.profile([one.replay for one in made]) == [
        [("aten.relu.default", 1.5)], [("aten.exp.default", 1.5)], [("aten.tanh.default", 1.5)]]


def test_kernels_without_all_marks_are_nobodys() -> None:
    mark = "at::cuda::(anonymous namespace)::spin_kernel(long)"
    events = [(30, mark, 1.0), (10, mark, 1.0), (20, "gemm", 5.0), (21, "Memset (Device)", 0.5), (40, mark, 1.0)]
    assert split_at_marks(events, 2) == [[("gemm", 5.0), ("Memset (Device)", 0.5)], []]
    assert split_at_marks(events, 3) is None
    assert split_at_marks([], 1) is None


def test_long_lists_of_kernels_are_put_together_by_name() -> None:
    events = [(0, "spin_kernel", 1.0)] + [(1 + place, f"kernel {place % 2}", 2.0) for place in range(100)]
    events.append((200, "spin_kernel", 1.0))
    assert split_at_marks(events, 1) == [[("kernel 0", 100.0, 50), ("kernel 1", 100.0, 50)]]


def test_storages_are_counted_once_and_not_if_they_are_the_pools(pool: TensorPool) -> None:
    own = torch.empty(1000)
    assert sum(own_storages([own, own[:10], pool.tensor(spec("float32", 100)), None], pool).values()) == 4000
