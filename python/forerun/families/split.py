"""The split of the data set by family: what models are fitted to, what they are judged by, and RandWire
and cells of NAS-Bench-201, which are out of distribution.

Train and test families of the ETS paper stay on their sides; families that the paper does not have are for training.
Records of the what-if models are judged whatever their family says, and near twins of those models (nine tenths of the
weights have the same shapes) are trained on by nobody.
`python -m forerun.families.split` prints what data/h200/split.json holds.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

TRAIN = ("resnet", "wide_resnet", "mnasnet", "alexnet", "convnext", "efficientnet", "transformer", "lstm", "rnn",
         "densenet", "mobilenet_v2", "mobilenet_v3", "unet", "bert", "gpt2", "llama", "t5", "dlrm")
TEST = ("googlenet", "inception_v3", "regnet", "shufflenet", "squeezenet", "swin", "vgg", "vit", "gru")
OOD = ("randwire", "nas_cell")
WHATIF = ("resnet50", "vgg19", "vit_b_16", "bert_base", "gnmt")  # the same step in several variants
IDS = {  # beginnings of ids
    "whatif": ("pairs/",),
    "twin": ("starter/00105-resnet", "starter/00143-resnet", "starter/00217-resnet", "h200/00032-bert",
             "h200/00605-bert", "h200/00027-mobilenet_v3", "h200/00041-mobilenet_v3", "h200/00229-mobilenet_v3",
             "h200/00253-mobilenet_v3", "h200/00488-mobilenet_v3", "h200/00565-mobilenet_v3",
             "h200/00769-mobilenet_v3", "h200/00798-mobilenet_v3"),
}


def split() -> Dict[str, List[str]]:
    return {"train": list(TRAIN), "test": list(TEST), "ood": list(OOD), "whatif": list(WHATIF)}


def part_of(splits: Mapping[str, Any], identifier: str, family: str) -> Optional[str]:
    """The part of a record by what a split.json holds: by the beginning of its id, else by its family."""
    for part, beginnings in splits.get("ids", {}).items():
        if identifier.startswith(tuple(beginnings)):
            return str(part)
    return next((part for part, families in splits.items() if part != "ids" and family in families), None)


def side(family: str) -> str:
    """"train", "test", "ood" or "whatif"; raises ValueError for a family in none."""
    for name, families in split().items():
        if family in families:
            return name
    raise ValueError(f"family {family!r} is in no part of the split")


def text() -> str:
    """The split as the file has it."""
    parts = [f'  "{name}": {json.dumps(families)}' for name, families in split().items()]
    ids = [f'    "{part}": {json.dumps(beginnings)}' for part, beginnings in IDS.items()]
    parts.append('  "ids": {\n' + ",\n".join(ids) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    print(text(), end="")
