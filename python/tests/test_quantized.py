"""Weights of 4 and 8 bits (QLoRA): `forerun predict --quantize` against what bitsandbytes, peft and transformers do."""

from __future__ import annotations

import needs_torch  # noqa: F401  (skips where there is no PyTorch)

import json
from pathlib import Path
from typing import Any, Dict, Iterable, List, Tuple

import pytest
import torch
import zoo_program
from forerun.capture import capture
from forerun.host_values import CaptureError
from forerun.quantized import quantization_parts
from test_config_models import (BATCH, CASES, LENGTH, VOCAB, answer, apart, build, class_for, inputs_of, loss_of)

transformers = pytest.importorskip("transformers", minversion="5.22")
peft: Any = pytest.importorskip("peft")
pytest.importorskip("bitsandbytes", minversion="0.50")

RANK, TARGETS = 4, ["q_proj", "v_proj"]
# by name in CASES: layers that get adapters
QUANTIZED_TYPES = {
    "llama": TARGETS, "llama-biases": TARGETS, "llama-scaled": TARGETS, "qwen2": TARGETS, "opt": TARGETS,
    "gemma3_text": TARGETS, "mixtral": TARGETS, "qwen2_moe": TARGETS, "deepseek_v3": ["q_a_proj", "o_proj"],
    "gpt2": ["c_attn"], "phi3": ["qkv_proj"], "bloom": ["query_key_value"], "gpt_neox": ["query_key_value"],
    "bert": ["query", "value"], "modernbert": ["Wqkv"], "t5": ["q", "v"]}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "amp_bf16": torch.bfloat16}


def quantized(name: str, folder: Path, how: str, precision: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    """A model of CASES as from_pretrained quantizes it; under autocast as peft prepares it, all else in float32."""
    model, config = build(*CASES[name])
    model.save_pretrained(folder)
    bits: Dict[str, Any] = {"load_in_8bit": True}
    if how != "int8":
        bits = {"load_in_4bit": True, "bnb_4bit_quant_type": how.partition(":")[0],
                "bnb_4bit_use_double_quant": how.endswith(":double"), "bnb_4bit_compute_dtype": TYPES[precision]}
    loaded = class_for(CASES[name][0]).from_pretrained(
        folder, quantization_config=transformers.BitsAndBytesConfig(**bits), dtype=TYPES[precision])
    loaded.config.use_cache = False
    if precision == "amp_bf16":
        loaded = peft.prepare_model_for_kbit_training(loaded, use_gradient_checkpointing=False)
    return loaded, config


def adapted(model: torch.nn.Module, targets: List[str]) -> torch.nn.Module:
    return peft.get_peft_model(model, peft.LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=targets)).train()


def captured(model: Any, precision: str, checkpoint: str = "none") -> Dict[str, Any]:
    batch = (inputs_of(model), torch.randint(VOCAB, (BATCH, LENGTH)))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    autocast = "amp_bf16" if precision == "amp_bf16" else None  # adapters are float32 beside weights of bfloat16
    if checkpoint == "block":
        model.gradient_checkpointing_enable()
        model.disable_input_require_grads()  # left out: gradients down to the embedding
    record = capture(model, optimizer, batch, loss_of, precision=autocast)
    record["input"] = ["tokens", BATCH, LENGTH, VOCAB, "hf"]
    return record


def program() -> str:
    found = zoo_program.program()
    if found is None:
        pytest.skip("build/forerun is not there")
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("checkpoint", ["none", "block"])
@pytest.mark.parametrize("precision", list(TYPES))
@pytest.mark.parametrize("how", ["nf4", "fp4:double"])
def test_derived_as_the_libraries_run_it(how: str, precision: str, checkpoint: str, tmp_path: Path) -> None:
    model, config = quantized("llama", tmp_path, how, precision)
    record = captured(adapted(model, TARGETS), precision, checkpoint)
    assert record["run"]["quantize"] == how and "warnings" not in record and "unused" not in record
    record_file, config_file = tmp_path / "record.jsonl", tmp_path / "of_model.json"
    record_file.write_text(json.dumps(record) + "\n")
    config_file.write_text(json.dumps(config))
    theirs = answer(program(), "predict", str(record_file))[0]
    ours = answer(program(), "predict", str(config_file), "--batch", str(BATCH), "--set", f"length={LENGTH}",
                  "--precision", precision, "--optimizer", "adamw:weight_decay=0.01", "--lora",
                  f"{RANK}:{','.join(TARGETS)}", "--quantize", how, "--checkpoint", checkpoint)[0]
    assert apart(ours["kernels"], theirs["kernels"]) <= 0.01
    assert apart(ours["gpu_ms"], theirs["gpu_ms"]) <= 0.01
    assert apart(ours["peak_allocated"], theirs["peak_allocated"]) <= 0.005


def blocks(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes that PyTorch's allocator takes for them, tied ones once."""
    held = {tensor.data_ptr(): tensor.nbytes for tensor in tensors}
    return sum(-(-size // 512) * 512 for size in held.values())


@pytest.mark.sampled
@pytest.mark.parametrize("name", QUANTIZED_TYPES)
@pytest.mark.parametrize("how", ["nf4", "fp4:double", "int8"])
def test_weights_take_the_bytes_they_take(name: str, how: str, tmp_path: Path) -> None:
    model, config = quantized(name, tmp_path, how, "fp32")
    model = adapted(model, QUANTIZED_TYPES[name])
    scales = [tensor for parameter in model.parameters() for _, tensor in quantization_parts(parameter)]
    scales += [parameter.SCB for parameter in model.parameters() if hasattr(parameter, "SCB")]
    config_file = tmp_path / "of_model.json"
    config_file.write_text(json.dumps(config))
    memory = answer(program(), "predict", str(config_file), "--batch", str(BATCH), "--set", f"length={LENGTH}",
                    "--lora", f"{RANK}:{','.join(QUANTIZED_TYPES[name])}", "--quantize", how)[0]["memory"]
    assert memory["parameters"] == blocks(model.parameters())
    assert 0 <= memory["buffers"] - blocks(scales) <= blocks(model.buffers())


def test_eight_bits_are_refused_with_a_word(tmp_path: Path) -> None:
    model, _ = quantized("llama", tmp_path, "int8", "fp32")
    with pytest.raises(CaptureError, match="--quantize int8"):
        captured(adapted(model, TARGETS), "fp32")
