"""Layers as CUDA runs them, on fake CPU tensors: attention whole, norms and dropout fused.

Attention that a fused kernel can run is ``forerun.attention``; what none takes is composed by PyTorch, as on the GPU.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .cuda_autocast import HALF

# -- attention ---------------------------------------------------------------------------------------------------------


def _heads_inner(like: Tensor, sizes: Sequence[int]) -> Tensor:
    """[batch, heads, length, size], stored with the heads inside: how memory-efficient attention writes."""
    *batch, heads, length, size = sizes
    return like.new_empty((*batch, length, heads, size)).transpose(-3, -2)


def _as_query(like: Tensor, sizes: Sequence[int]) -> Tensor:
    """Dimensions in memory in the order of `like`: how cuDNN's attention writes."""
    order = sorted(range(like.dim()), key=lambda dim: like.stride(dim), reverse=True)
    return like.new_empty([sizes[dim] for dim in order]).permute([order.index(dim) for dim in range(like.dim())])


def _runs_fused(query: Tensor) -> bool:
    """Whether the kernels for half precision take it; others go to memory-efficient attention."""
    return query.dtype in HALF and query.shape[-1] % 8 == 0 and query.shape[-1] <= 256


def _written(like: Tensor, sizes: Sequence[int], mask_gradient: bool) -> Tensor:
    return _as_query(like, sizes) if _runs_fused(like) and not mask_gradient else _heads_inner(like, sizes)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Optional[Tensor],
    dropout_p: float,
    is_causal: bool,
    scale: Optional[float],
    enable_gqa: bool,
    mask_gradient: bool,
) -> Tuple[Tensor, Tensor]:
    out = _written(query, (*query.shape[:-1], value.shape[-1]), mask_gradient)
    return out, query.new_empty(query.shape[:-1], dtype=torch.float32)


def _attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Optional[Tensor],
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    scale: Optional[float],
    enable_gqa: bool,
    mask_gradient: bool,
) -> List[Tensor]:
    grads = [_written(tensor, tensor.shape, mask_gradient) for tensor in (query, key, value)]
    if mask is not None and mask_gradient:
        grads.append(mask.new_empty(mask.shape))
    return grads


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], *options: Any) -> Tensor:
        out, logsumexp = torch.ops.forerun.attention(query, key, value, mask, *options)
        ctx.save_for_backward(query, key, value, mask, out, logsumexp)
        ctx.options = options
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        grads = torch.ops.forerun.attention_backward(grad, *ctx.saved_tensors, *ctx.options)
        return (*grads, *(None for _ in range(4 + len(ctx.options) - len(grads))))


def _aligned_mask(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """As memory-efficient attention wants it: rows begin at multiples of 8 elements, and all dimensions present."""
    if mask.stride(-1) != 1 or any(stride % 8 for stride in mask.stride()[:-1]):
        length = mask.shape[-1]
        mask = torch.nn.functional.pad(mask, (0, 8 - length % 8))[..., :length]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> Any:
    mask = attn_mask
    mask_gradient = mask is not None and mask.requires_grad
    fused = _runs_fused(query) and not mask_gradient
    broadcast = key.shape[1] != query.shape[1] and not (fused and enable_gqa)
    if mask is not None and mask.dtype is torch.bool:
        mask = torch.where(mask, 0.0, torch.scalar_tensor(float("-inf"), dtype=query.dtype))
    # No fused kernel takes these: PyTorch composes them. (A mask with a gradient and dropout: as seen in PyTorch 2.11.)
    scattered = any(tensor.shape[-1] > 1 and tensor.stride(-1) != 1 for tensor in (query, key, value))
    if query.dim() != 4 or broadcast or scattered or (mask_gradient and dropout_p > 0):
        grouped = {"enable_gqa": True} if enable_gqa else {}  # not known to PyTorch 2.4
        return torch._scaled_dot_product_attention_math(
            query, key, value, mask, dropout_p, is_causal, scale=scale, **grouped
        )[0]
    if mask is not None and not fused:
        mask = _aligned_mask(mask, query, key)
    return _Attention.apply(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa, mask_gradient)


# -- layers that CUDA runs as one op -----------------------------------------------------------------------------------


def _dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0:
        return input
    return torch.ops.aten.native_dropout.default(input, p, train)[0]


def _batch_norm(
    input: Tensor,
    weight: Optional[Tensor],
    bias: Optional[Tensor],
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    return torch.ops.aten.native_batch_norm.default(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    x = input.contiguous()  # on the CPU it may stay channels last
    samples, channels, *pixels = x.shape
    return torch.ops.aten.native_group_norm.default(
        x, weight, bias, samples, channels, math.prod(pixels), num_groups, eps
    )[0]


def _rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor] = None, eps: Optional[float] = None
) -> Tensor:
    return torch.ops.aten._fused_rms_norm.default(input, normalized_shape, weight, eps)[0]


def _fused_rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor], eps: Optional[float]
) -> Tuple[Tensor, Tensor]:
    outer = input.dim() - len(normalized_shape)
    deviation = input.new_empty(
        [*input.shape[:outer], *(1 for _ in normalized_shape)], dtype=torch.promote_types(input.dtype, torch.float32)
    )
    return input.new_empty(input.shape), deviation


def _fused_rms_norm_backward(
    grad: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    deviation: Tensor,
    weight: Optional[Tensor],
    output_mask: Sequence[bool],
) -> Tuple[Optional[Tensor], Optional[Tensor]]:
    return (
        input.new_empty(input.shape) if output_mask[0] else None,
        weight.new_empty(weight.shape) if output_mask[1] and weight is not None else None,
    )


def _define_attention(own: Any) -> None:
    options = "float dropout_p, bool is_causal, float? scale, bool enable_gqa, bool mask_gradient"
    own.define(f"attention(Tensor query, Tensor key, Tensor value, Tensor? mask, {options}) -> (Tensor, Tensor)")
    own.define(
        "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor out, "
        f"Tensor logsumexp, {options}) -> Tensor[]"
    )
    own.impl("attention", _attention, "Meta")
    own.impl("attention_backward", _attention_backward, "Meta")


def register_layers(own: Any, library: Any) -> None:
    """Defines ``forerun.attention`` in `own` and puts these layers in the place of the CPU's in `library`, aten's."""
    _define_attention(own)
    library.impl("scaled_dot_product_attention", _scaled_dot_product_attention, "AutogradCPU")
    library.impl("dropout", _dropout, "AutogradCPU")
    library.impl("batch_norm", _batch_norm, "AutogradCPU")
    library.impl("group_norm", _group_norm, "AutogradCPU")
    if hasattr(torch.ops.aten, "_fused_rms_norm_backward"):  # CUDA has the kernel since PyTorch 2.9
        library.impl("rms_norm", _rms_norm, "AutogradCPU")
        library.impl("_fused_rms_norm", _fused_rms_norm, "CPU")  # a kernel of its own keeps it from being taken apart
        with contextlib.suppress(RuntimeError):  # some versions bring one
            library.impl("_fused_rms_norm_backward", _fused_rms_norm_backward, "Meta")
