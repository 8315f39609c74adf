"""Captures zoo models without a GPU, for the test that the mapping to CUDA gives what the derivation gives.

    python -m tests.capture_twins twins.jsonl      (from python/; torchvision and transformers installed)

Each record names the zoo's configuration (family, args, input), so that a reader can derive the same iteration.
"""
import json
import sys
from typing import Any, Dict, List, Tuple

import torch

from forerun import torch_models as models
from forerun.capture import capture
from forerun.measure import make_optimizer

SGD = {"name": "SGD", "impl": "foreach", "lr": 0.1, "momentum": 0.9}
ADAMW = {"name": "AdamW", "impl": "foreach", "lr": 1e-3, "weight_decay": 0.01}
FUSED = {"name": "AdamW", "impl": "fused", "lr": 1e-3, "weight_decay": 0.01}
IMAGE, TOKENS = ["image", 8, 3, 64, 10], ["tokens", 4, 32, 1000, "hf"]
WORDS = ["tokens", 4, 32, 1000, "lm"]
RECURRENT: Dict[str, Any] = {"vocab": 1000, "d": 64, "h": 128, "layers": 2}
CELL = "|none~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_3x3~2|"
Case = Tuple[str, Dict[str, Any], List[Any], Dict[str, Any], bool]
CASES: List[Case] = [
    ("resnet", {"block": "basic", "layers": [1, 1, 1, 1], "width": 64, "classes": 10}, IMAGE, SGD, False),
    ("resnet", {"block": "bottleneck", "layers": [1, 1, 1, 1], "width": 64, "classes": 10}, IMAGE, SGD, True),
    (
        "regnet",
        {"se": 0.25, "depth": 6, "w_0": 24, "w_a": 24.0, "w_m": 2.5, "group_width": 8},
        ["image", 4, 3, 64, 1000],
        SGD,
        True,
    ),
    ("nas_cell", {"cell": CELL, "ch": 8, "cells": 2}, ["image", 4, 3, 32, 10], SGD, False),
    ("nas_cell", {"cell": CELL, "ch": 8, "cells": 2}, ["image", 4, 3, 32, 10], SGD, True),
    ("unet", {}, ["dense", 1, 3, 64, 2], SGD, False),
    (
        "vit",
        {"image": 64, "patch": 16, "layers": 2, "heads": 4, "dim": 64, "mlp": 128},
        IMAGE[:4] + [1000],
        ADAMW,
        False,
    ),
    ("swin", {"dim": 32, "depths": [2, 1, 1, 1], "window": 4}, ["image", 4, 3, 64, 1000], ADAMW, False),
    ("transformer", {"vocab": 1000, "d": 64, "heads": 4, "enc": 1, "dec": 1, "ff": 128}, WORDS, ADAMW, False),
    ("bert", {"layers": 2, "hidden": 64, "heads": 4, "intermediate": 128, "vocab": 1000}, TOKENS, ADAMW, False),
    ("gpt2", {"layers": 2, "width": 64, "heads": 4, "vocab": 1000}, TOKENS, FUSED, False),
    (
        "llama",
        {"layers": 2, "hidden": 64, "intermediate": 128, "heads": 4, "kv_heads": 2, "vocab": 1000},
        TOKENS,
        ADAMW,
        False,
    ),
    ("lstm", {"kind": "lstm", "stack": False, **RECURRENT}, WORDS, ADAMW, False),
    ("gru", {"kind": "gru", "stack": True, **RECURRENT}, WORDS, SGD, False),
    ("rnn", {"kind": "rnn", "stack": False, **RECURRENT}, WORDS, SGD, False),
]


def twin(case: Case, precision: str) -> Dict[str, Any]:
    family, args, input, optimizer, channels_last = case
    with models.fast_initialisation():
        model = models.build(family, args, input)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    batch = models.make_batch(input, "cpu", args, channels_last)
    record = capture(
        model,
        make_optimizer(optimizer, model),
        batch,
        models.training_loss,
        autocast="bf16" if precision == "amp_bf16" else None,
        backend="generic",
        name=f"{family}{'-channels_last' if channels_last else ''}-{precision}",
    )
    record.update(family=family, args=args, input=input)
    record["run"]["optimizer"] = optimizer
    return record


if __name__ == "__main__":
    with open(sys.argv[1], "w") as out:
        for case in CASES:
            for precision in ("fp32", "amp_bf16"):
                record = twin(case, precision)
                print(f"{record['id']}: {len(record['ops']['name'])} ops", file=sys.stderr)
                out.write(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n")
