"""The split of the data set by family: what models are fitted to, what they are judged by, and RandWire,
which is out of distribution.

Train and test families of the ETS paper stay on their sides; families that the paper does not have are for training.
`python -m forerun.families.split` prints what data/h200/split.json holds.
"""

from __future__ import annotations

import json
from typing import Dict, List

TRAIN = ("resnet", "wide_resnet", "mnasnet", "alexnet", "convnext", "efficientnet", "transformer", "lstm", "rnn",
         "densenet", "mobilenet_v2", "mobilenet_v3", "unet", "bert", "gpt2", "llama", "t5", "dlrm")
TEST = ("googlenet", "inception_v3", "regnet", "shufflenet", "squeezenet", "swin", "vgg", "vit", "gru")
OOD = ("randwire",)
WHATIF = ("resnet50", "vgg19", "vit_b_16", "bert_base", "gnmt")  # the same step in several variants


def split() -> Dict[str, List[str]]:
    return {"train": list(TRAIN), "test": list(TEST), "ood": list(OOD), "whatif": list(WHATIF)}


def side(family: str) -> str:
    """"train", "test", "ood" or "whatif"; raises ValueError for a family in none."""
    for name, families in split().items():
        if family in families:
            return name
    raise ValueError(f"family {family!r} is in no part of the split")


def text() -> str:
    """The split as the file has it."""
    parts = [f'  "{name}": {json.dumps(families)}' for name, families in split().items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    print(text(), end="")
