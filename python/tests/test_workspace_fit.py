"""Trees choose the answer that loses least; samples and traced runs become cases of convolutions."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from forerun.convolution_cases import case_of_sample, cases_of_run
from forerun.decision_tree import Limits, Split, answer, build_tree
from forerun.workspace_fit import CASES, RECURRENT_FEATURES, TABLE, main, recurrent_case


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


def test_samples_become_cases() -> None:
    case = case_of_sample(_convolution())
    assert case is not None and case.runs_in_cudnn()
    assert case.line() == "f\t-\t0\t0\t0\t1\t2\t6\t8\t9\t3\t1\t1\t1\t100\t100\t10\t1000"
    kinds = [case_of_sample(_convolution(mask)) for mask in ([True, False, False], [False, True, False])]
    assert [found.kind for found in kinds if found] == ["d", "w"]


def _run(family: str = "resnet", strides: Optional[List[int]] = None, trace: bool = True) -> Dict[str, Any]:
    """A convolution of [2, 6, 10, 10] by 8 filters of 3x3, its gradients, and an op behind; workspaces 7000 to 9000."""
    shapes = [[2, 6, 10, 10], [8, 6, 3, 3], [2, 8, 10, 10]]
    attributes = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": False, "groups": 1}
    record: Dict[str, Any] = {
        "schema": "run/2", "status": "ok", "family": family, "run": {"channels_last": False},
        "op_names": ["aten.convolution.default", "aten.relu.default", "aten.convolution_backward.default"],
        "dtypes": ["float32"], "shapes": shapes, "nodes": [],
        "tensors": {"storage": [0, 1, 2, 3, 4, 5], "dtype": [0] * 6, "shape": [0, 1, 2, 2, 0, 1]},
        "attributes": [attributes, {}, {**attributes, "output_mask": [True, True, False]}],
        "ops": {"name": [0, 1, 2], "inputs": [[0, 1], [2], [3, 0, 1]], "outputs": [[2], [3], [4, 5]],
                "attributes": [0, 1, 2]},
        "storages": {"bytes": [4800, 1728, 6400, 6400, 4800, 1728]},
        "roots": {"storage": [0, 1]},
    }
    if strides is not None:
        record["tensors"]["strides"] = strides
    if trace:
        events = [("a", 1, 4800), ("a", 2, 1728)]  # the model
        for _ in range(2):
            events += [("a", 3, 6400), ("a", 9, 7000), ("r", 9, 7000), ("a", 4, 6400), ("a", 5, 4800), ("a", 9, 8000),
                       ("r", 9, 8000), ("a", 6, 1728), ("a", 9, 9000), ("r", 9, 9000), ("r", 3, 6400), ("r", 4, 6400),
                       ("r", 5, 4800), ("r", 6, 1728)]
        record["alloc_trace"] = {"action": "".join(event[0] for event in events),
                                 "address": [event[1] for event in events], "size": [event[2] for event in events],
                                 "marks": [[0, "build"], [2, "f"], [16, "f"]]}
    return record


def test_traced_runs_become_cases() -> None:
    cases = cases_of_run(_run(strides=[-1] * 6))
    assert {case.kind: case.workspace for case in cases} == {"f": 7000, "d": 8000, "w": 9000}
    assert all(case.family == "resnet" and case.channels == 6 and case.filters == 8 for case in cases)
    assert cases_of_run(_run(trace=False)) == []


def test_runs_that_do_not_tell_layouts_are_left_out() -> None:
    assert len(cases_of_run(_run())) == 3
    record = _run()
    record["run"]["channels_last"] = True
    assert cases_of_run(record) == []


def test_a_family_can_be_left_out(tmp_path: Path) -> None:
    lines = [json.dumps({"schema": "env/1", "gpu": "H200"}), json.dumps(_run("resnet")), json.dumps(_run("vgg")),
             json.dumps({"schema": "op/1", "status": "ok", **_convolution()})]
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"train": ["resnet"]}))

    def families(*options: str) -> List[str]:
        main(["--out", str(tmp_path / "out"), *options], lines)
        text = (tmp_path / "out" / CASES).read_text().splitlines()
        return sorted({line.split("\t")[1] for line in text if not line.startswith("#")})

    assert families() == ["-", "resnet", "vgg"]
    assert families("--without", "vgg") == ["-", "resnet"]
    assert families("--split", str(split)) == ["-", "resnet"]
    assert json.loads((tmp_path / "out" / TABLE).read_text())["gpu"] == "H200"


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
