"""Torch models of the families: as many parameters as the zoo and the records say, trainable, quick to build."""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path
from typing import Any, Dict, List, Tuple

import needs_torch  # noqa: F401  (skips first)
import pytest
import zoo_program
from forerun.families import FAMILIES, plan, sample

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from forerun import torch_models as models  # noqa: E402  (needs torch)

RECORDS = zoo_program.ROOT / "tests" / "data" / "run1.jsonl.zst"  # recorded runs, one of each of 15 families

# A small model of each family and a batch of 2, to run on a CPU.
SMALL: Dict[str, Tuple[Dict[str, Any], List[Any]]] = {
    "resnet": ({"block": "bottleneck", "layers": [1, 1, 1, 1], "width": 4, "groups": 8}, ["image", 2, 4, 64, 10]),
    "wide_resnet": ({"layers": [1, 1, 1, 1], "width": 80}, ["image", 2, 1, 64, 10]),
    "alexnet": ({"mult": 0.25, "fc": 64}, ["image", 2, 3, 64, 10]),
    "vgg": ({"cfg": "A", "bn": True, "fc": 32}, ["image", 2, 8, 32, 10]),
    "googlenet": ({}, ["image", 2, 3, 64, 10]),
    "inception_v3": ({}, ["image", 2, 4, 96, 10]),
    "squeezenet": ({"version": "1_1"}, ["image", 2, 3, 64, 10]),
    "densenet": ({"layers": [2, 3], "growth": 8, "init": 16}, ["image", 2, 3, 64, 10]),
    "shufflenet": ({"rep": [1, 2, 1], "out": [8, 16, 32, 64, 64]}, ["image", 2, 3, 64, 10]),
    "mnasnet": ({"alpha": 0.35}, ["image", 2, 3, 64, 10]),
    "efficientnet": ({"w": 0.5, "d": 0.5}, ["image", 2, 3, 64, 10]),
    "regnet": ({"se": 0.25, "depth": 6, "w_0": 24, "w_a": 24.5, "w_m": 2.5, "group_width": 8}, ["image", 2, 3, 64, 10]),
    "convnext": ({"dim": 16, "layers": [1, 1, 2, 1]}, ["image", 2, 3, 64, 10]),
    "randwire": ({"kind": "ba", "nodes": 8, "ch": 16, "stages": 3, "seed": 3}, ["image", 2, 3, 64, 10]),
    "unet": ({"width": 8, "depth": 3}, ["dense", 2, 1, 44, 3]),
    "vit": ({"patch": 16, "layers": 2, "heads": 2, "dim": 32, "mlp": 64}, ["image", 2, 3, 64, 10]),
    "swin": ({"dim": 48, "depths": [2, 2], "window": 4}, ["image", 2, 3, 64, 10]),
    "transformer": ({"d": 32, "heads": 2, "enc": 1, "dec": 1, "ff": 64}, ["tokens", 2, 16, 100, "lm"]),
    "bert": ({"hidden": 32, "layers": 2, "heads": 2, "intermediate": 64}, ["tokens", 2, 16, 100, "hf"]),
    "gpt2": ({"width": 32, "layers": 2, "heads": 2, "inner": 48}, ["tokens", 2, 16, 100, "hf"]),
    "llama": ({"hidden": 32, "intermediate": 64, "layers": 2, "heads": 4, "kv_heads": 2}, ["tokens", 2, 16, 100, "hf"]),
    "t5": ({"d_model": 32, "d_kv": 8, "d_ff": 64, "layers": 2, "decoder_layers": 1, "heads": 4},
           ["tokens", 2, 16, 100, "hf"]),
    "dlrm": ({"dim": 8, "rows": [50, 7, 1000], "pooling": 3, "bottom": [16], "top": [16]}, ["flat", 2, 5, 0, 2]),
    "mobilenet_v2": ({"width_mult": 0.35}, ["image", 2, 3, 64, 10]),
    "mobilenet_v3": ({"size": "small", "width_mult": 0.5}, ["image", 2, 3, 64, 10]),
    "lstm": ({"d": 16, "h": 24, "layers": 2, "stack": True}, ["tokens", 2, 12, 100, "lm"]),
    "rnn": ({"d": 16, "h": 24, "layers": 2, "stack": False}, ["tokens", 2, 12, 100, "lm"]),
    "gru": ({"d": 16, "h": 24, "layers": 3}, ["tokens", 2, 12, 100, "lm"]),
    "nas_cell": ({"cell": "|none~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_3x3~2|", "ch": 8,
                  "cells": 1}, ["image", 2, 3, 24, 10]),
}
# Not every PyTorch has a torchvision that goes with it; the other families are held to the zoo all the same.
FROM_TORCHVISION = {"resnet", "wide_resnet", "vgg", "googlenet", "inception_v3", "squeezenet", "densenet", "shufflenet",
                    "mnasnet", "efficientnet", "regnet", "convnext", "vit", "swin", "mobilenet_v2", "mobilenet_v3"}
