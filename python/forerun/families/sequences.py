"""Samplers of families that read tokens or tables: language models, recurrent networks, DLRM.

They give args and an input without its batch, as the samplers of image families do.
"""

from __future__ import annotations

import random
from typing import Any, Dict, Tuple

from .drawing import log_integer, log_multiple, weighted
from .inputs import Extents, tokens, vocabulary

Sample = Tuple[Dict[str, Any], Extents]

_MOST_PARAMETERS = 3_000_000_000  # with gradients and Adam's state in float32: 45 GiB


def transformer(rng: random.Random, target: str) -> Sample:
    heads, width = _heads(rng, 2, 16)
    vocab = vocabulary(rng, 32000)
    args = {"vocab": vocab, "d": width, "heads": heads, "enc": log_integer(rng, 1, 12), "dec": log_integer(rng, 1, 12),
            "ff": _inner(rng, width)}
    return args, tokens(rng, target, vocab, "lm")


def recurrent(kind: str, rng: random.Random, target: str) -> Sample:
    vocab = vocabulary(rng, 10000)
    hidden = rng.choice((128, 200, 256, 512, 650, 1024, 1500, log_integer(rng, 48, 2048)))
    width = hidden if rng.random() < 0.4 else log_multiple(rng, 64, 1024, 32)
    args = {"kind": kind, "vocab": vocab, "d": width, "h": hidden, "layers": log_integer(rng, 1, 16),
            "stack": rng.random() < 0.4}
    return args, tokens(rng, target, vocab, "lm", most=512)


def lstm(rng: random.Random, target: str) -> Sample:
    return recurrent("lstm", rng, target)


def rnn(rng: random.Random, target: str) -> Sample:
    return recurrent("rnn", rng, target)


def gru(rng: random.Random, target: str) -> Sample:
    return recurrent("gru", rng, target)


def bert(rng: random.Random, target: str) -> Sample:
    heads, width = _heads(rng, 2, 16)
    args: Dict[str, Any] = {"hidden": width, "layers": log_integer(rng, 2, 24), "heads": heads,
                            "intermediate": _inner(rng, width), "dropout": _dropout(rng)}
    if rng.random() < 0.2:
        args["head"] = "classifier"
        args["labels"] = rng.choice((2, 3, 10))
    return args, tokens(rng, target, vocabulary(rng, 30522), "hf", most=512)


def gpt2(rng: random.Random, target: str) -> Sample:
    heads, width = _heads(rng, 2, 25)
    args: Dict[str, Any] = {"width": width, "layers": log_integer(rng, 2, 36), "heads": heads, "dropout": _dropout(rng)}
    if rng.random() < 0.3:
        args["inner"] = _inner(rng, width)
    return args, tokens(rng, target, vocabulary(rng, 50257), "hf")


def llama(rng: random.Random, target: str) -> Sample:
    while True:
        heads, width = _heads(rng, 4, 32)
        shared = rng.choice([divisor for divisor in (1, 2, 4, 8) if heads % divisor == 0])
        inner = rng.choice((round(width * 8 / 3 / 64) * 64, 4 * width, log_multiple(rng, 512, 12288, 256)))
        layers, vocab = log_integer(rng, 2, 32), vocabulary(rng, 32000)
        if layers * (4 * width * width + 3 * width * inner) + 2 * vocab * width <= _MOST_PARAMETERS:
            break
    args = {"hidden": width, "intermediate": inner, "layers": layers, "heads": heads, "kv_heads": heads // shared,
            "tied": rng.random() < 0.3}
    return args, tokens(rng, target, vocab, "hf", most=2048)


def t5(rng: random.Random, target: str) -> Sample:
    heads, head = rng.choice((4, 6, 8, 12, 16)), rng.choice((64, 64, 32))
    width = heads * head if rng.random() < 0.7 else log_multiple(rng, 128, 1024, 64)
    args = {"d_model": width, "d_kv": head, "d_ff": _inner(rng, width), "layers": log_integer(rng, 2, 18),
            "decoder_layers": log_integer(rng, 2, 18), "heads": heads, "dropout": _dropout(rng)}
    return args, tokens(rng, target, vocabulary(rng, 32128), "hf", most=512)


def dlrm(rng: random.Random, target: str) -> Sample:
    dim = log_multiple(rng, 8, 128, 8)
    args: Dict[str, Any] = {"dim": dim, "pooling": weighted(rng, ((1, 0.5), (log_integer(rng, 2, 40), 0.5))),
                            "bottom": [log_multiple(rng, 64, 1024, 64) for _ in range(rng.randint(1, 4))],
                            "top": [log_multiple(rng, 64, 2048, 64) for _ in range(rng.randint(1, 4))]}
    if rng.random() < 0.75 or dim > 64:
        most = min(20_000_000, 1_000_000_000 // dim // 8)
        args["rows"] = [log_integer(rng, 4, most) for _ in range(rng.randint(4, 40))]
    return args, ("flat", rng.choice((13, log_integer(rng, 4, 512))), 0, 2)


def _heads(rng: random.Random, low: int, high: int) -> Tuple[int, int]:
    """A number of attention heads and the width they make: mostly of 64, else of 32 to 128."""
    heads = log_integer(rng, low, high)
    return heads, heads * weighted(rng, ((64, 0.6), (32, 0.1), (48, 0.05), (80, 0.05), (96, 0.05), (128, 0.15)))


def _inner(rng: random.Random, width: int) -> int:
    return 4 * width if rng.random() < 0.6 else log_multiple(rng, 256, 6144, 64)


def _dropout(rng: random.Random) -> float:
    return 0.1 if rng.random() < 0.7 else 0.0
