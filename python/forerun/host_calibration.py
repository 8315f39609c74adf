"""How fast the host is right now: microseconds a call of several kinds of op on tensors too small for the GPU to
matter.

The speed of a host differs from machine to machine and drifts within minutes, so it is taken beside every measured
configuration. Readings on CPU tensors tell dispatch and autograd without the launch of kernels (forerun.calibrate).
"""
from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Dict, List

import torch

_CALLS, _ROUNDS, _CHAIN = 40, 3, 24


def host_us(device: torch.device) -> Dict[str, Any]:
    """Median host time of a call, forward by kind; the same for the backward of a chain of such calls, by node."""
    square = torch.full((64, 64), 0.01, device=device)
    image = torch.full((1, 8, 8, 8), 0.01, device=device)
    kernel = torch.full((8, 8, 3, 3), 0.01, device=device)
    norm = torch.ones(64, device=device)
    many = [torch.full((16,), 0.01, device=device) for _ in range(40)]
    scale = torch.ones((), device=device)
    forward: Dict[str, Callable[[], Any]] = {
        "view": lambda: square.view(4096),
        "add": lambda: square.add_(1e-6),
        "multiply": lambda: square * scale,
        "matmul": lambda: torch.mm(square, square),
        "convolution": lambda: torch.conv2d(image, kernel, padding=1),
        "norm": lambda: torch.layer_norm(square, (64,), norm, norm),
        "foreach": lambda: torch._foreach_add_(many, 1e-6),
    }
    leaf, leaf_image = square.clone().requires_grad_(), image.clone().requires_grad_()
    backward: Dict[str, Any] = {
        "view": (leaf, lambda x: x.view(4096).view(64, 64), 2),
        "multiply": (leaf, lambda x: x * scale, 1),
        "matmul": (leaf, lambda x: torch.mm(x, square), 1),
        "convolution": (leaf_image, lambda x: torch.conv2d(x, kernel, padding=1), 1),
        "norm": (leaf, lambda x: torch.layer_norm(x, (64,), norm, norm), 1),
    }
    result: Dict[str, Any] = {name: _forward_us(call) for name, call in forward.items()}
    result["backward"] = {name: _backward_us(start, step) / nodes for name, (start, step, nodes) in backward.items()}
    result["backward"] = {name: round(value, 2) for name, value in result["backward"].items()}
    return result


def _forward_us(call: Callable[[], Any]) -> float:
    call()
    times: List[float] = []
    for _ in range(_ROUNDS):
        _wait()
        begin = time.perf_counter()
        for _ in range(_CALLS):
            call()
        times.append((time.perf_counter() - begin) / _CALLS)
    return round(statistics.median(times) * 1e6, 2)


def _backward_us(start: torch.Tensor, step: Callable[[torch.Tensor], torch.Tensor]) -> float:
    times: List[float] = []
    for _ in range(_ROUNDS):
        value = start
        for _ in range(_CHAIN):
            value = step(value)
        gradient = torch.ones_like(value)
        _wait()
        begin = time.perf_counter()
        torch.autograd.grad(value, start, gradient)
        times.append((time.perf_counter() - begin) / _CHAIN)
    return statistics.median(times) * 1e6


def _wait() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