WITH_TORCHVISION = importlib.util.find_spec("torchvision") is not None
HEADS: List[Tuple[str, Dict[str, Any]]] = [
    ("bert", {**SMALL["bert"][0], "head": "classifier", "labels": 3}), ("bert", {**SMALL["bert"][0], "head": "none"})]


def can_be_built(family: str) -> bool:
    return WITH_TORCHVISION or family not in FROM_TORCHVISION


def case(family: str, *values: Any) -> Any:
    """A parameter of a test, skipped where its family cannot be built."""
    missing = pytest.mark.skip(reason="torchvision, which has this family, is not installed")
    return pytest.param(family, *values, marks=() if can_be_built(family) else missing)


def size(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def built_on_meta(family: str, args: Any, input: Any) -> Any:
    with torch.device("meta"):
        return models.build(family, args, input)


def loss_of(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def test_every_family_has_a_model_and_a_sampler() -> None:
    assert set(models.BUILDERS) == set(FAMILIES) == set(SMALL)


def test_an_unknown_family_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="wide_resnet"):
        models.build("resnett", {}, ["image", 2, 3, 64, 10])


@pytest.mark.parametrize("family,args", [case(family, SMALL[family][0]) for family in SMALL] + HEADS)
def test_a_small_model_trains(family: str, args: Dict[str, Any]) -> None:
    input = SMALL[family][1]
    with models.fast_initialisation():
        model = models.build(family, args, input)
    assert model.training
    models.initialise(model)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    value = loss_of(models.training_loss(model, models.make_batch(input, "cpu", args)))
    value.backward()
    assert 0 < value.item() < 100
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter).all(), name
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("family", [case(family) for family in SMALL])
def test_the_loop_keeps_logits_of_all_but_transformers_models(family: str) -> None:
    args, input = SMALL[family]
    result = models.training_loss(models.build(family, args, input), models.make_batch(input, "cpu", args))
    assert isinstance(result, tuple) == (input[-1] != "hf")


@pytest.mark.parametrize("family", [case(family) for family in SMALL if family not in ("gpt2", "llama")])
def test_sampled_models_train_on_paper(family: str) -> None:
    """gpt2 and llama look at values in their forward pass, which tensors without data do not have."""
    for number in range(3):
        drawn = sample(family, random.Random(number), target="host-bound")
        input = list(drawn.with_batch(2).input)
        if input[0] == "tokens":
            input[2] = 8
        model = built_on_meta(family, drawn.args, input)
        with torch.device("meta"):
            loss_of(models.training_loss(model, models.make_batch(input, "meta", drawn.args))).backward()
        assert all(parameter.grad is not None for parameter in model.parameters()), drawn.line()


def test_the_zoo_has_as_many_parameters() -> None:
    path = zoo_program.program()
    if path is None:
        pytest.skip("the forerun program is not built: build it, or set FORERUN to its path")
    for drawn in plan(7, {family: 3 for family in FAMILIES if can_be_built(family)}):
        assert size(built_on_meta(drawn.family, drawn.args, drawn.input)) == zoo_program.parameters(path, drawn), \
            drawn.line()


def test_cells_have_the_published_parameters() -> None:
    """Of the benchmark's networks for CIFAR-10: of nothing but 3x3 convolutions, and without parameters in cells."""
    every = "|{0}~0|+|{0}~0|{0}~1|+|{0}~0|{0}~1|{0}~2|"
    for operation, expected in (("nor_conv_3x3", 1531546), ("skip_connect", 73306)):
        args = {"cell": every.format(operation)}
        assert size(built_on_meta("nas_cell", args, ["image", 2, 3, 32, 10])) == expected
    with pytest.raises(ValueError, match="multiple of 4"):
        models.build("nas_cell", {}, ["image", 2, 3, 30, 10])


def recorded_parameters(record: Dict[str, Any]) -> List[Tuple[str, int]]:
    """Names and bytes in order; cuDNN puts the weights of a recurrent module into one storage."""
    roots = sorted((int(storage), root) for storage, root in record["roots"].items())
    return [(root[1], record["storages"][storage][0]) for storage, root in roots if root[0] == "param"]


