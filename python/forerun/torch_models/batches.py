"""Random batches for an input, and the loss: cross entropy, of token models over all positions.

Inputs and targets are made on the device in place, without temporary copies.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from .plain import CRITEO_ROWS

Batch = Tuple[Tuple[Tensor, ...], Tensor]


def make_batch(input: Sequence[Any], device: Any = "cpu", args: Optional[Mapping[str, Any]] = None,
               channels_last: bool = False) -> Batch:
    """Random inputs (a tuple, to be spread into the model's call) and targets.

    `args` are those of the configuration: dlrm's tables and bert's heads shape the batch; other families need none.
    """
    kind, batch = input[0], int(input[1])
    args = args or {}
    if kind == "tokens":
        return _tokens(batch, input, device, args)
    classes = int(args.get("classes", input[4]))
    if kind == "flat":
        return _flat(batch, int(input[2]), classes, device, args)
    if kind not in ("image", "dense"):
        raise ValueError(f"there is no input of kind {kind!r}")
    channels, size = int(input[2]), int(input[3])
    layout = torch.channels_last if channels_last else torch.contiguous_format
    image = torch.empty((batch, channels, size, size), device=device, memory_format=layout).normal_()
    labels = (batch, size, size) if kind == "dense" else (batch,)
    return (image,), torch.randint(classes, labels, device=device)


def _tokens(batch: int, input: Sequence[Any], device: Any, args: Mapping[str, Any]) -> Batch:
    length, vocab = int(input[2]), int(args.get("vocab", input[3]))
    tokens = torch.randint(vocab, (batch, length), device=device)
    head = args.get("head", "mlm")
    if head == "mlm":
        return (tokens,), torch.randint(vocab, (batch, length), device=device)
    classes = args.get("labels", 2) if head == "classifier" else args.get("hidden", 768)
    return (tokens,), torch.randint(int(classes), (batch,), device=device)


def _flat(batch: int, features: int, classes: int, device: Any, args: Mapping[str, Any]) -> Batch:
    rows, pooling = args.get("rows", CRITEO_ROWS), int(args.get("pooling", 1))
    dense = torch.empty((batch, features), device=device).normal_()
    offsets = torch.arange(0, batch * pooling, pooling, device=device).repeat(len(rows), 1)
    indices = [torch.randint(int(count), (batch * pooling,), device=device) for count in rows]
    return (dense, offsets, *indices), torch.randint(classes, (batch,), device=device)


def loss(output: Any, targets: Tensor) -> Tensor:
    """Cross entropy of a model's output, a tensor or what a transformers model gives."""
    logits = logits_of(output)
    if logits.dim() == 3:
        return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
    return nn.functional.cross_entropy(logits, targets)


def logits_of(output: Any) -> Tensor:
    if isinstance(output, Tensor):
        return output
    logits = getattr(output, "logits", None)
    return output.pooler_output if logits is None else logits


def training_loss(model: nn.Module, batch: Batch) -> Any:
    """The loss, and with it the logits where the training loop holds them until its iteration ends.

    A loop around a transformers model (flavour "hf") keeps no reference to the output; all others keep it.
    """
    inputs, targets = batch
    output = model(*inputs)
    value = loss(output, targets)
    return (value, output) if isinstance(output, Tensor) else value
