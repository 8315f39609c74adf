"""Language models of the transformers library: bert, gpt2, llama (sdpa attention) and t5 (eager attention).

They take token numbers and give an output with `logits`. The key-value cache is off. T5's attention is spelled out as
matrix products because that is what the zoo predicts.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from torch import nn


def bert(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel
    dropout = args.get("dropout", 0.1)
    config = BertConfig(
        vocab_size=_vocab(args, input), hidden_size=args.get("hidden", 768), num_hidden_layers=args.get("layers", 12),
        num_attention_heads=args.get("heads", 12), intermediate_size=args.get("intermediate", 3072),
        max_position_embeddings=args.get("positions", 512), type_vocab_size=args.get("types", 2),
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, num_labels=args.get("labels", 2),
        attn_implementation="sdpa")
    heads = {"mlm": BertForMaskedLM, "classifier": BertForSequenceClassification, "none": BertModel}
    return heads[args.get("head", "mlm")](config)


def gpt2(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel
    dropout = args.get("dropout", 0.1)
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=_vocab(args, input), n_positions=args.get("positions", 1024), n_embd=args.get("width", 768),
        n_layer=args.get("layers", 12), n_head=args.get("heads", 12), n_inner=args.get("inner") or None,
        resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, bos_token_id=0, eos_token_id=0, use_cache=False,
        attn_implementation="sdpa"))


def llama(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=_vocab(args, input), hidden_size=args.get("hidden", 4096),
        intermediate_size=args.get("intermediate", 11008), num_hidden_layers=args.get("layers", 32),
        num_attention_heads=args.get("heads", 32), num_key_value_heads=args.get("kv_heads", 32),
        rms_norm_eps=args.get("eps", 1e-6), tie_word_embeddings=bool(args.get("tied", False)),
        max_position_embeddings=max(2048, input[2]), bos_token_id=0, eos_token_id=0, use_cache=False,
        attn_implementation="sdpa"))


def t5(args: Mapping[str, Any], input: Sequence[Any]) -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    class T5(T5ForConditionalGeneration):
        """Both sides read the same tokens."""

        def forward(self, input_ids: Any) -> Any:
            return super().forward(input_ids=input_ids, decoder_input_ids=input_ids)

    return T5(T5Config(
        vocab_size=_vocab(args, input), d_model=args.get("d_model", 512), d_kv=args.get("d_kv", 64),
        d_ff=args.get("d_ff", 2048), num_layers=args.get("layers", 6), num_decoder_layers=args.get("decoder_layers", 6),
        num_heads=args.get("heads", 8), relative_attention_num_buckets=args.get("buckets", 32),
        relative_attention_max_distance=args.get("max_distance", 128), dropout_rate=args.get("dropout", 0.1),
        feed_forward_proj="relu", use_cache=False, attn_implementation="eager"))


def _vocab(args: Mapping[str, Any], input: Sequence[Any]) -> int:
    return int(args.get("vocab", input[3]))
