"""Quick construction without initial values, and initial values made where the module lives.

On a CPU a model of a billion parameters takes ten seconds to initialise and none to allocate. So: build under
`fast_initialisation`, move to the device, `initialise` there.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

# In-place methods by which initialisers fill parameters.
_FILLING = frozenset(("normal_", "uniform_", "fill_", "zero_", "erfinv_", "mul_", "add_", "clamp_", "copy_", "div_",
                      "sub_", "random_", "bernoulli_", "log_normal_", "trunc_", "exponential_"))
_TRUNCATED = "_no_grad_trunc_normal_"  # what nn.init.trunc_normal_ calls
_SMALL_NORMAL = frozenset(("class_token", "pos_embedding", "relative_position_bias_table"))
_SMALL = 0.02
_LAYER_SCALE = 1e-6


class _SkipFilling(TorchFunctionMode):
    """Passes over what would only fill a parameter; buffers are made as ever."""

    def __torch_function__(self, func: Callable[..., Any], types: Sequence[Any], args: Tuple[Any, ...] = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        filling = getattr(func, "__name__", "") in _FILLING or getattr(func, "__module__", "") == "torch.nn.init"
        if filling:
            tensor = args[0] if args else kwargs.get("tensor")
            if isinstance(tensor, nn.Parameter):
                return tensor
        return func(*args, **kwargs)


@contextlib.contextmanager
def fast_initialisation() -> Iterator[None]:
    """Modules built inside have parameters of unset values; their buffers are right."""
    truncated = getattr(torch.nn.init, _TRUNCATED, None)
    try:
        if truncated is not None:  # it draws into tensors of its own
            setattr(torch.nn.init, _TRUNCATED, lambda tensor, *others, **named: tensor)
        with _SkipFilling():
            yield
    finally:
        if truncated is not None:
            setattr(torch.nn.init, _TRUNCATED, truncated)


@torch.no_grad()
def initialise(module: nn.Module) -> None:
    """Fills parameters and running statistics in place, on their device, allocating nothing.

    Weights are normal, scaled by their inputs; norms are the identity; biases and other vectors are zero.
    """
    zeros: List[Tensor] = []
    ones: List[Tensor] = []
    seen = set()
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                _initialise_parameter(owner, name, parameter, zeros, ones)
        if isinstance(owner, nn.modules.batchnorm._NormBase) and owner.running_mean is not None:
            zeros.append(owner.running_mean)
            ones.append(owner.running_var)
            owner.num_batches_tracked.zero_()
    _fill(zeros, 0.0)
    _fill(ones, 1.0)


def _initialise_parameter(owner: nn.Module, name: str, parameter: Tensor, zeros: List[Tensor],
                          ones: List[Tensor]) -> None:
    if "Norm" in type(owner).__name__:
        (ones if name == "weight" else zeros).append(parameter)
    elif isinstance(owner, (nn.Embedding, nn.EmbeddingBag)) or name in _SMALL_NORMAL:
        parameter.normal_(0.0, _SMALL)
    elif name == "layer_scale":
        parameter.fill_(_LAYER_SCALE)
    elif parameter.dim() < 2:
        zeros.append(parameter)
    else:
        parameter.normal_(0.0, 1.0 / math.sqrt(_inputs(owner, parameter)))


def _inputs(owner: nn.Module, weight: Tensor) -> int:
    """How many values a weight sums up; transformers' Conv1D and transposed convolutions have them first."""
    if type(owner).__name__ == "Conv1D" or isinstance(owner, nn.modules.conv._ConvTransposeNd):
        return max(1, weight.shape[0])
    return max(1, weight.numel() // max(1, weight.shape[0]))


def _fill(tensors: List[Tensor], value: float) -> None:
    if not tensors:
        return
    torch._foreach_zero_(tensors)
    if value:
        torch._foreach_add_(tensors, value)
