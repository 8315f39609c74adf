"""Captures of transformers' models as users train them: layer drop, experts, LoRA, checkpointing."""
import os
from typing import Any, Dict, List

import needs_torch  # noqa: F401  (skips first)
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

from forerun.capture import capture  # noqa: E402

Json = Dict[str, Any]

_SMALL = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
_EXPERTS = {
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {"head_dim": 8, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "deepseek_v3": {
        "num_key_value_heads": 4,
        "moe_intermediate_size": 32,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_group": 2,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
    },
}


def decoder(kind: str, **settings: Any) -> Any:
    try:
        config = transformers.AutoConfig.for_model(kind, **{**_SMALL, **settings})
    except ValueError:
        pytest.skip(f"this transformers has no {kind}")
    return transformers.AutoModelForCausalLM.from_config(config)


def captured(model: Any, batch: Any = None, **options: Any) -> Json:
    tokens = torch.randint(128, (2, 16))
    given = batch if batch is not None else {"input_ids": tokens, "labels": tokens}
    model.train()
    return capture(model, torch.optim.AdamW(model.parameters()), given, backend="generic", **options)


def forward_modules(record: Json, name: str) -> List[str]:
    """The modules that call an op in the forward pass."""
    ops = record["ops"]
    rows = zip(ops["name"], ops["phase"], ops["module"])
    return [record["modules"][m] for n, phase, m in rows if phase == "f" and name in record["op_names"][n]]


def test_layer_drop_keeps_most_layers_of_wav2vec2() -> None:
    config = transformers.Wav2Vec2Config(
        hidden_size=32,
        num_hidden_layers=6,
        num_attention_heads=4,
        intermediate_size=64,
        conv_dim=(16, 16),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        vocab_size=20,
        mask_time_length=2,
        layerdrop=0.1,
    )
    batch = {"input_values": torch.randn(2, 1600), "labels": torch.randint(1, 20, (2, 4))}
    record = captured(transformers.Wav2Vec2ForCTC(config), batch)
    kept = len(forward_modules(record, "forerun.attention"))
    assert 5 <= kept <= 6 and record["random"]["draws"] == 9
    assert "modeling_wav2vec2.py:" in record["warnings"][0] and "unused" not in record


@pytest.mark.sampled
@pytest.mark.parametrize("kind", list(_EXPERTS))
@pytest.mark.parametrize("precision", ["fp32", "amp_bf16", "bf16"])
def test_mixtures_of_experts_record(kind: str, precision: str) -> None:
    record = captured(decoder(kind, **_EXPERTS[kind]), precision=precision)
    assert "warnings" not in record and "unused" not in record
    assert any("evenly" in sentence or "even" in sentence for sentence in record["assumed"])


def test_checkpointed_blocks_are_computed_again() -> None:
    model = decoder("llama")
    kept, again = captured(model, precision="amp_bf16"), captured(model, precision="amp_bf16", checkpoint="block")
    assert forward_modules(kept, "forerun.attention.default") == forward_modules(again, "forerun.attention.default")
    names = [again["op_names"][name] for name in again["ops"]["name"]]
    assert names.count("forerun.attention.default") == 4 and names.count("forerun.attention_backward.default") == 2
    assert not model.is_gradient_checkpointing


def test_adapters_train_and_frozen_weights_take_part() -> None:
    peft: Any = pytest.importorskip("peft")
    model = peft.get_peft_model(decoder("llama"), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    record = captured(model, precision="amp_bf16")
    assert "unused" not in record and "warnings" not in record
    states = [name for kind, name in zip(record["roots"]["kind"], record["roots"]["name"]) if kind == "s"]
    assert states and all("lora_" in name for name in states)


def test_a_decoder_moves_with_batch_and_length() -> None:
    record = captured(decoder("llama"), precision="amp_bf16", batch_sizes=(2, 3, 5), lengths=(16, 24, 40))
    assert "fixed" not in record["parametric"]
