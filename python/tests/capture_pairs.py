"""Captures the same training iterations with and without the GPU, for the test that both give the same prediction.

    python -m tests.capture_pairs pairs.jsonl     (from python/, on a machine with a GPU; torchvision and transformers
    installed)

Every model gives two records, NAME/cuda and NAME/generic. Says how much GPU memory the captures took, which should be
none.
"""
import json
import sys
from typing import Any, Dict, List, Optional, Tuple

import torch

from forerun import torch_models as models
from forerun.capture import capture
from forerun.measure import make_optimizer

IMAGE, TOKENS = ["image", 32, 3, 224, 1000], ["tokens", 8, 256, 30522, "hf"]
ADAMW = {"name": "AdamW", "impl": "foreach", "lr": 1e-3}
CASES: List[Tuple[str, str, Dict[str, Any], List[Any], Dict[str, Any]]] = [
    (
        "resnet18",
        "resnet",
        {"block": "basic", "layers": [2, 2, 2, 2], "width": 64, "classes": 1000},
        IMAGE,
        {"name": "SGD", "impl": "foreach", "lr": 0.1, "momentum": 0.9},
    ),

    ("vit_b_16", "vit", {"image": 224, "patch": 16, "layers": 12, "heads": 12, "dim": 768, "mlp": 3072}, IMAGE, ADAMW),
    ("bert_base", "bert", {}, TOKENS, ADAMW),
    ("gpt2", "gpt2", {}, ["tokens", 8, 256, 50257, "hf"], {"name": "AdamW", "impl": "fused", "lr": 1e-3}),
    ("lstm", "lstm", {"vocab": 10000, "d": 256, "h": 650, "layers": 2}, ["tokens", 32, 128, 10000, "lm"], ADAMW),
]


def pair(
    name: str, family: str, args: Dict[str, Any], input: List[Any], optimizer: Dict[str, Any], autocast: Optional[str]
) -> None:
    with models.fast_initialisation():
        model = models.build(family, args, input)
    batch = models.make_batch(input, "cpu", args)
    suffix = "-amp" if autocast else ""
    for backend in ("generic", "cuda") if torch.cuda.is_available() else ("generic",):
        before = torch.cuda.memory_allocated() if backend == "cuda" else 0
        record = capture(
            model,
            make_optimizer(optimizer, model),
            batch,
            models.training_loss,
            autocast=autocast,
            backend=backend,
            name=f"{name}{suffix}/{backend}",
        )
        if backend == "cuda":
            print(
                f"{record['id']}: {torch.cuda.max_memory_allocated() - before} bytes allocated on the GPU",
                file=sys.stderr,
            )
        print(f"{record['id']}: {len(record['ops']['name'])} ops {record.get('assumed', '')}", file=sys.stderr)
        out.write(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n")
        out.flush()


if __name__ == "__main__":
    failed = 0
    with open(sys.argv[1], "w") as out:
        for case in CASES:
            for precision in (None, "bf16"):
                try:
                    pair(*case, precision)
                except Exception as error:  # the other pairs are worth having
                    import traceback

                    traceback.print_exc()
                    print(f"{case[0]}: {error}", file=sys.stderr)
                    failed += 1
    sys.exit(failed > 0)
