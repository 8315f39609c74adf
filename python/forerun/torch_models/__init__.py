"""Torch models of the zoo's families: family, args and input of a configuration -> module, batch and loss.

    model = build("resnet", {"block": "basic", "layers": [2, 2, 2, 2]}, ["image", 64, 3, 224, 1000])
    batch = make_batch(["image", 64, 3, 224, 1000], "cuda")
    loss = training_loss(model, batch)

A family is a function in one of this folder's files and a line in BUILDERS. What args mean is what `forerun zoo` lists;
a missing one has the zoo's default, and parameters have the zoo's names and number. Needs torch, torchvision for most
image families and transformers for bert, gpt2, llama and t5, imported when such a family is built.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence

from torch import nn

from . import convolutional, language, nas_cell, plain, randwire, vision
from .batches import loss, make_batch, training_loss
from .initialisation import fast_initialisation, initialise

__all__ = ["BUILDERS", "build", "fast_initialisation", "initialise", "loss", "make_batch", "training_loss"]

Builder = Callable[[Mapping[str, Any], Sequence[Any]], nn.Module]

BUILDERS: Dict[str, Builder] = {
    "resnet": convolutional.resnet,
    "wide_resnet": convolutional.wide_resnet,
    "alexnet": plain.alexnet,
    "vgg": convolutional.vgg,
    "googlenet": convolutional.googlenet,
    "inception_v3": convolutional.inception_v3,
    "squeezenet": convolutional.squeezenet,
    "densenet": convolutional.densenet,
    "shufflenet": convolutional.shufflenet,
    "mnasnet": convolutional.mnasnet,
    "efficientnet": convolutional.efficientnet,
    "regnet": convolutional.regnet,
    "convnext": vision.convnext,
    "randwire": randwire.randwire,
    "unet": plain.unet,
    "vit": vision.vit,
    "swin": vision.swin,
    "transformer": plain.transformer,
    "bert": language.bert,
    "gpt2": language.gpt2,
    "llama": language.llama,
    "t5": language.t5,
    "dlrm": plain.dlrm,
    "mobilenet_v2": convolutional.mobilenet_v2,
    "mobilenet_v3": convolutional.mobilenet_v3,
    "lstm": plain.recurrent,
    "rnn": plain.recurrent_tanh,
    "gru": plain.recurrent_gru,
    "nas_cell": nas_cell.nas_cell,
}


def build(family: str, args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    """The module of a configuration, on the current default device (CPU), float32, in training mode.

    Raises ValueError for an unknown family, and whatever a model's constructor raises for args it cannot take.
    """
    builder = BUILDERS.get(family)
    if builder is None:
        raise ValueError(f"no family is called {family!r}; there are {', '.join(BUILDERS)}")
    return builder(args, input).train()
