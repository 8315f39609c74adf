"""Trees choose the answer that loses least, and samples become the formulas that the table names."""
from __future__ import annotations

from typing import Any, Dict

from forerun.decision_tree import Limits, Split, answer, build_tree
from forerun.workspace_fit import CONVOLUTION_FEATURES, RECURRENT_FEATURES, convolution_case, recurrent_case


def test_a_tree_finds_the_threshold() -> None:
    features = [[float(x), float(x % 3)] for x in range(60)]
    losses = [[0.0, 1.0] if x < 40 else [1.0, 0.0] for x in range(60)]
    nodes = build_tree(features, losses, Limits(leaves=8, cases_in_leaf=5))
    assert isinstance(nodes[0], Split) and nodes[0].feature == 0 and nodes[0].threshold == 39.5
    assert len(nodes) == 3
    assert answer(nodes, [12.0, 0.0]) == 0 and answer(nodes, [55.0, 0.0]) == 1


def test_a_tree_without_gain_is_a_leaf() -> None:
    assert build_tree([[1.0], [2.0]] * 20, [[0.5, 0.1]] * 40) == [1]


def test_children_stand_behind_their_parent() -> None:
    features = [[float(x)] for x in range(200)]
    losses = [[float(x // 25 != k) for k in range(8)] for x in range(200)]
    nodes = build_tree(features, losses)
    assert sum(not isinstance(node, Split) for node in nodes) == 8
    assert all(not isinstance(node, Split) or min(node.below, node.above) > i for i, node in enumerate(nodes))


def _convolution(mask: Any = None) -> Dict[str, Any]:
    image, weight = ["float32", [2, 6, 10, 10], None], ["float32", [8, 6, 3, 3], None]
    result = ["float32", [2, 8, 10, 10], None]
    attributes = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": False, "groups": 1}
    if mask is None:
        return {"op": "aten.convolution.default", "inputs": [image, weight, None], "outputs": [result],
                "attributes": attributes, "workspace": 1000}
    return {"op": "aten.convolution_backward.default", "inputs": [result, image, weight], "outputs": [],
            "attributes": {**attributes, "output_mask": mask}, "workspace": 1000}


def test_convolutions_are_padded_copies() -> None:
    name, case = convolution_case(_convolution())
    features, formulas, scale, measured = case
    assert name == "convolution" and measured == 1000 and scale > 0
    assert len(features) == len(CONVOLUTION_FEATURES)
    assert formulas["i"] == 2 * 8 * 100 * 4  # six channels are padded to eight
    assert formulas["w"] == 8 * 8 * 9 * 4
    assert formulas["batched_w4"] == 2 * 6 * 8 * 9 * 4
    assert convolution_case(_convolution([True, False, False]))[0] == "input_gradient"
    assert convolution_case(_convolution([False, True, False]))[0] == "weight_gradient"


def test_recurrent_layers_follow_a_formula() -> None:
    record = {
        "op": "aten._cudnn_rnn.default",
        "inputs": [["float32", [64, 25, 896], None], ["float32", [6429696], None]],
        "attributes": {"mode": 2, "hidden_size": 896, "num_layers": 1, "batch_first": False, "bidirectional": False},
        "workspace": 69471200,
    }
    features, formulas, _, measured = recurrent_case(record)
    assert len(features) == len(RECURRENT_FEATURES)
    assert abs(formulas["plain"] / measured - 1) < 0.001
    assert formulas["persistent"] > 2 * measured
