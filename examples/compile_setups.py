"""Set-ups to measure as they are and compiled: `python -m forerun.compile_pairs examples/compile_setups.py -o FILE`.

Architectures of examples/wide_setups.py and wider_setups.py, at sizes and settings drawn anew, in precisions that
people compile in; and some deep ones, where the host has most to do. Families that begin with `judged` are kept aside:
nothing is fitted to them. Both kinds take turns, so that a list that is cut short has both.
"""

import functools
import pathlib
import sys

import torch
import transformers
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import wide_setups  # noqa: E402
import wider_setups  # noqa: E402

ARCHITECTURES = {**wide_setups.LEARNED, **wide_setups.JUDGED, **wider_setups.LEARNED, **wider_setups.JUDGED}


class Draw(wide_setups.Draw):
    def precision(self, **weights):
        return super().precision(**(weights or {"amp_bf16": 55, "bf16": 20, "fp32": 13, "tf32": 12}))


def drawn(name, number, device):
    with torch.device(device):
        return ARCHITECTURES[name](Draw(f"compile/{name}/{number}"))


# -- deep ones ---------------------------------------------------------------------------------------------------------


def larger(name, number, times, device):
    """The same with so many times its batch: what the host bounds, the GPU does."""
    made = drawn(name, number, device)
    batch = made["batch"]
    if isinstance(batch, dict):
        made["batch"] = {key: torch.cat([value] * times) for key, value in batch.items()}
    else:
        made["batch"] = [torch.cat([value] * times) for value in batch]
    return made


def trained(model, batch, precision, optimizer="AdamW", **options):
    model.train()
    made = getattr(torch.optim, optimizer)(model.parameters(), 1e-4, **options)
    return {"model": model, "optimizer": made, "batch": batch, "precision": precision}


def gpt2(device):
    with torch.device(device):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
        ids = torch.randint(50257, (8, 512))
    return trained(model, {"input_ids": ids, "labels": ids}, "amp_bf16", fused=True)


def llama(device):
    config = transformers.LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=4,
        vocab_size=32000, use_cache=False,
    )
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        ids = torch.randint(32000, (4, 1024))
    return trained(model, {"input_ids": ids, "labels": ids}, "bf16")


def bert(device):
    with torch.device(device):
        model = transformers.BertForMaskedLM(transformers.BertConfig())
        ids = torch.randint(30522, (16, 256))
    return trained(model, {"input_ids": ids, "labels": ids}, "fp32")


def gpt2_medium(device):
    config = transformers.GPT2Config(n_embd=1024, n_layer=24, n_head=16, use_cache=False)
    with torch.device(device):
        model = transformers.GPT2LMHeadModel(config)
        ids = torch.randint(50257, (8, 1024))
    return trained(model, {"input_ids": ids, "labels": ids}, "amp_bf16", fused=True)


def llama_1b(device):
    config = transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, tie_word_embeddings=True, use_cache=False,
    )
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        ids = torch.randint(128256, (2, 2048))
    return trained(model, {"input_ids": ids, "labels": ids}, "bf16", fused=True)


def bert_large(device):
    config = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
    )
    with torch.device(device):
        model = transformers.BertForMaskedLM(config)
        ids = torch.randint(30522, (16, 384))
    return trained(model, {"input_ids": ids, "labels": ids}, "amp_bf16", fused=True)


def t5_base(device):
    with torch.device(device):
        config = transformers.T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, use_cache=False,
                                       decoder_start_token_id=0)
        model = transformers.T5ForConditionalGeneration(config)
        ids = torch.randint(32128, (16, 512))
    return trained(model, {"input_ids": ids, "labels": ids[:, :128].contiguous()}, "amp_bf16", fused=True)


def vision(name, batch, precision, device, size=224, channels_last=False, **options):
    import timm

    with torch.device(device):
        model = timm.create_model(name, num_classes=1000)
        images, labels = torch.randn(batch, 3, size, size), torch.randint(1000, (batch,))
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    if precision == "bf16":
        model, images = model.to(torch.bfloat16), images.to(torch.bfloat16)
    return trained(model, [images, labels], precision, **options)


SGD = {"optimizer": "SGD", "momentum": 0.9}


class Words(nn.Module):
    """A recurrent language model: what cuDNN runs whole stays outside of what is compiled."""

    def __init__(self):
        super().__init__()
        self.embed, self.cells, self.out = nn.Embedding(20000, 512), nn.LSTM(512, 512, 2, batch_first=True), nn.Linear(
            512, 20000)

    def forward(self, ids):
        return self.out(nn.functional.dropout(self.cells(self.embed(ids))[0], 0.1))


def recurrent(device):
    with torch.device(device):
        ids = torch.randint(20000, (32, 64))
        return trained(Words(), [ids, ids], "fp32")


