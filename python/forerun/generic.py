"""Makes the CPU dispatcher behave like CUDA's, for captures on a machine without a GPU.

Inside ``cuda_like_dispatch()`` tensors on the CPU (fake ones, without data) meet what a GPU's tensors would:

- autocast casts what CUDA's autocast casts, not what the CPU's does;
- dropout is one fused op, batch norm one op without the CPU's bookkeeping;
- attention that a fused kernel can run stays one op, ``forerun.attention``: which kernel it is, is for the device to
  say. Results lie in memory as a GPU of compute capability 9 writes them;
- a recurrent layer stays one op, ``forerun.rnn``, with its weights in one buffer; autocast copies them to float16 as
  CUDA's does.

Everything is undone on leaving. What remains for the reader of the record (``backend: generic``): naming the CUDA forms
of these two and of batch norm. Left out: packed sequences, whose lengths are data, and single cells, which run as the
composed ops they are on the CPU.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Iterator

import torch

from .cuda_autocast import Autocast, register_autocast
from .generic_layers import register_layers
from .generic_rnn import register_rnn


@contextlib.contextmanager
def cuda_like_dispatch() -> Iterator[None]:
    """While inside, ops on CPU tensors are dispatched as they would be for CUDA ones."""
    own = torch.library.Library("forerun", "DEF")
    aten = torch.library.Library("aten", "IMPL")
    autocast = Autocast()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are overridden is the purpose
        register_autocast(aten, autocast)
        register_layers(own, aten)
        register_rnn(own, aten)
    try:
        with autocast.forgetting(), autocast.taken_for_cudas():
            yield
    finally:
        aten._destroy()
        own._destroy()
