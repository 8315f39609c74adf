"""The shape grids: seeded, affordable, and mixed so that any first part of a plan covers all of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import List

import pytest

from forerun.grids import GRIDS, UnknownGrid, plan
from forerun.grids.conv import Convolution
from forerun.grids.rnn import MODES, weight_shapes
from forerun.grids.sampling import (ELEMENT_BYTES, MAX_BYTES, Draw, Sample, TensorSpec, channels_last, contiguous,
                                    image, permuted)


@pytest.fixture(scope="module")
def samples() -> List[Sample]:
    return plan(seed=3, scale=0.02)


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(samples: List[Sample]) -> None:
    assert [sample.id for sample in plan(seed=3, scale=0.02)] == [sample.id for sample in samples]
    other = {sample.id for sample in plan(seed=4, scale=0.02)}
    assert len(other & {sample.id for sample in samples}) < 0.1 * len(samples)


def test_the_whole_plan_has_what_the_data_set_needs() -> None:
    counts = {name: count for name, (_, count) in GRIDS.items()}
    assert sum(counts.values()) >= 75_000
    assert counts["conv"] >= 25_000 and counts["gemm"] >= 10_000 and counts["rnn"] >= 3_000


def test_samples_are_distinct_and_survive_json(samples: List[Sample]) -> None:
    assert len({sample.id for sample in samples}) == len(samples)
    for sample in samples:
        again = Sample.from_json(json.loads(json.dumps(sample.describe())), sample.grid)
        assert again.id == sample.id


def test_samples_are_affordable(samples: List[Sample]) -> None:
    for sample in samples:
        inputs = [spec for spec in sample.inputs if spec is not None]
        large = sample.grid.endswith("_large") or sample.grid == "set_ups"
        assert sum(spec.bytes() for spec in inputs) <= (4 if large else 1) * MAX_BYTES, sample
        assert 0 < sample.cost_us <= (40_000 if large else 6000), sample
        for spec in inputs:
            assert spec.dtype in ELEMENT_BYTES and all(extent >= 0 for extent in spec.shape), sample
    assert sum(sample.cost_us for sample in samples) / len(samples) < 500


def test_any_first_part_of_a_plan_has_all_grids_in_proportion(samples: List[Sample]) -> None:
    whole = Counter(sample.grid for sample in samples)
    assert set(whole) == set(GRIDS)
    part = Counter(sample.grid for sample in samples[:len(samples) // 3])
    for name, count in whole.items():
        assert abs(part[name] - count / 3) <= 2 + 0.02 * count, name


def test_only_the_grids_asked_for_are_planned_and_an_unknown_one_is_answered_with_those_there_are() -> None:
    assert {sample.grid for sample in plan(grids=["norm", "rnn"], scale=0.002)} == {"norm", "rnn"}
    with pytest.raises(UnknownGrid, match="no grid convs; there are conv, gemm"):
        plan(grids=["convs"])


def test_convolutions_come_in_every_precision_layout_and_pass() -> None:
    found = plan(grids=["conv"], scale=0.1)
    passes = Counter(json.dumps(sample.attributes.get("output_mask", "forward")) for sample in found)
    assert min(passes[mask] for mask in ('"forward"', "[true, false, false]", "[false, true, false]")) > 200
    weights = [spec for sample in found for spec in sample.inputs[-2:] if spec is not None and len(spec.shape) == 4]
    assert {spec.dtype for spec in weights} == {"float32", "bfloat16", "float16"}
    assert {spec.strides is None for spec in weights} == {True, False}
    groups = [sample.attributes["groups"] for sample in found]
    assert any(group == 1 for group in groups) and any(2 <= int(str(group)) <= 96 for group in groups)


def test_sizes_of_convolutions() -> None:
    assert Convolution(1, 3, (224, 224), 64, (7, 7), 2, (3, 3)).output_size() == (112, 112)
    assert Convolution(1, 64, (17, 17), 64, (1, 7), 1, (0, 3)).output_size() == (17, 17)
    up = Convolution(1, 64, (28, 28), 32, (3, 3), 2, (1, 1), transposed=True, output_padding=1)
    assert up.output_size() == (56, 56)
    assert Convolution(1, 64, (28, 28), 96, (3, 3), groups=32).weight_shape() == (96, 2, 3, 3)
    assert Convolution(1, 64, (28, 28), 96, (2, 2), transposed=True).weight_shape() == (64, 96, 2, 2)
    # 2 * output pixels * weights: what a ResNet's first layer takes
    assert Convolution(1, 3, (224, 224), 64, (7, 7), 2, (3, 3)).flops() == 2 * 112 * 112 * 64 * 3 * 49


def test_weights_of_recurrent_layers_fill_the_flat_buffer() -> None:
    # an LSTM of one layer, 256 to 650: the buffer of a measured run has 2,360,800 elements
    shapes = weight_shapes(MODES["lstm"], 256, 650, 1, 1)
    assert shapes == [(2600, 256), (2600, 650), (2600,), (2600,)]
    for sample in plan(grids=["rnn"], scale=0.01):
        if sample.op == "aten._cudnn_rnn.default":
            layers = sample.attributes["num_layers"]
            assert isinstance(layers, int)
            weights = 4 * layers * (2 if sample.attributes["bidirectional"] else 1)
            flat = sample.inputs[1 + weights]
            total = sum(spec.extent() for spec in sample.inputs[1:1 + weights] if spec is not None)
            assert flat is not None and flat.shape == (total,)


def test_strides() -> None:
    assert contiguous((2, 3, 4, 5)) == (60, 20, 5, 1)
    assert channels_last((2, 3, 4, 5)) == (60, 1, 15, 3)
    assert image("float32", (2, 1, 4, 5), True).strides is None
    assert permuted("float32", (2, 3, 4), (0, 2, 1)) == TensorSpec("float32", (2, 4, 3), (12, 1, 4))
    assert TensorSpec("float32", (2, 4, 3), (12, 1, 4)).extent() == 24
    assert TensorSpec("float32", (2, 4), (8, 1)).extent() == 12
    assert TensorSpec("float32", (0, 4)).extent() == 0


def test_log_uniform_draws_stay_within_their_bounds() -> None:
    draw = Draw("test")
    sizes = [draw.size(8, 2048) for _ in range(2000)] + [draw.log_int(1, 7) for _ in range(2000)]
    assert min(sizes[:2000]) >= 8 and max(sizes[:2000]) <= 2048
    assert set(sizes[2000:]) == set(range(1, 8))
    assert 0.5 < sum(size % 8 == 0 for size in sizes[:2000]) / 2000 < 0.95