def test_models_are_those_of_the_records(tmp_path: Path) -> None:
    compared = passed_over = 0
    program = zoo_program.program()
    if program is None:
        pytest.skip("the forerun program is not built")
    for record in zoo_program.records(program, RECORDS, tmp_path):
        family, where = record["family"], f"{record['id']} {record['args']}"
        if not can_be_built(family):
            passed_over += 1
            continue
        model = built_on_meta(family, record["args"], record["input"])
        assert size(model) == record["params"], where
        assert len(list(model.parameters())) == record["param_tensors"], where
        if family not in ("alexnet", "lstm", "rnn", "gru"):  # alexnet was recorded with module names of its own
            named = [(path, 4 * parameter.numel()) for path, parameter in model.named_parameters()]
            assert named == recorded_parameters(record), where
        compared += 1
    assert compared + passed_over == 15 and compared > 0


def test_batches_have_the_shapes_of_the_input() -> None:
    (image,), labels = models.make_batch(["image", 3, 4, 16, 10], "cpu", channels_last=True)
    assert image.shape == (3, 4, 16, 16) and image.is_contiguous(memory_format=torch.channels_last)
    assert labels.shape == (3,) and 0 <= int(labels.min()) and int(labels.max()) < 10
    (image,), labels = models.make_batch(["dense", 2, 1, 8, 5], "cpu")
    assert image.is_contiguous() and labels.shape == (2, 8, 8)
    (tokens,), labels = models.make_batch(["tokens", 2, 7, 50, "lm"], "cpu")
    assert tokens.shape == labels.shape == (2, 7) and int(tokens.max()) < 50
    args = {"rows": [5, 9], "pooling": 4}
    (dense, offsets, first, second), labels = models.make_batch(["flat", 3, 6, 0, 2], "cpu", args)
    assert dense.shape == (3, 6) and offsets.tolist() == [[0, 4, 8]] * 2 and labels.shape == (3,)
    assert first.shape == second.shape == (12,) and int(first.max()) < 5
    with pytest.raises(ValueError):
        models.make_batch(["sound", 1, 1, 1, 1], "cpu")


# torchvision draws ViT's positions while it makes the parameter.
@pytest.mark.parametrize("family", [case(family) for family in SMALL if family != "vit"])
def test_fast_initialisation_draws_nothing_and_keeps_buffers(family: str) -> None:
    args, input = SMALL[family]
    usual = dict(models.build(family, args, input).named_buffers())
    before = torch.random.get_rng_state()
    with models.fast_initialisation():
        buffers = dict(models.build(family, args, input).named_buffers())
    assert torch.equal(torch.random.get_rng_state(), before)
    assert list(buffers) == list(usual)
    for name, buffer in buffers.items():
        assert torch.equal(buffer, usual[name]), name


def test_fast_initialisation_leaves_no_trace() -> None:
    with pytest.raises(KeyError):
        with models.fast_initialisation():
            raise KeyError
    before = torch.random.get_rng_state()
    layer = torch.nn.Linear(4, 4)
    assert not torch.equal(torch.random.get_rng_state(), before)
    assert (torch.nn.init.constant_(layer.weight, 3.0) == 3).all()
    assert (torch.nn.init.trunc_normal_(layer.weight, std=0.1) != 3).all()
    model = models.build("bert", *SMALL["bert"])
    assert (model.bert.embeddings.LayerNorm.weight == 1).all()


@pytest.mark.parametrize("family", [case(name) for name in ("resnet", "bert", "convnext", "randwire", "gpt2", "lstm")])
def test_initialise_fills_what_was_unset(family: str) -> None:
    args, input = SMALL[family]
    model = models.build(family, args, input)
    statistics = [buffer for name, buffer in model.named_buffers() if name.endswith(("_mean", "_var"))]
    with torch.no_grad():
        for tensor in [*model.parameters(), *statistics]:
            tensor.fill_(math.nan)
    models.initialise(model)
    assert all(torch.isfinite(tensor).all() for tensor in [*model.parameters(), *model.buffers()])


@pytest.mark.skipif(not WITH_TORCHVISION, reason="torchvision, which has ResNets, is not installed")
def test_initialise_draws_as_layers_do() -> None:
    resnet = models.build("resnet", *SMALL["resnet"])
    models.initialise(resnet)
    assert (resnet.bn1.weight == 1).all() and (resnet.bn1.bias == 0).all()
    assert (resnet.bn1.running_mean == 0).all() and (resnet.bn1.running_var == 1).all()
    deviation = resnet.fc.weight.std().item() * math.sqrt(resnet.fc.in_features)
    assert 0.9 < deviation < 1.1
