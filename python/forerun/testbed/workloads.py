"""What the testbed trains: model x batch x optimizer x synchronous or asynchronous, drawn from a seed. No torch.

MODELS names the models; a setting takes those whose parameters cross its links in reasonable time. Each model of a
setting gets its workloads in turn, so that any beginning of a plan covers nearly all models.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..configuration import Configuration
from .setting import Setting

LONGEST_EXCHANGE_S = 0.7
"""Models whose exchange would take longer in a setting are left to faster ones."""

_OPTIMIZERS = (("SGD", 0.0), ("SGD", 0.9), ("Adam", 0.0), ("AdamW", 0.0), ("RMSprop", 0.0))


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of the zoo: family and args as `forerun zoo` names them, and what it may be fed with."""

    name: str
    family: str
    args: Mapping[str, Any]
    millions: float  # parameters, with the largest of the inputs
    kind: str  # of the input
    batches: Tuple[int, ...]
    sizes: Tuple[int, ...]  # side of an image, length of a text
    last: Tuple[Any, ...]  # classes of an image; vocabulary and flavour of a text


@dataclasses.dataclass(frozen=True)
class Workload:
    """A configuration of a model, and how its workers are kept in step."""

    id: str
    model: str
    mode: str
    configuration: Configuration


def _image(name: str, family: str, millions: float, batches: Sequence[int], sizes: Sequence[int], classes: int = 1000,
           **args: Any) -> Model:
    return Model(name, family, args, millions, "image", tuple(batches), tuple(sizes), (classes,))


def _text(name: str, family: str, millions: float, batches: Sequence[int], sizes: Sequence[int], words: int,
          flavour: str, **args: Any) -> Model:
    return Model(name, family, args, millions, "tokens", tuple(batches), tuple(sizes), (words, flavour))


_USUAL, _LARGE, _SMALL = (16, 32, 64, 128), (64, 128, 256), (8, 16, 32, 64)
_SIZES = (96, 128, 160, 192, 224)

