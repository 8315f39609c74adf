"""Recurrent layers as cuDNN sees them, on fake CPU tensors: one op, ``forerun.rnn``, with all weights in one buffer.

Under autocast CUDA runs them in float16, whatever autocast's own type, and copies the weights on each call.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Sequence

import torch
from torch import Tensor

_OPTIONS = (
    "str mode, bool has_biases, int layers, int hidden, int proj_size, float dropout, "
    "bool bidirectional, bool batch_first"
)


def _sequence(input: Tensor, features: int, batch_first: bool) -> Tensor:
    """A sequence that cuDNN writes, for this input: time first in memory."""
    if not batch_first:
        return input.new_empty((input.shape[0], input.shape[1], features))
    return input.new_empty((input.shape[1], input.shape[0], features)).transpose(0, 1)


def _rnn(
    input: Tensor,
    states: List[Tensor],
    weights: List[Tensor],
    mode: str,
    has_biases: bool,
    layers: int,
    hidden: int,
    proj_size: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> List[Tensor]:
    return [
        _sequence(input, (proj_size or hidden) * (2 if bidirectional else 1), batch_first),
        *(state.new_empty(state.shape) for state in states),
        input.new_empty((0,), dtype=torch.uint8),
    ]


def _rnn_backward(
    grads: List[Tensor],
    input: Tensor,
    states: List[Tensor],
    weights: List[Tensor],
    out: Tensor,
    reserve: Tensor,
    given: List[bool],
    mode: str,
    has_biases: bool,
    layers: int,
    hidden: int,
    proj_size: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> List[Tensor]:
    flat = weights[0].new_empty(sum(weight.numel() for weight in weights))
    parts = flat.split([weight.numel() for weight in weights])
    return [
        _sequence(input, input.shape[2], batch_first),
        *(state.new_empty(state.shape) for state in states),
        *(part.view(weight.shape) for part, weight in zip(parts, weights)),
    ]


class _Rnn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state_count: int, options: Any, input: Tensor, *tensors: Tensor) -> Any:
        states, weights = list(tensors[:state_count]), list(tensors[state_count:])
        out, *rest = torch.ops.forerun.rnn(input, states, weights, *options)
        ctx.save_for_backward(input, *tensors, out, rest[-1])
        ctx.state_count, ctx.options = state_count, options
        ctx.set_materialize_grads(False)
        return (out, *rest[:-1])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        input, *tensors, out, reserve = ctx.saved_tensors
        states, weights = tensors[: ctx.state_count], tensors[ctx.state_count :]
        defined = [grad for grad in grads if grad is not None]
        made = torch.ops.forerun.rnn_backward(
            defined, input, states, weights, out, reserve, [grad is not None for grad in grads], *ctx.options
        )
        return (None, None, *made)


def cudnn_order(weights: Sequence[Tensor]) -> List[Tensor]:
    """The weights of a recurrent layer as cuDNN stores them: the matrices of all layers, then the biases."""
    return [weight for weight in weights if weight.dim() > 1] + [weight for weight in weights if weight.dim() == 1]


@contextlib.contextmanager
def _without_cache(tensor: Tensor) -> Iterator[None]:
    """The fake mode's cache of results would keep a storage that is an argument alive for good."""
    mode = getattr(tensor, "fake_mode", None)
    if mode is None:
        yield
        return
    enabled, mode.cache_enabled = mode.cache_enabled, False
    try:
        yield
    finally:
        mode.cache_enabled = enabled


def _look_at_flat(weights: Sequence[Tensor]) -> None:
    """PyTorch's look at the buffer that holds all weights."""
    with _without_cache(weights[0]):
        torch.empty(0, dtype=weights[0].dtype).set_(weights[0].untyped_storage())


def _halved_weights(weights: Sequence[Tensor]) -> List[Tensor]:
    """Copies into one float16 buffer: how CUDA's autocast casts a recurrent layer, whatever its own type."""
    flat = torch.zeros(sum(weight.numel() for weight in weights), dtype=torch.float16)
    offsets = {}
    offset = 0
    for weight in cudnn_order(weights):
        offsets[id(weight)] = offset
        offset += weight.numel()
    with _without_cache(flat):
        parts = [
            torch.empty(0, dtype=torch.float16).set_(flat.untyped_storage(), offsets[id(weight)], (weight.numel(), 1))
            for weight in weights
        ]
    return [part.copy_(weight.view(part.shape)) for part, weight in zip(parts, weights)]


def _recurrent(mode: str) -> Callable[..., Any]:
    def call(
        input: Tensor,
        states: Any,
        weights: Any,
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        states = list(states) if isinstance(states, (list, tuple)) else [states]
        hidden = states[-1].shape[-1]
        proj_size = states[0].shape[-1] if states[0].shape[-1] != hidden else 0
        _look_at_flat(weights)
        if torch.is_autocast_enabled("cpu"):
            weights = _halved_weights(weights)
            states = [state.to(torch.float16) for state in reversed(states)][::-1]
            input = input.to(torch.float16)
        options = (mode, has_biases, layers, hidden, proj_size, dropout if train else 0.0, bidirectional, batch_first)
        return _Rnn.apply(len(states), options, input, *states, *weights)

    return call


def register_rnn(own: Any, library: Any) -> None:
    """Defines ``forerun.rnn`` in `own` and puts it in the place of the CPU's recurrent layers in `library`, aten's."""
    own.define(f"rnn(Tensor input, Tensor[] states, Tensor[] weights, {_OPTIONS}) -> Tensor[]")
    own.define(
        "rnn_backward(Tensor[] grads, Tensor input, Tensor[] states, Tensor[] weights, Tensor out, Tensor reserve, "
        f"bool[] given, {_OPTIONS}) -> Tensor[]"
    )
    own.impl("rnn", _rnn, "Meta")
    own.impl("rnn_backward", _rnn_backward, "Meta")
    for name, mode in (
        ("lstm.input", "lstm"),
        ("gru.input", "gru"),
        ("rnn_tanh.input", "tanh"),
        ("rnn_relu.input", "relu"),
    ):
        library.impl(name, _recurrent(mode), "AutogradCPU")