LEARNED = {
    "gpt2/gpt2": gpt2,
    "llama/llama": llama,
    "bert/bert": bert,
    "resnet/resnet50": functools.partial(vision, "resnet50", 64, "amp_bf16", channels_last=True, **SGD),
    "resnet/resnet50-fp32": functools.partial(vision, "resnet50", 32, "fp32", **SGD),
    "vit/vit_small": functools.partial(vision, "vit_small_patch16_224", 64, "amp_bf16", fused=True),
    "mixer/mixer": functools.partial(vision, "mixer_b16_224", 32, "amp_bf16"),
    "lstm/words": recurrent,
    **{
        f"{family}/{name}-{number}": functools.partial(drawn, name, number)
        for family, name, number in (
            ("unet", "diffusion_unet", 0), ("transformer", "encoder_layers", 0), ("convnext", "convnext", 0),
            ("llama", "qwen2", 0), ("efficientnet", "efficientnet", 0), ("t5", "t5", 0), ("gpt2", "opt", 0),
            ("densenet", "densenet", 0), ("speech", "conformer", 0), ("bert", "roberta", 0), ("vgg", "repvgg", 0),
            ("llama", "mixtral", 0), ("unet", "diffusion_unet", 1), ("perceptrons", "perceptrons", 0),
            ("mobilenet_v3", "mobilenetv4", 0), ("pvt", "pvt", 0), ("gan", "generator", 0),
            ("gpt2", "gpt_neox", 0), ("segmentation", "segmentation", 0), ("dlrm", "two_towers", 0),
            ("poolformer", "poolformer", 0), ("super_resolution", "super_resolution", 0), ("video", "video", 0),
            ("bert", "electra", 1), ("transformer", "encoder_layers", 1), ("llama", "llama", 2),
        )
    },
    # A second round, measured with nothing else at work.
    "llama/llama_1b": llama_1b,
    "mixer/mixer_s32": functools.partial(vision, "mixer_s32_224", 128, "amp_bf16"),
    "gpt2/gpt2_medium": gpt2_medium,
    "t5/t5_base": t5_base,
    "swin/swin_tiny": functools.partial(vision, "swin_tiny_patch4_window7_224", 48, "amp_bf16"),
    "vit/vit_base": functools.partial(vision, "vit_base_patch16_224", 64, "bf16"),
    **{
        f"{family}/{name}-{number}": functools.partial(drawn, name, number)
        for family, name, number in (
            ("llama", "mixtral", 1), ("mixer", "vision_mlp", 0), ("llama", "gemma2", 0), ("bart", "bart", 0),
            ("resnet", "resnext", 0), ("speech", "wav2vec2", 0), ("llama", "phi3", 0), ("twins", "twins", 0),
            ("gpt2", "falcon", 0), ("bert", "modernbert", 0), ("coatnet", "coatnet", 0), ("t5", "t5", 1),
            ("llama", "olmo2", 0), ("cspnet", "cspnet", 0), ("cait", "cait", 0), ("mixer", "mixer", 1),
            ("gpt2", "gpt_neo", 0), ("mobilevit", "mobilevit", 0), ("hrnet", "hrnet", 0),
            ("mobilenet_v2", "mobilenet_v2", 0),
        )
    },
    "bert/bert_large": bert_large,
    "convnext/convnext_small": functools.partial(vision, "convnext_small", 48, "amp_bf16", channels_last=True),
}

# Of earlier rounds, once kept aside. Rules were written with them in sight: they judge nothing any more.
SEEN = {
    f"{name}/{name}-0": functools.partial(drawn, name, 0)
    for name in (
        "dit", "stablelm", "dinov2", "convmixer", "deberta_v2", "segformer", "selecsls", "gptj", "latent_diffusion",
        "radiance_field", "fasternet", "albert", "graph_network", "siglip", "xcit", "gemma3", "pegasus",
        "inception_next",
    )
}
SEEN_LATER = {
    f"{name}/{name}-0": functools.partial(drawn, name, 0)
    for name in (
        "bloom", "whisper", "beit", "resnest", "clip", "efficientvit", "videomae", "deeplab", "davit", "hiera",
        "qwen3_moe", "mambaout", "wavlm", "nfnet", "visformer", "tresnet",
    )
}

