"""What `run` of a configuration does to a model before it is trained: weights in bfloat16, frozen ones, adapters beside
linear layers, blocks that are checkpointed.

    {"precision": "bf16", "lora": {"rank": 16, "targets": ["q_proj", "v_proj"]}, "checkpoint": "block", ...}

The same words, with the same meaning, as the options of `forerun predict`.
"""
from __future__ import annotations

import functools
from typing import Any, Dict, List, Mapping, Sequence

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils import checkpoint

ALL_LINEAR = ("all-linear",)
_KEPT = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot_product_flash_attention",
         "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
         "_scaled_dot_product_flash_attention_for_cpu")


def prepare_model(model: torch.nn.Module, run: Mapping[str, Any]) -> torch.nn.Module:
    """Changes the model in place."""
    if run["precision"] == "bf16":
        _to_bfloat16(model)
    lora = run.get("lora")
    if lora:
        add_adapters(model, lora["rank"], lora.get("targets", ()), lora.get("dropout", 0.0))
    for name, parameter in model.named_parameters():
        if any(part in name for part in run.get("freeze", ())):
            parameter.requires_grad_(False)
    checkpoint_blocks(model, run.get("checkpoint", "none"))
    return model


def inputs_as(batch: Any, dtype: torch.dtype) -> Any:
    """The batch with its floating-point tensors of another type."""
    if isinstance(batch, torch.Tensor):
        return batch.to(dtype) if batch.is_floating_point() else batch
    if isinstance(batch, dict):
        return {name: inputs_as(item, dtype) for name, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(inputs_as(item, dtype) for item in batch)
    return batch


def moving_average(model: torch.nn.Module) -> AveragedModel:
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))


def _to_bfloat16(model: torch.nn.Module) -> None:
    """All weights and buffers, but rotary frequencies, which transformers makes in float32 whatever the weights are."""
    frequencies = {name: buffer for name, buffer in model.named_buffers() if "inv_freq" in name}
    model.to(torch.bfloat16)
    for name, buffer in frequencies.items():
        owner, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(owner), attribute, buffer)


class LoraLayer(torch.nn.Module):
    """A frozen linear layer with an adapter, as the peft library computes it; the adapter's weights are float32."""

    def __init__(self, base: torch.nn.Module, features: Sequence[int], rank: int, dropout: float) -> None:
        super().__init__()
        device = next(base.parameters()).device
        self.base_layer = base
        self.lora_dropout = torch.nn.Dropout(dropout) if dropout > 0 else torch.nn.Identity()
        self.lora_A = torch.nn.Linear(features[0], rank, bias=False, device=device)
        self.lora_B = torch.nn.Linear(rank, features[1], bias=False, device=device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base_layer(x)
        x = x.to(self.lora_A.weight.dtype)
        return (result + self.lora_B(self.lora_A(self.lora_dropout(x))) * 2.0).to(result.dtype)


def add_adapters(model: torch.nn.Module, rank: int, targets: Sequence[str], dropout: float = 0.0) -> None:
    """Freezes all weights and puts adapters beside the linear layers of these names."""
    layers = {name: module for name, module in model.named_modules() if _features(module)}
    if tuple(targets) == ALL_LINEAR:
        names = list(layers)[:-1]
    else:
        names = [name for name in layers if name.rpartition(".")[2] in targets]
    if not names:
        raise ValueError(f"no linear layer is called {', '.join(targets)}; there are "
                         f"{', '.join(sorted({name.rpartition('.')[2] for name in layers}))}")
    model.requires_grad_(False)
    for name in names:
        owner, _, attribute = name.rpartition(".")
        layer = LoraLayer(layers[name], _features(layers[name]), rank, dropout)
        setattr(model.get_submodule(owner), attribute, layer)


def _features(module: torch.nn.Module) -> List[int]:
    """Inputs and outputs of a linear layer; nothing of other modules. transformers' Conv1D is one."""
    if isinstance(module, torch.nn.Linear):
        return [module.in_features, module.out_features]
    if type(module).__name__ == "Conv1D":
        return list(module.weight.shape)
    return []


def blocks_of(model: torch.nn.Module) -> List[torch.nn.Module]:
    """The layers of lists that have parts: the outermost modules whose names end in a number."""
    found: Dict[str, torch.nn.Module] = {}
    for name, module in model.named_modules():
        parts = name.split(".")
        numbers = [index for index, part in enumerate(parts) if part.rpartition("_")[2].isdigit()]
        if numbers and numbers[0] == len(parts) - 1 and any(True for _ in module.children()):
            found[name] = module
    return list(found.values())


def checkpoint_blocks(model: torch.nn.Module, how: str) -> None:
    """Lets each block keep its inputs alone (block), or also the results of products and attention (selective)."""
    if how == "none":
        return
    options: Dict[str, Any] = {"use_reentrant": False}
    if how == "selective":
        packets = [getattr(torch.ops.aten, name) for name in _KEPT if hasattr(torch.ops.aten, name)]
        kept = [packet.default for packet in packets]
        options["context_fn"] = functools.partial(checkpoint.create_selective_checkpoint_contexts, kept)
    blocks = blocks_of(model)
    if not blocks:
        raise ValueError("the model has no blocks to checkpoint: no layers of a list that have parts")
    for block in blocks:
        again = functools.partial(checkpoint.checkpoint, block.forward, **options)
        block.forward = again
