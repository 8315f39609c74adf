"""Optimizer steps: foreach and fused ops by number and size of tensors.

The tensors are those of made-up models: convolution or linear weights with their biases and norms.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Tuple

from forerun.grids.sampling import Draw, Sample, Shape, TensorSpec, draw_many

GRID = "optimizer"

_MAX_ELEMENTS = 300_000_000
# Lists of tensors each op takes, bytes it moves an element (float32), and its other arguments.
_FOREACH: Mapping[str, Tuple[int, int, Mapping[str, object]]] = {
    "_foreach_add_.List": (2, 12, {"alpha": -0.001}),
    "_foreach_add.List": (2, 12, {"alpha": 0.0001}),
    "_foreach_add_.Scalar": (1, 8, {"scalar": 1e-08}),
    "_foreach_mul_.Scalar": (1, 8, {"scalar": 0.999}),
    "_foreach_addcmul_.Scalar": (3, 16, {"value": 0.0010000000000000009}),
    "_foreach_addcdiv_.Scalar": (3, 16, {"value": -0.001}),
    "_foreach_addcdiv_.ScalarList": (3, 16, {"scalars": -0.0011561832071295642}),
    "_foreach_div_.ScalarList": (1, 8, {"scalars": 0.13722232010719312}),
    "_foreach_sqrt.default": (1, 8, {}),
    "_foreach_lerp_.Scalar": (2, 12, {"weight": 0.09999999999999998}),
    "_foreach_zero_.default": (1, 4, {}),
    "_foreach_norm.Scalar": (1, 4, {}),
}


def _parameters(draw: Draw) -> List[Shape]:
    """The parameters of a model of some layers, which grow as layers do."""
    layers = draw.log_int(1, 120)
    width = draw.size(8, 2048)
    kind = draw.weighted({"images": 0.4, "tokens": 0.35, "vectors": 0.1, "equal": 0.15})
    if kind == "equal":
        shape: Shape = (draw.log_int(1, 4096), draw.log_int(1, 4096))
        return [shape] * layers
    if kind == "vectors":
        return [(draw.log_int(1, 4096),) for _ in range(layers)]
    shapes: List[Shape] = []
    if kind == "tokens":
        shapes.append((draw.log_int(1000, 50000), width))
    for layer in range(layers):
        wide = width * draw.pick((1, 1, 1, 2, 4))
        if kind == "tokens":
            shapes += [(wide, width), (wide,)]
        else:
            grown = min(2048, width * (1 + 4 * layer // layers))
            shapes += [(grown, max(1, grown // draw.pick((1, 1, 2, 4))), *draw.pick(((1, 1), (3, 3), (5, 5)))),
                       (grown,), (grown,)]
    return shapes


def _elements(shapes: List[Shape]) -> int:
    total = 0
    for shape in shapes:
        size = 1
        for extent in shape:
            size *= extent
        total += size
    return total


def _specs(shapes: List[Shape], lists: int) -> Tuple[TensorSpec, ...]:
    return tuple(TensorSpec("float32", shape) for shape in shapes) * lists


def _cost(elements: int, bytes_each: int, tensors: int) -> float:
    return 5.0 + elements * bytes_each / 2.5e6 + 0.1 * tensors


def _foreach(draw: Draw) -> List[Sample]:
    shapes = _parameters(draw)
    elements = _elements(shapes)
    if elements > _MAX_ELEMENTS:
        return []
    name = draw.pick(list(_FOREACH))
    lists, moved, fixed = _FOREACH[name]
    attributes: Dict[str, object] = {key: [value] * len(shapes) if key == "scalars" else value
                                     for key, value in fixed.items()}
    return [Sample(GRID, f"aten.{name}", _specs(shapes, lists), attributes, "fp32",
                   _cost(elements, moved, len(shapes)))]


def _fused(draw: Draw) -> List[Sample]:
    shapes = _parameters(draw)
    elements = _elements(shapes)
    if elements > _MAX_ELEMENTS // 2:
        return []
    name = draw.weighted({"_fused_adam_": 0.35, "_fused_adamw_": 0.35, "_fused_sgd_": 0.3})
    if name == "_fused_sgd_":
        momentum = draw.pick((0.0, 0.9))
        attributes: Dict[str, object] = {
            "weight_decay": draw.pick((0.0, 0.0001)), "momentum": momentum, "lr": 0.01, "dampening": 0.0,
            "nesterov": False, "maximize": False, "is_first_step": False}
        if not momentum:
            attributes["momentum_buffer_list"] = []
        lists = 3 if momentum else 2
        return [Sample(GRID, f"aten.{name}.default", _specs(shapes, lists) + (None, None), attributes, "fp32",
                       _cost(elements, 8 + 4 * lists, len(shapes)))]
    steps = (TensorSpec("float32", ()),) * len(shapes)
    attributes = {"max_exp_avg_sqs": [], "lr": 0.001, "beta1": 0.9, "beta2": 0.999,
                  "weight_decay": draw.pick((0.0, 0.01)), "eps": 1e-08, "amsgrad": False, "maximize": False}
    return [Sample(GRID, f"aten.{name}.default", _specs(shapes, 4) + steps + (None, None), attributes, "fp32",
                   _cost(elements, 28, len(shapes)))]


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {_foreach: 0.72, _fused: 0.28}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
