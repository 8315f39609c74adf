"""Whole tensors that the program reads on the host: ``.tolist()`` and ``.numpy()`` of tensors without data.

On a GPU either is one copy that the host waits for; on fake tensors the first would read number by number and the
second fail. While inside ``arrays_read`` both give what ``HostValues`` knows, at the cost of one read.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from .host_values import CaptureError, HostValues
from .source_line import source_line


@contextlib.contextmanager
def arrays_read(values: HostValues) -> Iterator[None]:
    original = FakeTensor.tolist

    def read(tensor: Any) -> Any:
        """The tensor's twin, or None; its first number stands for the copy of all."""
        known = values.value_of(tensor)
        if known is not None and tensor.numel() > 0:
            tensor.as_strided((), (), tensor.storage_offset()).item()
        return None if known is None else known[0]

    def tolist(tensor: Any) -> Any:
        twin = read(tensor)
        return original(tensor) if twin is None else twin.tolist()

    def numpy(tensor: Any, **_options: Any) -> Any:
        twin = read(tensor)
        if twin is None:
            raise CaptureError(
                f"{source_line()}: an array is made of values that only a real run computes; record a variant of the "
                "model that does without"
            )
        with _disable_current_modes():
            return twin.clone().numpy()

    FakeTensor.tolist, FakeTensor.numpy = tolist, numpy
    try:
        yield
    finally:
        FakeTensor.tolist = original
        del FakeTensor.numpy
