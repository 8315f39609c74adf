"""Large buffers of random numbers that the tensors of timed ops are views of, so that none has to be filled.

Numbers are normal: what is all zero draws less power and runs faster. What an op writes to lies in buffers of its own,
which `TensorPool.refresh` fills anew. Tensors are taken one behind the other, so a tensor lies elsewhere each time.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch

from forerun.grids.sampling import TensorSpec, contiguous

_ALIGNMENT = 512  # bytes, as the caching allocator's


class PoolTooSmall(MemoryError):
    """A tensor is larger than the buffers that tensors are taken from."""


class _Buffer:
    """A flat tensor of random numbers; views are taken one behind the other, and from the start again at its end."""

    def __init__(self, device: torch.device, dtype: torch.dtype, size: int,
                 fill: Callable[[torch.Tensor], Any]) -> None:
        self.flat = torch.empty(size, dtype=dtype, device=device)
        self.step = max(1, _ALIGNMENT // self.flat.element_size())
        self.used = False
        self._next = 0
        self._fill = fill
        fill(self.flat)

    def take(self, spec: TensorSpec) -> torch.Tensor:
        extent = spec.extent()
        if extent > self.flat.numel():
            raise PoolTooSmall(f"a {spec.dtype} tensor of {list(spec.shape)} is larger than the pool")
        begin = self._next if self._next + extent <= self.flat.numel() else 0
        self._next = begin + -(-extent // self.step) * self.step
        self.used = True
        strides = contiguous(spec.shape) if spec.strides is None else spec.strides
        return self.flat.as_strided(spec.shape, strides, begin)

    def renew(self) -> None:
        if self.used:
            self.used = False
            self._fill(self.flat)


class TensorPool:
    """Buffers that all tensors are taken from, so that no sample has to be filled.

    :param max_bytes: of the largest buffer (float32); those of other dtypes are smaller
    """

    def __init__(self, device: torch.device, max_bytes: int) -> None:
        self.device = device
        self._read: Dict[str, _Buffer] = {}
        self._write: Dict[str, _Buffer] = {}
        for name, part in (("float32", 1.0), ("bfloat16", 0.75), ("float16", 0.5)):
            dtype = getattr(torch, name)
            size = int(max_bytes * part) // dtype.itemsize
            self._read[name] = _Buffer(device, dtype, size, torch.Tensor.normal_)
            self._write[name] = _Buffer(device, dtype, size, torch.Tensor.normal_)
        self._positive = _Buffer(device, torch.float32, max_bytes // 8, lambda flat: flat.uniform_(0.5, 1.5))
        self._bool = _Buffer(device, torch.bool, max_bytes // 4, lambda flat: flat.bernoulli_(0.9))
        buffers = (*self._read.values(), *self._write.values(), self._positive, self._bool)
        self._addresses = {buffer.flat.untyped_storage().data_ptr() for buffer in buffers}

    def tensor(self, spec: TensorSpec, written: bool = False, positive: bool = False) -> torch.Tensor:
        """A tensor of random numbers, at a place other than those of the tensors given out before it."""
        if spec.extent() == 0:
            return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=self.device)
        if positive and spec.dtype == "float32":
            return self._positive.take(spec)
        if spec.dtype == "bool":
            return self._bool.take(spec)
        buffers = self._write if written else self._read
        if spec.dtype in buffers:
            return buffers[spec.dtype].take(spec)
        return self.integers(spec, 1000)

    def integers(self, spec: TensorSpec, bound: int) -> torch.Tensor:
        """Random integers in [0, bound) in memory of their own."""
        dtype = getattr(torch, spec.dtype)
        if spec.strides is None:
            return torch.randint(max(1, bound), spec.shape, dtype=dtype, device=self.device)
        flat = torch.randint(max(1, bound), (spec.extent(),), dtype=dtype, device=self.device)
        return flat.as_strided(spec.shape, spec.strides)

    def owns(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a view of the pool's buffers."""
        return tensor.untyped_storage().data_ptr() in self._addresses

    def holds(self, spec: TensorSpec) -> bool:
        """Whether `tensor` takes such a tensor from a buffer, rather than making it."""
        return spec.dtype in self._read or spec.dtype == "bool"

    def refresh(self) -> None:
        """Fills anew what ops have written to since the last time."""
        for buffer in (*self._write.values(), self._positive):
            buffer.renew()
