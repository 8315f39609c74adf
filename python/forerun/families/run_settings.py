"""How a sampled configuration is trained: precision, optimizer and its implementation, memory layout."""

from __future__ import annotations

import random
from typing import Any, Dict

from .drawing import weighted

LEARNING_RATE = 0.001
_PRECISIONS = (("fp32", 0.4), ("tf32", 0.15), ("amp_bf16", 0.45))
_OPTIMIZERS = (("SGD", 0.35), ("Adam", 0.2), ("AdamW", 0.25), ("RMSprop", 0.12), ("Adagrad", 0.08))
_FUSED = ("SGD", "Adam", "AdamW")  # those that PyTorch has as one CUDA kernel in every version since 2.4
_CHANNELS_LAST = 0.35


def run_settings(rng: random.Random, kind: str) -> Dict[str, Any]:
    """The `run` field for an input of this kind; only images have layouts."""
    return {"precision": weighted(rng, _PRECISIONS), "optimizer": optimizer(rng),
            "channels_last": kind in ("image", "dense") and rng.random() < _CHANNELS_LAST, "cudnn_benchmark": False,
            "accumulate": 1}


def optimizer(rng: random.Random) -> Dict[str, Any]:
    name = weighted(rng, _OPTIMIZERS)
    implementations = [("foreach", 0.5), ("forloop", 0.15)] + ([("fused", 0.35)] if name in _FUSED else [])
    momentum = {"SGD": 0.65, "RMSprop": 0.25}.get(name, 0.0)
    decay = {"AdamW": 0.01}.get(name, 0.0001)
    return {"name": name, "impl": weighted(rng, implementations), "lr": LEARNING_RATE,
            "momentum": 0.9 if rng.random() < momentum else 0.0,
            "weight_decay": decay if rng.random() < (0.8 if name == "AdamW" else 0.4) else 0.0}
