"""Fused attention by backend (memory-efficient, flash, cuDNN), causal or not, with and without dropout, both passes.

What the backward pass needs of the forward (output, logsumexp, random state) stands here with the shapes the forward
gives today; whoever times the sample runs the forward and takes what it really gives.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from forerun.grids.sampling import Draw, Sample, TensorSpec, draw_many, stream_us

GRID = "attention"

_LENGTHS = (16, 32, 49, 64, 77, 101, 128, 145, 192, 196, 197, 256, 384, 512, 577, 768, 1024, 2048, 4096)


def _operand(draw_layout: str, dtype: str, shape: Tuple[int, int, int, int]) -> TensorSpec:
    """[batch, heads, length, head size] as models hand it over: a view of [batch, length, heads, head size], one of
    three such side by side, or contiguous."""
    _, heads, length, head = shape
    if draw_layout == "contiguous":
        return TensorSpec(dtype, shape)
    row = heads * head * (3 if draw_layout == "packed" else 1)
    return TensorSpec(dtype, shape, (length * row, head, row, 1))


def _length(draw: Draw) -> int:
    return draw.pick(_LENGTHS) if draw.chance(0.7) else draw.log_int(8, 4096)


def _configuration(draw: Draw) -> List[Sample]:
    backend = draw.weighted({"efficient": 0.46, "flash": 0.27, "cudnn": 0.27})
    dtype = draw.weighted({"float32": 0.65, "bfloat16": 0.30, "float16": 0.05} if backend == "efficient"
                          else {"bfloat16": 0.9, "float16": 0.1})
    head = draw.weighted({16: 3, 24: 2, 32: 14, 40: 4, 48: 5, 64: 40, 80: 7, 96: 7, 128: 14, 160: 2, 256: 2})
    if backend == "cudnn" and head > 128:
        head = 128
    queries = _length(draw)
    keys = queries if draw.chance(0.88) else _length(draw)
    causal = queries == keys and draw.chance(0.35)
    dropout = 0.1 if draw.chance(0.3) else 0.0
    batch, heads = draw.log_int(1, 256), draw.log_int(1, 32)
    layout = draw.weighted({"heads": 0.5, "packed": 0.35, "contiguous": 0.15}) if queries == keys else "heads"
    bias = _bias(draw, dtype, (batch, heads, queries, keys)) if backend == "efficient" and not causal else None
    query = _operand(layout, dtype, (batch, heads, queries, head))
    key = _operand(layout, dtype, (batch, heads, keys, head))
    output = _operand("heads", dtype, (batch, heads, queries, head))
    flops = 4.0 * batch * heads * queries * keys * head * (0.5 if causal else 1.0)
    rate = 12e6 if dtype == "float32" else 60e6 if backend == "efficient" else 150e6
    cost = stream_us(query, key, key, output, bias) + flops / rate
    return [_forward(backend, (query, key, key), bias, dropout, causal, cost),
            _backward(backend, (output, query, key, key), bias, dropout, causal, 3 * cost)]


def _bias(draw: Draw, dtype: str, shape: Tuple[int, int, int, int]) -> Optional[TensorSpec]:
    """A mask to add, of a length that needs no padding."""
    batch, heads, queries, keys = shape
    if keys % 16 or not draw.chance(0.3):
        return None
    if draw.chance(0.5):  # one mask for all heads
        return TensorSpec(dtype, shape, (queries * keys, 0, keys, 1))
    return TensorSpec(dtype, shape)


def _forward(backend: str, operands: Tuple[TensorSpec, ...], bias: Optional[TensorSpec], dropout: float, causal: bool,
             cost: float) -> Sample:
    attributes: Dict[str, object] = {"dropout_p": dropout, "is_causal": causal}
    inputs: Tuple[Optional[TensorSpec], ...] = operands
    if backend != "flash":
        attributes = {"compute_log_sumexp": True, **attributes}
        inputs = operands + (bias,)
    return Sample(GRID, f"aten._scaled_dot_product_{backend}_attention.default", inputs, attributes, "fp32", cost)


def _backward(backend: str, operands: Tuple[TensorSpec, ...], bias: Optional[TensorSpec], dropout: float, causal: bool,
              cost: float) -> Sample:
    output, query, key = operands[0], operands[1], operands[2]
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    name = f"aten._scaled_dot_product_{backend}_attention_backward.default"
    lengths = {"max_q": queries, "max_k": keys}
    if backend == "efficient":
        logsumexp = TensorSpec("float32", (batch, heads, -(-queries // 32) * 32))
        state = TensorSpec("int64", ())
        return Sample(GRID, name, operands + (bias, output, logsumexp, state, state),
                      {"dropout_p": dropout, "grad_input_mask": [True, True, True, False], "is_causal": causal}, "fp32",
                      cost)
    if backend == "flash":
        logsumexp = TensorSpec("float32", (batch, heads, queries))
        states = (TensorSpec("uint64", (2,)), TensorSpec("uint64", ()))
        return Sample(GRID, name, operands + (output, logsumexp, None, None) + states,
                      {**lengths, "dropout_p": dropout, "is_causal": causal}, "fp32", cost)
    logsumexp = TensorSpec("float32", (batch, heads, queries, 1))
    state = TensorSpec("int64", ())
    return Sample(GRID, name, operands + (output, logsumexp, state, state, None, None, None),
                  {**lengths, "dropout_p": dropout, "is_causal": causal}, "fp32", cost)


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, _configuration)
