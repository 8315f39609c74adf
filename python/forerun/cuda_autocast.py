"""The rules of torch.autocast("cuda"), registered for tensors on the CPU.

What is cast to what follows PyTorch's own list for CUDA, as far as the version at hand registers it; what only the
CPU's autocast casts is left alone. The cache of cast weights lives as long as the outermost autocast context, of the
forward pass or of a block that checkpointing computes again.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, List, Sequence, Tuple

import torch
from torch import Tensor

# What torch.autocast("cuda") runs in the lower precision, in float32, and in the widest type among its arguments.
_LOWER = """conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution
_convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm chain_matmul
linalg_multi_dot lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention""".split()
_FLOAT32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar
pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm rms_norm frobenius_norm.dim nuclear_norm
nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss
kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d
upsample_bicubic2d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
_upsample_bilinear2d_aa _upsample_bicubic2d_aa norm.Scalar norm.ScalarOpt_dim""".split()
_FLOAT32_RESULT = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
linalg_matrix_norm.str_ord sum sum.dim_IntList""".split()
_WIDEST = """addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add""".split()

HALF = (torch.bfloat16, torch.float16)
_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _names_under(key: str) -> List[str]:
    """The aten ops that PyTorch registers under a dispatch key, by their names here."""
    found = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return [name.removeprefix("aten::") for name in found if name.startswith("aten::")]


def _map_tensors(convert: Callable[[Tensor], Tensor], value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return convert(value) if value.is_floating_point() and value.dtype is not torch.float64 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(convert, item) for item in value)
    return value


def _map_last_first(convert: Callable[[Tensor], Tensor], args: Any, kwargs: Any) -> Tuple[Any, Any]:
    """Converts arguments from the last to the first: the order in which PyTorch's C++ wrapper evaluates them."""
    named = {key: _map_tensors(convert, kwargs[key]) for key in reversed(list(kwargs))}
    return [_map_tensors(convert, value) for value in reversed(args)][::-1], named


class Autocast:
    """CUDA's rules, and its cache of cast weights, which lives as long as the outermost autocast context."""

    def __init__(self) -> None:
        self._cache: List[Tuple[Tensor, Tensor]] = []

    @contextlib.contextmanager
    def forgetting(self) -> Iterator[None]:
        """While inside, the cache is emptied with PyTorch's own."""
        original = torch.clear_autocast_cache

        def clear() -> None:
            self._cache.clear()
            original()

        torch.clear_autocast_cache = clear
        try:
            yield
        finally:
            torch.clear_autocast_cache = original
            self._cache.clear()

    @contextlib.contextmanager
    def taken_for_cudas(self) -> Iterator[None]:
        """While inside, a program that asks whether autocast is on for CUDA (no device means it too) hears of this."""
        original = torch.is_autocast_enabled

        def enabled(device_type: str = "cuda") -> bool:
            return bool(original("cpu" if device_type == "cuda" else device_type))

        torch.is_autocast_enabled = enabled
        try:
            yield
        finally:
            torch.is_autocast_enabled = original

    def lower(self, tensor: Tensor) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu")
        if tensor.dtype is dtype:
            return tensor
        if not (tensor.is_leaf and tensor.requires_grad and tensor.dtype is torch.float32):
            return tensor.to(dtype)
        for known, cast in self._cache:
            if known is tensor:
                return cast
        cast = tensor.to(dtype)
        self._cache.append((tensor, cast))
        return cast

    def kernel(self, op: Any, convert: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
        @functools.wraps(op)
        def call(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
                args, kwargs = _map_last_first(convert, args, kwargs)
                return op(*args, **kwargs)

        return call

    def float32_result(self, op: Any) -> Callable[..., Any]:
        """Runs in float32 by setting the op's `dtype`, unless the caller asked for one."""

        @functools.wraps(op)
        def call(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
                names = [argument.name for argument in op._schema.arguments]
                given = dict(zip(names, args))
                given.update(kwargs)
                first = args[0]
                if "dtype" in names and given.get("dtype") is None and first.dtype in HALF:
                    given["dtype"] = torch.float32
                elif "dtype" not in names:
                    given = {key: _map_tensors(Tensor.float, value) for key, value in given.items()}
                return op(**given)

        return call

    def widest(self, op: Any) -> Callable[..., Any]:
        @functools.wraps(op)
        def call(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
                wide = False

                def look(tensor: Tensor) -> Tensor:
                    nonlocal wide
                    wide = wide or tensor.dtype is torch.float32
                    return tensor

                _map_tensors(look, args)
                return op(*(_map_tensors(Tensor.float, args) if wide else args), **kwargs)

        return call


def register_autocast(library: Any, autocast: Autocast) -> None:
    rules: List[Tuple[Sequence[str], Callable[[Any], Callable[..., Any]]]] = [
        (_LOWER, lambda op: autocast.kernel(op, autocast.lower)),
        (_FLOAT32, lambda op: autocast.kernel(op, Tensor.float)),
        (_FLOAT32_RESULT, autocast.float32_result),
        (_WIDEST, autocast.widest),
    ]
    of_cuda = set(_names_under("AutocastCUDA"))
    of_cpu = set(_names_under("AutocastCPU"))
    for names, kernel in rules:
        for name in of_cuda.intersection(names):  # versions of PyTorch differ in what they list
            library.impl(name, kernel(_overload(name)), "AutocastCPU")
            of_cpu.discard(name)
    for name in of_cpu:  # CUDA leaves these as they are
        library.impl(name, torch.library.fallthrough_kernel, "AutocastCPU")