MODELS: Tuple[Model, ...] = (
    _image("resnet10", "resnet", 5.4, _LARGE, _SIZES, block="basic", layers=[1, 1, 1, 1]),
    _image("resnet18", "resnet", 11.7, _USUAL, _SIZES, block="basic", layers=[2, 2, 2, 2]),
    _image("resnet34", "resnet", 21.8, _USUAL, _SIZES, block="basic", layers=[3, 4, 6, 3]),
    _image("resnet26", "resnet", 16.0, _USUAL, _SIZES, layers=[2, 2, 2, 2]),
    _image("resnet50", "resnet", 25.6, _SMALL, _SIZES, layers=[3, 4, 6, 3]),
    _image("resnet50-narrow", "resnet", 12.4, _USUAL, _SIZES, layers=[3, 4, 6, 3], width=32),
    _image("resnet101", "resnet", 44.5, _SMALL, (128, 160, 192), layers=[3, 4, 23, 3]),
    _image("resnext26", "resnet", 15.4, _USUAL, _SIZES, layers=[2, 2, 2, 2], width=4, groups=32),
    _image("wide_resnet50_2", "wide_resnet", 68.9, _SMALL, (128, 160, 192), layers=[3, 4, 6, 3], width=128),
    _image("wide_resnet26", "wide_resnet", 40.0, _SMALL, (96, 128, 160), layers=[2, 2, 2, 2], width=128),
    _image("alexnet-small", "alexnet", 7.9, _LARGE, _SIZES, mult=1.0, fc=512),
    _image("alexnet-1024", "alexnet", 14.0, _LARGE, _SIZES, mult=1.0, fc=1024),
    _image("alexnet-2048", "alexnet", 27.6, _LARGE, _SIZES, mult=1.0, fc=2048),
    _image("vgg11-small", "vgg", 22.8, _SMALL, _SIZES, cfg="A", bn=False, fc=512),
    _image("vgg13-bn-small", "vgg", 23.0, _SMALL, _SIZES, cfg="B", bn=True, fc=512),
    _image("vgg16-small", "vgg", 28.1, _SMALL, (96, 128, 160), cfg="D", bn=False, fc=512),
    _image("googlenet", "googlenet", 6.6, _USUAL, _SIZES),
    _image("inception_v3", "inception_v3", 23.8, _SMALL, (128, 160, 192, 224)),
    _image("squeezenet1_0", "squeezenet", 1.25, _LARGE, _SIZES, version="1_0"),
    _image("squeezenet1_1", "squeezenet", 1.24, _LARGE, _SIZES, version="1_1"),
    _image("densenet121", "densenet", 8.0, _SMALL, _SIZES, layers=[6, 12, 24, 16], growth=32, init=64),
    _image("densenet-24", "densenet", 4.6, _USUAL, _SIZES, layers=[6, 12, 24, 16], growth=24, init=48),
    _image("densenet-short", "densenet", 3.2, _USUAL, _SIZES, layers=[4, 8, 12, 8], growth=32, init=64),
    _image("shufflenet_x0_5", "shufflenet", 1.4, _LARGE, _SIZES, rep=[4, 8, 4], out=[24, 48, 96, 192, 1024]),
    _image("shufflenet_x1_0", "shufflenet", 2.3, _LARGE, _SIZES, rep=[4, 8, 4], out=[24, 116, 232, 464, 1024]),
    _image("shufflenet_x2_0", "shufflenet", 7.4, _USUAL, _SIZES, rep=[4, 8, 4], out=[24, 244, 488, 976, 2048]),
    _image("mnasnet0_5", "mnasnet", 2.2, _LARGE, _SIZES, alpha=0.5),
    _image("mnasnet1_0", "mnasnet", 4.4, _USUAL, _SIZES, alpha=1.0),
    _image("efficientnet_b0", "efficientnet", 5.3, _SMALL, _SIZES, w=1.0, d=1.0),
    _image("efficientnet_b2", "efficientnet", 9.1, _SMALL, _SIZES, w=1.1, d=1.2),
    _image("efficientnet_thin", "efficientnet", 2.3, _USUAL, _SIZES, w=0.6, d=0.8),
    _image("regnet_x_400mf", "regnet", 5.5, _USUAL, _SIZES, se=None, depth=22, w_0=24, w_a=24.48, w_m=2.54,
           group_width=16),
    _image("regnet_y_400mf", "regnet", 4.3, _USUAL, _SIZES, se=0.25, depth=16, w_0=48, w_a=27.89, w_m=2.09,
           group_width=8),
    _image("regnet_x_1_6gf", "regnet", 9.2, _USUAL, _SIZES, se=None, depth=18, w_0=80, w_a=34.01, w_m=2.25,
           group_width=24),
    _image("convnext_atto", "convnext", 3.7, _USUAL, _SIZES, dim=40, layers=[2, 2, 6, 2]),
    _image("convnext_pico", "convnext", 9.0, _USUAL, _SIZES, dim=64, layers=[2, 2, 6, 2]),
    _image("convnext_tiny", "convnext", 28.6, _SMALL, (128, 160, 192), dim=96, layers=[3, 3, 9, 3]),
    _image("randwire-ws", "randwire", 2.9, _SMALL, _SIZES, kind="ws", nodes=16, ch=64, stages=3, seed=7),
    _image("randwire-ba", "randwire", 6.6, _SMALL, _SIZES, kind="ba", nodes=24, ch=48, stages=4, seed=11),
    _image("randwire-er", "randwire", 4.1, _SMALL, _SIZES, kind="er", nodes=20, ch=78, stages=3, seed=3),
    Model("unet-16", "unet", {"width": 16, "depth": 4}, 1.9, "dense", (4, 8, 16), (96, 128, 160), (2,)),
    Model("unet-32", "unet", {"width": 32, "depth": 4}, 7.8, "dense", (4, 8, 16), (96, 128, 160), (2,)),
    Model("unet-48", "unet", {"width": 48, "depth": 3}, 4.3, "dense", (4, 8, 16), (96, 128, 160), (21,)),
    _image("mobilenet_v2", "mobilenet_v2", 3.5, _USUAL, _SIZES, width_mult=1.0),
    _image("mobilenet_v2-1_4", "mobilenet_v2", 6.1, _USUAL, _SIZES, width_mult=1.4),
    _image("mobilenet_v3_small", "mobilenet_v3", 2.5, _LARGE, _SIZES, size="small", width_mult=1.0),
    _image("mobilenet_v3_large", "mobilenet_v3", 5.5, _USUAL, _SIZES, size="large", width_mult=1.0),
    _image("vit_tiny", "vit", 5.7, _USUAL, (96, 160, 224), patch=16, layers=12, heads=3, dim=192, mlp=768),
    _image("vit_small", "vit", 22.1, _SMALL, (96, 160, 224), patch=16, layers=12, heads=6, dim=384, mlp=1536),
    _image("vit_short", "vit", 11.0, _USUAL, (96, 128, 192), patch=16, layers=6, heads=6, dim=384, mlp=1536),
    _image("swin_nano", "swin", 7.3, _SMALL, (112, 224), dim=48, depths=[2, 2, 6, 2], window=7),
    _image("swin_64", "swin", 12.6, _SMALL, (112, 224), dim=64, depths=[2, 2, 6, 2], window=7),
    _text("transformer-small", "transformer", 9.4, _SMALL, (32, 64, 128), 8000, "lm", vocab=8000, d=256, heads=4, enc=3,
          dec=3, ff=1024),
    _text("transformer-base", "transformer", 29.4, _SMALL, (32, 64), 8000, "lm", vocab=8000, d=512, heads=8, enc=3,
          dec=3, ff=2048),
    _text("bert-mini", "bert", 11.2, _USUAL, (64, 128), 30522, "hf", hidden=256, layers=4, heads=4, intermediate=1024,
          dropout=0.1),
    _text("bert-small", "bert", 28.8, _SMALL, (64, 128), 30522, "hf", hidden=512, layers=4, heads=8, intermediate=2048,
          dropout=0.1),
    _text("bert-tiny", "bert", 4.5, _USUAL, (64, 128), 30522, "hf", hidden=128, layers=2, heads=2, intermediate=512,
          dropout=0.1),
    _text("bert-medium", "bert", 41.4, _SMALL, (64, 128), 30522, "hf", hidden=512, layers=8, heads=8, intermediate=2048,
          dropout=0.1),
    _text("bert_base", "bert", 109.5, (8, 16, 32), (64, 128), 30522, "hf", hidden=768, layers=12, heads=12,
          intermediate=3072, dropout=0.1),
    _text("gpt2-mini", "gpt2", 7.5, _SMALL, (64, 128), 16000, "hf", width=256, layers=4, heads=4, dropout=0.1),
    _text("gpt2-short", "gpt2", 20.9, _SMALL, (64, 128), 16000, "hf", width=512, layers=4, heads=8, dropout=0.1),
    _text("llama-mini", "llama", 9.2, _SMALL, (64, 128), 8000, "hf", hidden=256, intermediate=704, layers=6, heads=4,
          kv_heads=4, tied=False),
    _text("llama-short", "llama", 19.5, _SMALL, (64, 128), 8000, "hf", hidden=512, intermediate=1408, layers=4, heads=8,
          kv_heads=2, tied=False),
    _text("t5-mini", "t5", 11.1, _SMALL, (32, 64), 16000, "hf", d_model=256, d_kv=32, d_ff=1024, layers=4,
          decoder_layers=4, heads=8, dropout=0.1),
    _text("lstm-256", "lstm", 6.2, _SMALL, (32, 64), 10000, "lm", vocab=10000, d=256, h=256, layers=2),
    _text("lstm-650", "lstm", 19.8, _SMALL, (32, 64), 10000, "lm", vocab=10000, d=650, h=650, layers=2),
    _text("lstm-128", "lstm", 1.6, _USUAL, (32, 64), 5000, "lm", vocab=5000, d=128, h=128, layers=2),
    _text("gru-512", "gru", 13.4, _SMALL, (32, 64), 10000, "lm", vocab=10000, d=512, h=512, layers=2),
    _text("gru-192", "gru", 2.3, _USUAL, (32, 64), 5000, "lm", vocab=5000, d=192, h=192, layers=2),
    _text("rnn-384", "rnn", 8.3, _SMALL, (32, 64), 10000, "lm", vocab=10000, d=384, h=384, layers=2),
    _text("rnn-200", "rnn", 2.2, _USUAL, (32, 64), 5000, "lm", vocab=5000, d=200, h=200, layers=3),
)


