"""Convolutional families as torchvision builds them, with the open widths and depths of the zoo."""

from __future__ import annotations

import functools
from typing import Any, Mapping, Sequence

import torch
from torch import nn

from .vision import classes_of, with_channels


def resnet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet
    blocks = {"basic": BasicBlock, "bottleneck": Bottleneck}
    model = ResNet(blocks[args.get("block", "bottleneck")], list(args.get("layers", (3, 4, 6, 3))),
                   num_classes=classes_of(args, input), groups=args.get("groups", 1),
                   width_per_group=args.get("width", 64))
    return with_channels(model, input[2])


def wide_resnet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    return resnet({"width": 128, **args, "block": "bottleneck"}, input)


def vgg(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models.vgg import VGG, cfgs, make_layers
    features = make_layers(cfgs[args.get("cfg", "D")], batch_norm=bool(args.get("bn", False)))
    classes, units = classes_of(args, input), args.get("fc", 4096)
    model = VGG(features, num_classes=classes, dropout=args.get("dropout", 0.5))
    if units != 4096:
        model.classifier[0] = nn.Linear(512 * 7 * 7, units)
        model.classifier[3] = nn.Linear(units, units)
        model.classifier[6] = nn.Linear(units, classes)
    return with_channels(model, input[2])


def googlenet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import GoogLeNet
    _refuse_auxiliary_heads(args)
    model = GoogLeNet(classes_of(args, input), aux_logits=False, init_weights=False, dropout=args.get("dropout", 0.2))
    return with_channels(model, input[2])


def inception_v3(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import Inception3
    _refuse_auxiliary_heads(args)
    model = Inception3(classes_of(args, input), aux_logits=False, init_weights=False, dropout=args.get("dropout", 0.5))
    return with_channels(model, input[2])


def squeezenet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import SqueezeNet
    model = SqueezeNet(args.get("version", "1_0"), classes_of(args, input), dropout=args.get("dropout", 0.5))
    return with_channels(model, input[2])


def densenet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import DenseNet
    model = DenseNet(growth_rate=args.get("growth", 32), block_config=tuple(args.get("layers", (6, 12, 24, 16))),
                     num_init_features=args.get("init", 64), bn_size=args.get("bn_size", 4),
                     num_classes=classes_of(args, input))
    return with_channels(model, input[2])


def shufflenet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import ShuffleNetV2
    model = ShuffleNetV2(list(args.get("rep", (4, 8, 4))), list(args.get("out", (24, 116, 232, 464, 1024))),
                         num_classes=classes_of(args, input))
    return with_channels(model, input[2])


def mnasnet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import MNASNet
    model = MNASNet(args.get("alpha", 1.0), classes_of(args, input), dropout=args.get("dropout", 0.2))
    return with_channels(model, input[2])


def efficientnet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import EfficientNet
    from torchvision.models.efficientnet import MBConvConfig
    stage = functools.partial(MBConvConfig, width_mult=args.get("w", 1.0), depth_mult=args.get("d", 1.0))
    # Expansion, kernel, stride, channels in and out, layers: those of B0.
    stages = [stage(1, 3, 1, 32, 16, 1), stage(6, 3, 2, 16, 24, 2), stage(6, 5, 2, 24, 40, 2),
              stage(6, 3, 2, 40, 80, 3), stage(6, 5, 1, 80, 112, 3), stage(6, 5, 2, 112, 192, 4),
              stage(6, 3, 1, 192, 320, 1)]
    norm = functools.partial(nn.BatchNorm2d, eps=args.get("bn_eps", 1e-5), momentum=args.get("bn_momentum", 0.1))
    model = EfficientNet(stages, dropout=args.get("dropout", 0.2), stochastic_depth_prob=0.0,
                         num_classes=classes_of(args, input), norm_layer=norm)
    return with_channels(model, input[2])


def regnet(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models.regnet import BlockParams, RegNet
    with torch.device("cpu"):  # widths are computed with tensors and read back
        widths = BlockParams.from_init_params(
            depth=args.get("depth", 16), w_0=args.get("w_0", 48), w_a=args.get("w_a", 27.89),
            w_m=args.get("w_m", 2.09), group_width=args.get("group_width", 8), se_ratio=args.get("se", 0.25) or None)
    norm = functools.partial(nn.BatchNorm2d, eps=1e-5, momentum=0.1)
    model = RegNet(widths, num_classes=classes_of(args, input), norm_layer=norm)
    return with_channels(model, input[2])


def mobilenet_v2(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import MobileNetV2
    model = MobileNetV2(classes_of(args, input), width_mult=args.get("width_mult", 1.0),
                        dropout=args.get("dropout", 0.2))
    return with_channels(model, input[2])


def mobilenet_v3(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models.mobilenetv3 import MobileNetV3, _mobilenet_v3_conf
    size = args.get("size", "large")
    stages, last = _mobilenet_v3_conf(f"mobilenet_v3_{size}", width_mult=args.get("width_mult", 1.0))
    model = MobileNetV3(stages, last, num_classes=classes_of(args, input), dropout=args.get("dropout", 0.2))
    return with_channels(model, input[2])


def _refuse_auxiliary_heads(args: Mapping[str, Any]) -> None:
    if args.get("aux"):
        raise ValueError("auxiliary heads are not trained here: leave out aux")
