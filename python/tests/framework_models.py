"""What tests of frameworks train: a small network with dropout and batch norm, and its data."""
from __future__ import annotations

from typing import Any, Dict, Iterator

import torch

Json = Dict[str, Any]
F = torch.nn.functional


def network() -> Any:
    layers = [torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 4)]
    return torch.nn.Sequential(*layers)


def samples(count: int = 64) -> Any:
    generator = torch.Generator().manual_seed(1)
    images, labels = torch.randn(count, 16, generator=generator), torch.randint(4, (count,), generator=generator)
    return torch.utils.data.TensorDataset(images, labels)


class Stream(torch.utils.data.IterableDataset[Any]):
    """Samples that come once."""

    def __init__(self) -> None:
        self._samples = iter(samples())

    def __iter__(self) -> Iterator[Any]:
        return self._samples


class Endless(torch.utils.data.Dataset[Any]):
    """More samples than any GPU holds, made when they are asked for."""

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: int) -> Any:
        return torch.ones(16), torch.tensor(index % 4)


def cross_entropy(model: Any, batch: Any) -> Any:
    return F.cross_entropy(model(batch[0]), batch[1])


def iteration(record: Json) -> Json:
    """All that a record says of ops, tensors and settings; autograd's numbers begin anew."""
    sequence = record["ops"]["sequence"]
    first = min(number for number in sequence if number >= 0)
    ops = {**record["ops"], "sequence": [number - first if number >= 0 else number for number in sequence]}
    return {**{key: value for key, value in record.items() if key not in ("env", "id")}, "ops": ops}