def fits(model: Model, setting: Setting) -> bool:
    return setting.exchange_seconds(model.millions * 1e6) <= LONGEST_EXCHANGE_S


def draw(model: Model, setting: Setting, rng: random.Random, number: int) -> Workload:
    """The number-th workload of a model in a setting; modes take turns."""
    batch, size = rng.choice(model.batches), rng.choice(model.sizes)
    name, momentum = rng.choice(_OPTIMIZERS)
    run = {"precision": "fp32", "optimizer": {"name": name, "impl": "foreach", "lr": 0.001, "momentum": momentum,
                                              "weight_decay": 0.0},
           "channels_last": False, "cudnn_benchmark": False, "accumulate": 1}
    args = dict(model.args)
    if model.family == "vit":
        args["image"] = size
    if model.kind == "tokens":
        extents: Tuple[Any, ...] = ("tokens", batch, size, *model.last)
    else:
        extents = (model.kind, batch, 3, size, *model.last)
    mode = setting.modes[number % len(setting.modes)]
    named = f"{setting.name}/{model.name}/{mode}-b{batch}-s{size}-{name.lower()}{'m' if momentum else ''}"
    return Workload(named, model.name, mode, Configuration(named, model.family, args, extents, run))


def plan(setting: Setting, count: int, seed: int, models: Sequence[Model] = MODELS) -> List[Workload]:
    """`count` different workloads. The n-th of a model depends on the seed, the setting, the model and n alone."""
    usable = [model for model in models if fits(model, setting)]
    if not usable:
        raise ValueError(f"no model is small enough for {setting.name}")
    found: Dict[str, Workload] = {}
    for round_number in range(100):
        order = list(usable)
        random.Random(f"{seed}/{setting.name}/{round_number}").shuffle(order)
        for model in order:
            if len(found) == count:
                return list(found.values())
            rng = random.Random(f"{seed}/{setting.name}/{model.name}/{round_number}")
            offset = sum(map(ord, model.name))  # not all models begin synchronous
            workload = draw(model, setting, rng, round_number + offset)
            found.setdefault(workload.id, workload)
    return list(found.values())
