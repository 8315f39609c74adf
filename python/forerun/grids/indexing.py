"""Embeddings and their gradients, bags, gather, scatter, index, index_put, and cat.

Index tensors say only their shape; whoever times a sample fills them uniformly at random within the bounds.
"""

from __future__ import annotations

from typing import Callable, List, Mapping, Optional, Tuple

from forerun.grids.sampling import Draw, Sample, Shape, TensorSpec, draw_many, image, stream_us

GRID = "index"

Inputs = Tuple[Optional[TensorSpec], ...]


def _one(op: str, inputs: Inputs, attributes: Mapping[str, object], cost: float) -> Sample:
    return Sample(GRID, f"aten.{op}", inputs, attributes, "fp32", cost)


def _rows(draw: Draw) -> int:
    return draw.pick((512, 1000, 1024, 4000, 8000, 10000, 30522, 32000, 50257)) if draw.chance(0.6) \
        else draw.log_int(2, 1_000_000)


def _embedding(draw: Draw) -> List[Sample]:
    dtype = draw.weighted({"float32": 0.7, "bfloat16": 0.25, "float16": 0.05})
    rows, width = _rows(draw), draw.size(1, 4096, even=0.9)
    lead: Shape = (draw.log_int(1, 512), draw.size(1, 2048, even=0.4))
    if draw.chance(0.25):
        lead = (draw.log_int(1, 300000),)
    weight, indices = TensorSpec(dtype, (rows, width)), TensorSpec("int64", lead)
    output = TensorSpec(dtype, lead + (width,))
    return [_one("embedding.default", (weight, indices), {}, stream_us(output, output)),
            _one("embedding_dense_backward.default", (output, indices),
                 {"num_weights": rows, "padding_idx": -1, "scale_grad_by_freq": False},
                 40 + stream_us(weight, output, output, indices))]


def _bag(draw: Draw) -> List[Sample]:
    rows, width = _rows(draw), draw.size(1, 512, even=0.9)
    bags, per_bag = draw.log_int(1, 32768), draw.log_int(1, 100)
    mode = draw.weighted({0: 0.7, 1: 0.25, 2: 0.05})
    weight, indices = TensorSpec("float32", (rows, width)), TensorSpec("int64", (bags * per_bag,))
    offsets, grad = TensorSpec("int64", (bags,)), TensorSpec("float32", (bags, width))
    read = stream_us(TensorSpec("float32", (bags * per_bag, width)))
    largest = TensorSpec("int64", (bags, width) if mode == 2 else (bags,))
    return [_one("_embedding_bag.default", (weight, indices, offsets, None),
                 {"scale_grad_by_freq": False, "mode": mode, "sparse": False}, read),
            _one("_embedding_bag_dense_backward.default", (grad, indices, indices, offsets, largest, None),
                 {"num_weights": rows, "scale_grad_by_freq": False, "mode": mode, "padding_idx": -1},
                 40 + read + stream_us(weight))]


def _index(draw: Draw) -> List[Sample]:
    """Rows of a table by position (Swin's bias table), read and, for the gradient, added into."""
    dtype = draw.weighted({"float32": 0.8, "bfloat16": 0.2})
    if draw.chance(0.4):
        window, heads = draw.pick((7, 8, 12, 16)), draw.pick((2, 3, 4, 6, 8, 12, 16, 24, 32))
        rows, count, width = (2 * window - 1) ** 2, window ** 4, heads
    else:
        rows, count, width = draw.log_int(2, 200000), draw.log_int(1, 200000), draw.size(1, 1024)
    table, index = TensorSpec(dtype, (rows, width)), TensorSpec("int64", (count,))
    values = TensorSpec(dtype, (count, width))
    cost = stream_us(table, values, values)
    write = draw.weighted({"index_put.default": 0.7, "index_put_.default": 0.3})
    return [_one("index.Tensor", (table, index), {}, cost),
            _one(write, (table, index, values), {"accumulate": draw.chance(0.85)}, 60 + 4 * cost)]


def _select(draw: Draw) -> List[Sample]:
    dtype = draw.dtype()
    if draw.chance(0.4):
        size = draw.log_int(1, 80)
        spec = image(dtype, (draw.log_int(1, 128), draw.size(2, 1024), size, size), draw.chance(0.2))
        dim = 1
    else:
        spec, dim = TensorSpec(dtype, (draw.log_int(1, 200000), draw.size(1, 2048))), 0
    index = TensorSpec("int64", (draw.log_int(1, max(1, spec.shape[dim])),))
    samples = [_one("index_select.default", (spec, index), {"dim": dim}, stream_us(spec, spec))]
    if dim == 0:
        source = TensorSpec(dtype, index.shape + spec.shape[1:])
        samples.append(_one("index_add.default", (spec, index, source), {"dim": 0}, 2 * stream_us(spec, spec, source)))
    return samples


def _gather(draw: Draw) -> List[Sample]:
    dtype = draw.dtype()
    rows, columns = draw.log_int(1, 65536), draw.log_int(1, 16384)
    dim = draw.pick((0, 1))
    many = draw.log_int(1, rows if dim == 0 else columns)
    spec = TensorSpec(dtype, (rows, columns))
    index = TensorSpec("int64", (many, columns) if dim == 0 else (rows, many))
    source = TensorSpec(dtype, index.shape)
    cost = stream_us(spec, spec, index, source)
    scatter = draw.pick(("scatter_add.default", "scatter.src"))
    return [_one("gather.default", (spec, index), {"dim": dim}, cost),
            _one(scatter, (spec, index, source), {"dim": dim}, 2 * cost)]


def _cat(draw: Draw) -> List[Sample]:
    dtype, count = draw.dtype(), draw.weighted({2: 0.5, 3: 0.15, 4: 0.2, 6: 0.05, 8: 0.05, 16: 0.05})
    if draw.chance(0.6):
        size, last, batch = draw.log_int(2, 160), draw.chance(0.35), draw.log_int(1, 512)
        parts: Inputs = tuple(image(dtype, (batch, draw.size(4, 512), size, size), last) for _ in range(count))
        dim = 1
    else:
        lead = (draw.log_int(1, 256), draw.log_int(1, 1024))
        parts = tuple(TensorSpec(dtype, lead + (draw.size(1, 1024),)) for _ in range(count))
        dim = -1
    return [_one("cat.default", parts, {"dim": dim}, 2 * stream_us(*parts))]


_KINDS: Mapping[Callable[[Draw], List[Sample]], float] = {
    _embedding: 0.25, _bag: 0.2, _index: 0.18, _select: 0.08, _gather: 0.11, _cat: 0.18,
}


def samples(draw: Draw, count: int) -> List[Sample]:
    return draw_many(draw, count, lambda source: source.weighted(_KINDS)(source))
