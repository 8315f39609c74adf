"""What PyTorch's fake tensors lack to follow an iteration on CUDA: cuDNN's recurrent layers, grouped matrix products in
other types than bfloat16, and the layouts in which the backward of layer norm and of some activations write.

The reserve space of cuDNN's recurrent layers stays empty: the reader of the record knows its size.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator, List, Optional, Tuple

import torch
from torch import Tensor
from torch._decomp import decomposition_table


def _cudnn_rnn(
    input: Tensor,
    weight: List[Tensor],
    weight_stride0: int,
    weight_buf: Optional[Tensor],
    hx: Tensor,
    cx: Optional[Tensor],
    mode: int,
    hidden_size: int,
    proj_size: int,
    num_layers: int,
    batch_first: bool,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_sizes: List[int],
    dropout_state: Optional[Tensor],
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """cuDNN works time first: with batch_first the result is a transposed view."""
    width = (proj_size or hidden_size) * (2 if bidirectional else 1)
    turned = batch_first and not batch_sizes
    outer = input.shape[:-1]
    out = input.new_empty((*(reversed(outer) if turned else outer), width))
    return (
        out.transpose(0, 1) if turned else out,
        hx.new_empty(hx.shape),
        hx.new_empty((0,) if cx is None else cx.shape),
        input.new_empty((0,), dtype=torch.uint8),
        input.new_empty((0,)) if weight_buf is None else weight_buf,
    )


def _cudnn_rnn_backward(
    input: Tensor,
    weight: List[Tensor],
    weight_stride0: int,
    weight_buf: Tensor,
    hx: Tensor,
    cx: Optional[Tensor],
    *rest: Any,
) -> Tuple[Tensor, Tensor, Optional[Tensor], List[Tensor]]:
    """Gradients shaped like what they belong to; those of the weights lie in one flat buffer, as cuDNN writes them."""
    flat = torch.empty_like(weight_buf)
    grads, offset = [], 0
    for part in weight:
        grads.append(flat[offset : offset + part.numel()].view(part.shape))
        offset += part.numel()
    return torch.empty_like(input), torch.empty_like(hx), None if cx is None else torch.empty_like(cx), grads


def _native_layer_norm_backward(
    grad: Tensor,
    input: Tensor,
    normalized_shape: List[int],
    mean: Tensor,
    deviation: Tensor,
    weight: Optional[Tensor],
    bias: Optional[Tensor],
    output_mask: List[bool],
) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    made = [
        None if tensor is None or not wanted else tensor.new_empty(tensor.shape)
        for tensor, wanted in zip((input, weight, bias), output_mask)
    ]
    return made[0], made[1], made[2]


def _elementwise_gradient(grad: Tensor, input: Tensor, *numbers: Any) -> Tensor:
    return torch.add(grad, input)  # for its layout


def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    out_dtype: Optional[torch.dtype] = None,
) -> Tensor:
    """CUDA takes float32 and float16 too, group by group; autocast leaves the op alone. Rows begin at multiples of 16
    bytes."""
    if self.dtype is not mat2.dtype:
        raise RuntimeError(f"a grouped matrix product takes matrices of one type, not {self.dtype} and {mat2.dtype}")
    columns = mat2.shape[-1]
    if self.dim() == 2 and mat2.dim() == 2:
        assert offs is not None
        sizes = [offs.shape[0], self.shape[0], columns]
    elif self.dim() == 3 and mat2.dim() == 3:
        sizes = [self.shape[0], self.shape[1], columns]
    else:
        sizes = [self.shape[-2], columns]
    dtype = out_dtype or self.dtype
    aligned = 16 // dtype.itemsize
    row = (columns + aligned - 1) // aligned * aligned
    strides = [row, 1] if len(sizes) == 2 else [sizes[1] * row, row, 1]
    return torch.empty_strided(sizes, strides, dtype=dtype, device=self.device)


_META = {
    "_cudnn_rnn": _cudnn_rnn,
    "_cudnn_rnn_backward": _cudnn_rnn_backward,
    "_grouped_mm": _grouped_mm,
    "native_layer_norm_backward": _native_layer_norm_backward,
    "hardswish_backward": _elementwise_gradient,
    "hardtanh_backward": _elementwise_gradient,
}


@contextlib.contextmanager
def complete_fakes() -> Iterator[None]:
    """While inside, these ops on fake tensors give what CUDA's would."""
    library = torch.library.Library("aten", "IMPL")
    decompositions = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, meta in _META.items():
            if not hasattr(torch.ops.aten, name):
                continue  # older versions lack some
            torch.library._impls.discard(f"aten/{name}/Meta")  # or PyTorch's own may not be replaced
            library.impl(name, meta, "Meta")
            op = getattr(torch.ops.aten, name).default
            if op in decomposition_table:  # would be preferred
                decompositions[op] = decomposition_table.pop(op)
    try:
        yield
    finally:
        decomposition_table.update(decompositions)
        library._destroy()
