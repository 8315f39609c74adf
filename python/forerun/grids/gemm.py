"""Matrix products of every aspect ratio: mm, addmm and bmm, with the transpositions that linear layers ask for.

Precision is float32, float32 with TF32 allowed, bfloat16 and a little float16.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from forerun.grids.sampling import MATMUL_RATE, MAX_BYTES, Draw, Sample, TensorSpec, draw_many, stream_us

GRID = "gemm"


def _precision(draw: Draw) -> Tuple[str, str]:
    """The dtype, and the precision of float32 matmuls."""
    return draw.weighted({("float32", "fp32"): 0.34, ("float32", "tf32"): 0.26, ("bfloat16", "fp32"): 0.35,
                          ("float16", "fp32"): 0.05})


def matrix(dtype: str, batch: Tuple[int, ...], rows: int, columns: int, transposed: bool) -> TensorSpec:
    """A matrix, or a batch of them; transposed: its columns lie together."""
    shape = batch + (rows, columns)
    if not transposed or rows == 1 and columns == 1:
        return TensorSpec(dtype, shape)
    return TensorSpec(dtype, shape, ((rows * columns,) if batch else ()) + (1, rows))


def _product(draw: Draw, op: str, batch: Tuple[int, ...], sizes: Tuple[int, int, int],
             transposed: Tuple[bool, bool], kind: Optional[Tuple[str, str]] = None) -> List[Sample]:
    rows, inner, columns = sizes
    dtype, precision = kind or _precision(draw)
    left = matrix(dtype, batch, rows, inner, transposed[0])
    right = matrix(dtype, batch, inner, columns, transposed[1])
    output = TensorSpec(dtype, batch + (rows, columns))
    if output.bytes() > MAX_BYTES:
        return []
    flops = 2.0 * rows * inner * columns * (batch[0] if batch else 1)
    rate = MATMUL_RATE[precision if dtype == "float32" else "half"]
    cost = stream_us(left, right, output) + flops / rate
    bias = (TensorSpec(dtype, (columns,)),) if op == "addmm" else ()
    return [Sample(GRID, f"aten.{op}.default", bias + (left, right), {}, precision, cost)]


def _rows(draw: Draw) -> int:
    return draw.size(1, 131072, even=0.5)


def _features(draw: Draw) -> int:
    return draw.size(1, 64, even=0.3) if draw.chance(0.1) else draw.size(8, 16384, even=0.8)


def _linear(draw: Draw) -> List[Sample]:
    """x @ w.T forward, g @ w for the data, g.T @ x for the weight; one side may be a vocabulary."""
    rows, inner, columns = _rows(draw), _features(draw), _features(draw)
    if draw.chance(0.08):
        columns = draw.pick((1000, 10000, 21841, 28782, 30522, 32000, 32128, 50257))
    return _passes(draw, rows, inner, columns, None)


def linear(draw: Draw, dtype: str, words: int = 0) -> List[Sample]:
    """A linear layer of tokens in this type; `words`: what it gives, where that is not drawn."""
    return _passes(draw, draw.size(64, 16384, even=0.8), draw.size(64, 8192, even=0.95),
                   words or draw.size(64, 16384, even=0.9), (dtype, "fp32"))


def _passes(draw: Draw, rows: int, inner: int, columns: int, precision: Optional[Tuple[str, str]]) -> List[Sample]:
    op = draw.weighted({"mm": 0.68, "addmm": 0.32})
    if op == "addmm":
        return _product(draw, op, (), (rows, inner, columns), (False, draw.chance(0.92)), precision)
    kind = draw.weighted({"forward": 0.28, "data": 0.3, "weight": 0.37, "both": 0.05})
    if kind == "forward":
        return _product(draw, op, (), (rows, inner, columns), (False, True), precision)
    if kind == "data":
        return _product(draw, op, (), (rows, columns, inner), (False, False), precision)
    if kind == "weight":
        return _product(draw, op, (), (columns, rows, inner), (True, False), precision)
    return _product(draw, op, (), (inner, rows, columns), (True, True), precision)


def _any_shape(draw: Draw) -> List[Sample]:
    sizes = (draw.size(1, 32768, even=0.6), draw.size(1, 32768, even=0.6), draw.size(1, 32768, even=0.6))
    return _product(draw, "mm", (), sizes, (draw.chance(0.3), draw.chance(0.4)))


def _batched(draw: Draw) -> List[Sample]:
    batch = draw.size(1, 16384, even=0.5)
    if draw.chance(0.7):  # attention: scores, weighted values and their gradients
        length, other = draw.size(1, 2048, even=0.5), 0
        other = length if draw.chance(0.8) else draw.size(1, 2048, even=0.5)
        head = draw.pick((16, 24, 32, 40, 48, 64, 64, 80, 96, 128, 256))
        sizes, transposed = draw.pick((((length, head, other), (False, True)), ((length, other, head), (False, False)),
                                       ((other, length, head), (True, False))))
        return _product(draw, "bmm", (batch,), sizes, transposed)
    sizes = (draw.size(1, 2048), draw.size(1, 2048), draw.size(1, 2048))
    return _product(draw, "bmm", (batch,), sizes, (draw.chance(0.25), draw.chance(0.35)))


def samples(draw: Draw, count: int) -> List[Sample]:
    def configuration(source: Draw) -> List[Sample]:
        return source.weighted({_linear: 0.6, _any_shape: 0.15, _batched: 0.25})(source)
    return draw_many(draw, count, configuration)
