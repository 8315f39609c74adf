"""cuDNN's recurrent layers: RNN, GRU and LSTM over hidden size (odd ones too), batch, length, layers and dtype.

Under autocast PyTorch runs them in float16 and hands over each weight as a column of its flat buffer; so do the float16
samples. The reserve that the backward pass takes stands here empty: its size is for the forward pass to say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Tuple

from forerun.grids.sampling import Draw, Limits, Sample, TensorSpec, draw_many

GRID = "rnn"
LARGE_GRID = "rnn_large"

MODES = {"relu": 0, "tanh": 1, "lstm": 2, "gru": 3}
_GATES = {0: 1, 1: 1, 2: 4, 3: 3}
_LIMITS = Limits(max_us=6000.0)
_LARGE = Limits(max_us=40_000.0, min_us=4000.0, max_bytes=4 << 30)


def weight_shapes(mode: int, features: int, hidden: int, layers: int, directions: int) -> List[Tuple[int, ...]]:
    """Of each layer and direction: input weights, hidden weights, two biases."""
    rows = _GATES[mode] * hidden
    shapes: List[Tuple[int, ...]] = []
    for layer in range(layers):
        width = features if layer == 0 else hidden * directions
        shapes += [(rows, width), (rows, hidden), (rows,), (rows,)] * directions
    return shapes


def _configuration(draw: Draw) -> List[Sample]:
    mode = draw.weighted({MODES["lstm"]: 0.42, MODES["gru"]: 0.28, MODES["tanh"]: 0.24, MODES["relu"]: 0.06})
    dtype = draw.weighted({"float32": 0.5, "float16": 0.42, "bfloat16": 0.08})
    hidden = draw.pick((64, 100, 128, 200, 256, 300, 400, 512, 650, 768, 1000, 1024, 1150, 1280, 1500, 2048)) \
        if draw.chance(0.6) else draw.size(16, 2048, even=0.5)
    features = hidden if draw.chance(0.5) else draw.size(16, 1024, even=0.8)
    layers = draw.weighted({1: 0.45, 2: 0.22, 3: 0.12, 4: 0.1, 6: 0.04, 8: 0.05, 16: 0.02})
    directions = 2 if draw.chance(0.2) else 1
    batch, length = draw.size(1, 512, even=0.5), draw.pick((5, 10, 20, 28, 32, 35, 50, 64, 70, 100, 128, 150, 200, 256))
    batch_first = draw.chance(0.8)
    dropout = draw.pick((0.2, 0.5)) if layers > 1 and draw.chance(0.15) else 0.0
    shapes = weight_shapes(mode, features, hidden, layers, directions)
    parameters = sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes)
    rate = 20e6 if dtype == "float32" else 60e6
    cost = length * layers * 5.0 + 2.0 * parameters * batch * length / rate
    weights = tuple(TensorSpec(dtype, _flat(shape) if dtype == "float16" else shape) for shape in shapes)
    lead = (batch, length) if batch_first else (length, batch)
    source = TensorSpec(dtype, lead + (features,))
    output = TensorSpec(dtype, lead + (hidden * directions,))
    state = TensorSpec(dtype, (layers * directions, batch, hidden))
    cell = state if mode == MODES["lstm"] else None
    flat = TensorSpec(dtype, (parameters,))
    random_state = TensorSpec("uint8", (0,)) if dropout else None
    shared: Dict[str, object] = {
        "weight_stride0": 4, "mode": mode, "hidden_size": hidden, "proj_size": 0, "num_layers": layers,
        "batch_first": batch_first, "dropout": dropout, "train": True, "bidirectional": directions == 2,
        "batch_sizes": []}
    reserve = TensorSpec("uint8", (0,))
    return [
        Sample(GRID, "aten._cudnn_rnn.default", (source,) + weights + (flat, state, cell, random_state), shared, "fp32",
               cost),
        Sample(GRID, "aten._cudnn_rnn_backward.default",
               (source,) + weights + (flat, state, cell, output, output, None, None, random_state, reserve),
               {**shared, "output_mask": [True, False, False, True]}, "fp32", 2 * cost)]


def _flat(shape: Tuple[int, ...]) -> Tuple[int, ...]:
    return (shape[0] * (shape[1] if len(shape) > 1 else 1), 1)


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, _configuration, _LIMITS)


def large_samples(draw: Draw, count: int) -> List[Sample]:
    """Long sequences, large batches, wide and deep layers."""
    return [replace(sample, grid=LARGE_GRID) for sample in draw_many(draw, count, _configuration, _LARGE)]
