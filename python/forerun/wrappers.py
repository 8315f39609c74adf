"""Models that other parts of PyTorch have wrapped: what of it a record has, in words, or why there is none."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator, List

import torch

from .host_values import CaptureError

_SHARDED = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
_ONE_GPU = "what is recorded is the iteration of one GPU, without communication"


def wrapper_words(model: torch.nn.Module) -> List[str]:
    """Warnings; raises CaptureError for what cannot be recorded."""
    words: List[str] = []
    if is_sharded(model):
        raise CaptureError(
            "the model's parameters are sharded over GPUs: record it before it is wrapped, and ask `forerun scale` for "
            "many GPUs"
        )
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        size = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
        words.append(
            f"DistributedDataParallel: {_ONE_GPU} and without the buckets that it keeps of gradients "
            f"({size / 2**20:,.1f} MiB); `forerun scale` answers for many GPUs"
        )
    if isinstance(model, torch.nn.DataParallel):
        words.append(f"DataParallel: {_ONE_GPU}, which takes the whole batch")
    if any(is_compiled(module) for module in model.modules()):
        words.append(
            "torch.compile: what is recorded is what runs without it; kernels that the compiler joins are predicted "
            "one by one, unless it is captured with --compile (compile=True) and asked with it"
        )
    return words


def is_sharded(model: torch.nn.Module) -> bool:
    """Whether its parameters lie in parts on several GPUs."""
    classes = {cls.__name__ for module in model.modules() for cls in type(module).__mro__}
    if classes.intersection(_SHARDED):
        return True
    return any(type(parameter.data).__name__ == "DTensor" for parameter in model.parameters())


def is_compiled(module: torch.nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


@contextlib.contextmanager
def unwrapped(model: Any) -> Iterator[None]:
    """While inside, a wrapper waits for no other process, and what was compiled runs as it was written."""
    with contextlib.ExitStack() as stack:
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            stack.enter_context(model.no_sync())
        if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):  # since PyTorch 2.6
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for module in model.modules():
            if not is_compiled(module):
                continue
            kept = dict(vars(module))
            stack.callback(vars(module).update, kept)
            if "_orig_mod" in module._modules:
                vars(module)["forward"] = module._modules["_orig_mod"]
            vars(module)["_compiled_call_impl"] = None
        yield
