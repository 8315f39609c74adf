"""What questions can be asked of: GPUs, links, models, optimizations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Sequence, Tuple, Union

from .asking import Json, ask_json, ask_lines
from .quantities import Bytes
from .words import Path


@dataclass(frozen=True)
class Device:
    """A GPU that predictions can be made for."""

    name: str
    aliases: Tuple[str, ...]  # short names that `gpu=` takes
    memory: Bytes
    measured: str  # whether predictions for it were compared with measurements
    json: Json = field(repr=False)


@dataclass(frozen=True)
class Family:
    """A family of models: those that have a name, and the parameters that `set=` changes."""

    name: str
    description: str
    models: Tuple[str, ...]
    parameters: Mapping[str, str]  # with their defaults
    json: Json = field(repr=False)


def devices(device_files: Union[None, Path, Sequence[Path]] = None) -> Tuple[Device, ...]:
    """The GPUs there are, and those of files of yours."""
    files = [device_files] if isinstance(device_files, (str,)) or hasattr(device_files, "__fspath__") else device_files
    return tuple(
        Device(one["name"], tuple(one["aliases"]), Bytes(one["memory"]), str(one["measured"]), one)
        for one in ask_lines("devices", {"device_files": files})
    )


def links() -> Tuple[Json, ...]:
    """The links between GPUs and nodes that `network=` names."""
    return tuple(ask_lines("links", {}))


def models() -> Tuple[Family, ...]:
    """The models that can be asked for by name, by family; those of config.json files with their public checkpoints."""
    return tuple(
        Family(
            one["family"],
            one["description"],
            tuple(one["models"]),
            {parameter["name"]: parameter["default"] for parameter in one["parameters"]},
            one,
        )
        for one in ask_lines("models", {})
    )


def optimizations() -> Tuple[Json, ...]:
    """What `whatif` can apply: name, summary and parameters of each."""
    return tuple(ask_json("optimizations", {}))
