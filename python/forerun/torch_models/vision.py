"""Image families of torchvision around attention and layer norm (ViT, Swin, ConvNeXt), and their first convolution.

Stochastic depth is off everywhere, as in the zoo.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from torch import nn


def classes_of(args: Mapping[str, Any], input: Sequence[Any]) -> int:
    """The number of classes: args say it louder than the input."""
    return int(args.get("classes", input[4]))


def with_channels(model: nn.Module, channels: int) -> nn.Module:
    """The model with its first convolution reading `channels` channels."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d):
            break
    else:
        raise ValueError("the model has no convolution")
    if module.in_channels == channels:
        return model
    first = nn.Conv2d(channels, module.out_channels, module.kernel_size, module.stride, module.padding,
                      bias=module.bias is not None)
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, first)
    return model


def vit(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import VisionTransformer
    model = VisionTransformer(
        image_size=args.get("image", input[3]), patch_size=args.get("patch", 16), num_layers=args.get("layers", 12),
        num_heads=args.get("heads", 12), hidden_dim=args.get("dim", 768), mlp_dim=args.get("mlp", 3072),
        num_classes=classes_of(args, input))
    return with_channels(model, input[2])


def swin(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import SwinTransformer
    dim, depths = args.get("dim", 96), list(args.get("depths", (2, 2, 6, 2)))
    patch, window = args.get("patch", 4), args.get("window", 7)
    heads = args.get("heads") or (dim // 32 if dim % 32 == 0 else dim // 16)
    model = SwinTransformer(
        patch_size=[patch, patch], embed_dim=dim, depths=depths, num_heads=[heads << i for i in range(len(depths))],
        window_size=[window, window], mlp_ratio=args.get("mlp_ratio", 4), stochastic_depth_prob=0.0,
        num_classes=classes_of(args, input))
    return with_channels(model, input[2])


def convnext(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from torchvision.models import ConvNeXt
    from torchvision.models.convnext import CNBlockConfig
    dim, layers = args.get("dim", 96), list(args.get("layers", (3, 3, 9, 3)))
    stages: List[CNBlockConfig] = []
    for i, blocks in enumerate(layers):
        stages.append(CNBlockConfig(dim << i, dim << (i + 1) if i + 1 < len(layers) else None, blocks))
    model = ConvNeXt(stages, stochastic_depth_prob=0.0, num_classes=classes_of(args, input))
    return with_channels(model, input[2])