# A third round, with the source of every kernel.
THIRD = {
    f"{family}/{name}-{number}": functools.partial(drawn, name, number)
    for family, name, number in (
        ("mixer", "mixer", 2), ("swin", "gcvit", 0), ("roformer", "roformer", 0), ("xception", "xception", 0),
        ("llama", "qwen3", 0), ("beit", "beit", 1), ("crossvit", "crossvit", 0), ("t5", "t5", 2),
        ("densenet", "densenet", 1), ("llama", "deepseek_v2", 0), ("focalnet", "focalnet", 0), ("resnet", "res2net", 0),
        ("convbert", "convbert", 0), ("mambaout", "mambaout", 1), ("unet", "diffusion_unet", 2), ("levit", "levit", 0),
        ("resnet", "resnet", 0), ("bart", "mbart", 0), ("davit", "davit", 1), ("convnext", "convnext", 1),
        ("gpt2", "codegen", 0), ("hiera", "hiera", 1), ("wavenet", "wavenet", 0), ("hgnet", "hgnet", 0),
        ("dit", "dit", 1), ("bert", "rembert", 0), ("poolformer", "metaformer", 0), ("mobilenet_v3", "ghostnet", 0),
        ("fastvit", "fastvit", 0), ("speech", "conformer", 1), ("xlnet", "xlnet", 0), ("resnet", "skresnet", 0),
        ("llama", "gemma", 0), ("mnasnet", "mnasnet", 0), ("tnt", "tnt", 0), ("speech_to_text", "speech_to_text", 0),
    )
}

SEEN_LAST = {
    f"{name}/{name}-0": functools.partial(drawn, name, 0)
    for name in (
        "persimmon", "volo", "patchtst", "smollm3", "vitamin", "depth", "helium", "spectrogram", "convit", "shvit",
        "halonet", "tiny_vit", "squeezebert", "mvit",
    )
}
JUDGED = {
    f"judged/{name}-0": functools.partial(drawn, name, 0)
    for name in (
        "rdnet", "maxvit", "nest", "pnasnet", "nystromformer", "nextvit", "coat", "codec", "swiftformer", "starnet",
        "dpn", "sequencer", "edgenext",
    )
}

# Of families that are looked at, and of those kept aside and five more, so large that the GPU bounds them.
SEEN_LARGE = {
    f"{name}/{name}-0-x{times}": functools.partial(larger, name, 0, times)
    for name, times in (
        ("halonet", 6), ("squeezebert", 3), ("tiny_vit", 6), ("mvit", 6), ("vovnet", 8),
    )
}
JUDGED_LARGE = {
    f"judged/{name}-0-x{times}": functools.partial(larger, name, 0, times)
    for name, times in (
        ("pit", 8), ("nystromformer", 6), ("repvit", 8), ("coat", 5), ("dla", 4), ("nest", 4),
        ("efficientformer", 4), ("dpn", 4), ("rdnet", 6), ("nextvit", 6),
    )
}


# -- what breaks a graph -----------------------------------------------------------------------------------------------


class Blocks(nn.Module):
    """Residual perceptrons; `between` is asked with what comes out of each, in Python."""

    def __init__(self, between, blocks=6, width=1024):
        super().__init__()
        self.between = between
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1),
                          nn.Linear(4 * width, width))
            for _ in range(blocks)
        )
        self.out = nn.Linear(width, 100)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
            x = self.between(x)
        return self.out(x.mean(1))


def finite(x):
    if not torch.isfinite(x).all():
        raise ValueError("not finite")
    return x


def scaled_by_item(x):
    return x / max(1.0, x.detach().abs().max().item())


@torch.compiler.disable
def softly_clipped(x):
    return 30 * torch.tanh(x / 30)


def broken(between, precision, device):
    with torch.device(device):
        model, x, labels = Blocks(between), torch.randn(32, 256, 1024), torch.randint(100, (32,))
    return trained(model, [x, labels], precision, fused=True)


BREAKS = {
    "breaks/finite": functools.partial(broken, finite, "amp_bf16"),
    "breaks/item": functools.partial(broken, scaled_by_item, "fp32"),
    "breaks/disabled": functools.partial(broken, softly_clipped, "amp_bf16"),
}


def in_turn(learned, judged):
    """Two of the one, one of the other."""
    ones, others = list(learned), list(judged)
    while ones or others:
        yield from ones[:2] + others[:1]
        ones, others = ones[2:], others[1:]


ALL = {**LEARNED, **SEEN, **SEEN_LATER, **THIRD, **SEEN_LAST, **SEEN_LARGE, **BREAKS, **JUDGED, **JUDGED_LARGE}
SECOND = list(LEARNED)[list(LEARNED).index("llama/llama_1b"):]
FIRST = [name for name in LEARNED if name not in SECOND]
ORDER = (*in_turn(FIRST, SEEN), *in_turn(SECOND, SEEN_LATER), *in_turn(THIRD, SEEN_LAST), *in_turn(BREAKS, JUDGED),
         *in_turn(SEEN_LARGE, JUDGED_LARGE))
SETUPS = {name: ALL[name] for name in ORDER}
