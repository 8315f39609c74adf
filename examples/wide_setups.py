"""Some two hundred set-ups: the architectures that people train, a few layers of each, at drawn sizes and settings.

    python -m forerun.setup_pairs examples/wide_setups.py --records runs.jsonl                # on a GPU
    python -m forerun.setup_pairs examples/wide_setups.py judged/dit-0 -o pairs.jsonl.gz

A set-up is named by its family, an architecture and a number, which seeds its draws: llama/qwen2-0, llama/qwen2-1, ...
Families have the names of the zoo's where they are kin. Widths are those of published models; layers are few, since
those of a model are alike. Of the family `judged` nothing is learned: predictions are held to it. Needs transformers,
timm and torchvision.
"""

import functools
import random

import timm
import torch
import torchvision
import transformers
from torch import nn

LEARNED, JUDGED = {}, {}


def learned(make):
    LEARNED[make.__name__] = make
    return make


def judged(make):
    JUDGED[make.__name__] = make
    return make


class Draw(random.Random):
    """What is drawn for one set-up."""

    def precision(self, **weights):
        weights = weights or {"amp_bf16": 35, "amp_fp16": 25, "bf16": 22, "tf32": 8, "fp32": 10}
        return self.choices(list(weights), list(weights.values()))[0]

    def near(self, low, high):
        """Log-uniform, and even as batches mostly are."""
        value = int(low * (high / low) ** self.random())
        return max(low, value - value % (8 if value >= 32 else 2 if value >= 4 else 1))


def optimizer(draw, model):
    trained = [p for p in model.parameters() if p.requires_grad]
    kind = draw.choice(("adamw", "adamw", "fused", "sgd", "adam"))
    if kind == "sgd":
        return torch.optim.SGD(trained, 0.01, momentum=0.9)
    return (torch.optim.Adam if kind == "adam" else torch.optim.AdamW)(
        trained, 1e-4, fused=True if kind == "fused" else None
    )


def finished(draw, model, batch, loss_fn=None, channels_last=False):
    """The set-up of a model that was built on its device."""
    precision = draw.precision()
    model.train()
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        last = torch.channels_last
        batch = [t.contiguous(memory_format=last) if torch.is_tensor(t) and t.dim() == 4 else t for t in batch]
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    if precision == "bf16":
        model = model.to(torch.bfloat16)
        turned = [
            t.to(torch.bfloat16) if t.is_floating_point() else t
            for t in (batch.values() if isinstance(batch, dict) else batch)
        ]
        batch = dict(zip(batch, turned)) if isinstance(batch, dict) else turned
    made = {"model": model, "optimizer": optimizer(draw, model), "batch": batch, "precision": precision}
    if loss_fn is not None:
        made["loss_fn"] = loss_fn
    if draw.random() < 0.25:
        made["clip_grad"] = 1.0
    return made


# -- language ----------------------------------------------------------------------------------------------------------


def tokens(draw, vocabulary, most, longest=2048):
    """Batch and length, of `most` tokens at the most."""
    length = draw.choice([size for size in (128, 197, 256, 384, 512, 512, 1000, 1024, 2048) if size <= longest])
    batch = max(1, draw.near(1024, most) // length)
    return torch.randint(vocabulary, (batch, length))


def language_model(draw, config, head, most=12000, longest=2048, labels=None):

    model = getattr(transformers, head)(config)
    ids = tokens(draw, config.vocab_size, most, longest)
    batch = {"input_ids": ids, "labels": ids if labels is None else torch.randint(labels, (ids.shape[0],))}
    return finished(draw, model, batch)


def decoder(config, head, widths, vocabularies, heads_of=64, inner=4, names=(), fixed=None, longest=2048):
    """A family of decoders by its config class; `names` are those of hidden_size, layers, heads and inner size."""

    def make(draw):

        width = draw.choice(widths)
        words = dict(
            zip(
                names or ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
                (width, 2, width // heads_of, int(width * inner)),
            )
        )
        given = {
            "vocab_size": draw.choice(vocabularies),
            "use_cache": False,
            **{name: value(width) if callable(value) else value for name, value in (fixed or {}).items()},
        }
        made = getattr(transformers, config)(**words, **given)
        return language_model(draw, made, head, longest=longest)

    return make


def named(group, name, make):
    group[name] = make


GPT2_NAMES = ("n_embd", "n_layer", "n_head", "n_inner")
named(
    LEARNED,
    "llama",
    decoder(
        "LlamaConfig",
        "LlamaForCausalLM",
        (1024, 2048, 3072, 4096),
        (32000, 32000, 50304, 128256),
        128,
        2.6875,
        fixed={"num_key_value_heads": lambda w: max(1, w // 512)},
    ),
)
named(
    LEARNED,
    "qwen2",
    decoder(
        "Qwen2Config",
        "Qwen2ForCausalLM",
        (896, 1536, 2048),
        (151936,),
        128,
        5.8,
        fixed={"num_key_value_heads": 1, "tie_word_embeddings": True},
    ),
)
named(
    LEARNED,
    "gemma2",
    decoder(
        "Gemma2Config",
        "Gemma2ForCausalLM",
        (1152, 2304),
        (32000, 256000),
        288,
        4,
        fixed={"head_dim": 256, "num_key_value_heads": 2},
    ),
)
named(
    LEARNED,
    "phi3",
    decoder("Phi3Config", "Phi3ForCausalLM", (1536, 3072), (32064,), 96, 2.667, fixed={"pad_token_id": 0}),
)
named(
    LEARNED,
    "falcon",
    decoder(
        "FalconConfig",
        "FalconForCausalLM",
        (1024, 2048),
        (50304, 65024),
        64,
        4,
        ("hidden_size", "num_hidden_layers", "num_attention_heads", "ffn_hidden_size"),
    ),
)
named(LEARNED, "gpt_neox", decoder("GPTNeoXConfig", "GPTNeoXForCausalLM", (768, 1024, 2048, 2560), (50304, 50432)))
named(
    LEARNED,
    "opt",
    decoder(
        "OPTConfig",
        "OPTForCausalLM",
        (768, 1024, 2048),
        (50272,),
        64,
        4,
        ("hidden_size", "num_hidden_layers", "num_attention_heads", "ffn_dim"),
        {"word_embed_proj_dim": lambda w: w},
    ),
)
named(LEARNED, "olmo2", decoder("Olmo2Config", "Olmo2ForCausalLM", (1024, 2048), (100352,), 128, 4))
named(
    LEARNED,
    "starcoder2",
    decoder(
        "Starcoder2Config", "Starcoder2ForCausalLM", (1536, 3072), (49152,), 128, 4, fixed={"num_key_value_heads": 2}
    ),
)
named(
    LEARNED,
    "mixtral",
    decoder(
        "MixtralConfig",
        "MixtralForCausalLM",
        (512, 1024, 2048),
        (32000,),
        64,
        2,
        fixed={"num_local_experts": 8, "num_key_value_heads": 4},
        longest=1024,
    ),
)
named(
    LEARNED,
    "gpt_neo",
    decoder(
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        (768, 1024),
        (50257,),
        64,
        4,
        ("hidden_size", "num_layers", "num_heads", "intermediate_size"),
        {"attention_types": [[["global", "local"], 1]]},
        longest=512,
    ),
)
named(
    LEARNED,
    "cohere",
    decoder(
        "CohereConfig", "CohereForCausalLM", (1024, 2048), (64000, 256000), 128, 2.75, fixed={"num_key_value_heads": 4}
    ),
)
named(JUDGED, "gptj", decoder("GPTJConfig", "GPTJForCausalLM", (1024, 2048), (50400,), 256, 4, GPT2_NAMES))
named(
    JUDGED,
    "bloom",
    decoder(
        "BloomConfig",
        "BloomForCausalLM",
        (1024, 1536),
        (250880,),
        64,
        4,
        ("hidden_size", "n_layer", "n_head", "unused"),
        longest=1024,
    ),
)
named(
    JUDGED,
    "stablelm",
    decoder(
        "StableLmConfig",
        "StableLmForCausalLM",
        (2048, 2560),
        (50304, 100352),
        64,
        2.7,
        fixed={"num_key_value_heads": lambda w: w // 64},
    ),
)
named(
    JUDGED,
    "qwen3_moe",
    decoder(
        "Qwen3MoeConfig",
        "Qwen3MoeForCausalLM",
        (1024, 2048),
        (151936,),
        64,
        3,
        fixed={
            "num_experts": 16,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 768,
            "num_key_value_heads": 4,
            "head_dim": 128,
        },
        longest=1024,
    ),
)
named(
    JUDGED,
    "gemma3",
    decoder(
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        (640, 1152),
        (262144,),
        288,
        6,
        fixed={"head_dim": 256, "num_key_value_heads": 1},
    ),
)


def encoder(config, head, widths, vocabulary, fixed=None, labels=None, longest=512):
    def make(draw):

        width = draw.choice(widths)
        words = {
            "vocab_size": vocabulary,
            "hidden_size": width,
            "num_hidden_layers": draw.choice((2, 3)),
            "num_attention_heads": width // 64,
            "intermediate_size": 4 * width,
            "num_labels": labels or 2,
            **(fixed or {}),
        }
        return language_model(draw, getattr(transformers, config)(**words), head, 24000, longest, labels)

    return make


named(LEARNED, "bert", encoder("BertConfig", "BertForMaskedLM", (384, 512, 768, 1024), 30522))
named(
    LEARNED,
    "roberta",
    encoder(
        "RobertaConfig", "RobertaForSequenceClassification", (768, 1024), 50265, {"max_position_embeddings": 514}, 2
    ),
)
named(
    LEARNED,
    "modernbert",
    encoder(
        "ModernBertConfig",
        "ModernBertForMaskedLM",
        (768, 1024),
        50368,
        {"attn_implementation": "sdpa", "reference_compile": False},
    ),
)
named(LEARNED, "mpnet", encoder("MPNetConfig", "MPNetForMaskedLM", (384, 768), 30527, {"max_position_embeddings": 514}))
named(
    LEARNED,
    "electra",
    encoder("ElectraConfig", "ElectraForSequenceClassification", (256, 768), 30522, {"embedding_size": 128}, 2),
)
named(JUDGED, "albert", encoder("AlbertConfig", "AlbertForMaskedLM", (768, 2048), 30000))
named(
    JUDGED,
    "deberta_v2",
    encoder(
        "DebertaV2Config",
        "DebertaV2ForSequenceClassification",
        (384, 768),
        128100,
        {
            "relative_attention": True,
            "position_buckets": 256,
            "pos_att_type": ["p2c", "c2p"],
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "max_relative_positions": -1,
            "position_biased_input": False,
        },
        3,
    ),
)


@learned
def t5(draw):

    width = draw.choice((512, 768, 1024))
    config = transformers.T5Config(
        vocab_size=32128,
        d_model=width,
        d_ff=4 * width,
        num_layers=2,
        num_heads=width // 64,
        use_cache=False,
        decoder_start_token_id=0,
        feed_forward_proj=draw.choice(("relu", "gated-gelu")),
    )
    model = transformers.T5ForConditionalGeneration(config)
    ids = tokens(draw, 32128, 16000, 512)
    return finished(
        draw, model, {"input_ids": ids, "labels": ids[:, : ids.shape[1] // draw.choice((1, 2, 4))].contiguous()}
    )


def sequences(config, head, width_name="d_model"):
    def make(draw):

        width = draw.choice((512, 768, 1024))
        config_of = getattr(transformers, config)
        made = config_of(
            vocab_size=50265,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=width // 64,
            use_cache=False,
            decoder_attention_heads=width // 64,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            **{width_name: width},
        )
        return language_model(draw, made, head, 12000, 512)

    return make


named(LEARNED, "bart", sequences("BartConfig", "BartForConditionalGeneration"))
named(JUDGED, "pegasus", sequences("PegasusConfig", "PegasusForConditionalGeneration"))


@learned
def mamba(draw):

    width = draw.choice((512, 768, 1024))
    config = transformers.MambaConfig(vocab_size=50280, hidden_size=width, num_hidden_layers=2, use_cache=False)
    ids = torch.randint(50280, (draw.choice((4, 8, 16)), draw.choice((64, 128))))
    return finished(draw, transformers.MambaForCausalLM(config), {"input_ids": ids, "labels": ids})


# -- speech ------------------------------------------------------------------------------------------------------------


def waves(config, head):
    def make(draw):

        width = draw.choice((512, 768, 1024))
        made = getattr(transformers, config)(
            hidden_size=width,
            num_hidden_layers=2,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
            vocab_size=32,
            num_labels=12,
            layerdrop=0.0,
            mask_time_prob=0.0,
            mask_feature_prob=0.0,
            apply_spec_augment=False,
            feat_extract_norm=draw.choice(("group", "layer")),
            do_stable_layer_norm=draw.random() < 0.5,
        )
        sounds = torch.randn(draw.near(2, 24), 16000 * draw.choice((2, 5, 10)))
        return finished(
            draw,
            getattr(transformers, head)(made),
            {"input_values": sounds, "labels": torch.randint(12, (sounds.shape[0],))},
        )

    return make


named(LEARNED, "hubert", waves("HubertConfig", "HubertForSequenceClassification"))
named(LEARNED, "wav2vec2", waves("Wav2Vec2Config", "Wav2Vec2ForSequenceClassification"))
named(JUDGED, "wavlm", waves("WavLMConfig", "WavLMForSequenceClassification"))


@judged
def whisper(draw):

    width = draw.choice((384, 512, 768, 1280))
    config = transformers.WhisperConfig(
        d_model=width,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=width // 64,
        decoder_attention_heads=width // 64,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        use_cache=False,
    )
    batch = draw.near(2, 16)
    return finished(
        draw,
        transformers.WhisperForConditionalGeneration(config),
        {
            "input_features": torch.randn(batch, 80, 3000),
            "labels": torch.randint(51000, (batch, draw.choice((64, 128, 224)))),
        },
    )


@learned
def conformer(draw):
    """Blocks of attention and a depthwise convolution over time."""
    width, steps = draw.choice((256, 384, 512)), draw.choice((250, 400, 750))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
            self.feeds = nn.ModuleList(
                nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
                for _ in range(2)
            )
            self.attention = nn.MultiheadAttention(width, width // 64, batch_first=True)
            self.inner = nn.Conv1d(width, 2 * width, 1)
            self.depthwise = nn.Conv1d(width, width, 31, padding=15, groups=width)
            self.batch_norm, self.outer = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

        def forward(self, x):
            x = x + 0.5 * self.feeds[0](self.norms[0](x))
            y = self.norms[1](x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            y = nn.functional.glu(self.inner(self.norms[2](x).transpose(1, 2)), 1)
            x = x + self.outer(nn.functional.silu(self.batch_norm(self.depthwise(y)))).transpose(1, 2)
            return x + 0.5 * self.feeds[1](self.norms[3](x))

    model = nn.Sequential(nn.Linear(80, width), *(Block() for _ in range(3)), nn.Linear(width, 500))
    batch = draw.near(4, 48)
    return finished(draw, model, [torch.randn(batch, steps, 80), torch.randint(500, (batch, steps))])


# -- images ------------------------------------------------------------------------------------------------------------

IMAGES = (160, 192, 224, 224, 224, 256, 288)


def network(names, sizes=IMAGES, most=96, **words):
    """A network of timm's, its last layers as published."""

    def make(draw):

        model = timm.create_model(draw.choice(names), num_classes=1000, **words)
        size, batch = draw.choice(sizes), draw.near(8, most)
        return finished(
            draw,
            model,
            [torch.randn(batch, 3, size, size), torch.randint(1000, (batch,))],
            channels_last=draw.random() < 0.5,
        )

    return make


def family(group, name, *names, **words):
    named(group, name, network(names, **words))


family(LEARNED, "resnext", "resnext50_32x4d", "seresnext26t_32x4d")
family(LEARNED, "efficientnet", "efficientnet_b0", "efficientnet_b2", "efficientnetv2_rw_t")
family(LEARNED, "convnext", "convnext_tiny", "convnextv2_nano")
family(LEARNED, "mobilenetv4", "mobilenetv4_conv_small", "mobilenetv4_conv_medium")
family(LEARNED, "ghostnet", "ghostnet_100")
family(LEARNED, "densenet", "densenet121")
family(LEARNED, "dla", "dla34", "dla60")
family(LEARNED, "skresnet", "skresnet34", "skresnext50_32x4d")
family(LEARNED, "hrnet", "hrnet_w18_small")
family(LEARNED, "cspnet", "cspresnext50", "cspdarknet53")
family(LEARNED, "res2net", "res2net50_14w_8s")
family(LEARNED, "coatnet", "coatnet_0_rw_224", sizes=(224,), most=48)
family(LEARNED, "poolformer", "poolformer_s12", "poolformerv2_s12")
family(LEARNED, "mobilevit", "mobilevit_xs", "mobilevitv2_075", sizes=(256,))
family(LEARNED, "edgenext", "edgenext_small")
family(LEARNED, "levit", "levit_192", sizes=(224,))
family(LEARNED, "cait", "cait_xxs24_224", sizes=(224,), most=32)
family(LEARNED, "pvt", "pvt_v2_b1", sizes=(224,))
family(LEARNED, "twins", "twins_svt_small", sizes=(224,))
family(LEARNED, "mixer", "mixer_s16_224", "gmlp_s16_224", sizes=(224,))
family(JUDGED, "beit", "beit_base_patch16_224", sizes=(224,), most=48)
family(LEARNED, "focalnet", "focalnet_tiny_srf", sizes=(224,), most=48)
family(LEARNED, "repvgg", "repvgg_a0", "repvgg_b0")
family(LEARNED, "ecaresnet", "ecaresnet26t", "resnetrs50")
family(LEARNED, "hgnet", "hgnetv2_b1")
family(LEARNED, "fastvit", "fastvit_t8", sizes=(256,))
family(LEARNED, "crossvit", "crossvit_tiny_240", sizes=(240,), most=48)
family(JUDGED, "resnest", "resnest26d", "resnest14d")
family(JUDGED, "efficientvit", "efficientvit_b1", "efficientvit_m2", sizes=(224,))
family(JUDGED, "nfnet", "dm_nfnet_f0", "nf_resnet50", most=64)
family(JUDGED, "xcit", "xcit_tiny_12_p16_224", sizes=(224,), most=48)
family(JUDGED, "davit", "davit_tiny", sizes=(224,), most=48)
family(JUDGED, "selecsls", "selecsls42b")
family(JUDGED, "tresnet", "tresnet_m", most=64)
family(JUDGED, "convmixer", "convmixer_768_32", sizes=(224,), most=32)
family(LEARNED, "mnasnet", "semnasnet_100", "spnasnet_100")


@judged
def dinov2(draw):

    width = draw.choice((384, 768, 1024))
    config = transformers.Dinov2Config(
        hidden_size=width, num_hidden_layers=3, num_attention_heads=width // 64, num_labels=1000
    )
    batch = draw.near(8, 96)
    return finished(
        draw,
        transformers.Dinov2ForImageClassification(config),
        {"pixel_values": torch.randn(batch, 3, 224, 224), "labels": torch.randint(1000, (batch,))},
    )


@judged
def segformer(draw):

    config = transformers.SegformerConfig(
        hidden_sizes=draw.choice(([32, 64, 160, 256], [64, 128, 320, 512])), num_labels=150
    )
    batch, size = draw.near(2, 16), draw.choice((256, 512))
    return finished(
        draw,
        transformers.SegformerForSemanticSegmentation(config),
        {"pixel_values": torch.randn(batch, 3, size, size), "labels": torch.randint(150, (batch, size, size))},
    )


@judged
def clip(draw):

    config = transformers.CLIPConfig(
        text_config={"num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048},
        vision_config={"num_hidden_layers": 2, "patch_size": draw.choice((16, 32))},
    )
    batch = draw.near(16, 256)
    return finished(
        draw,
        transformers.CLIPModel(config),
        {"pixel_values": torch.randn(batch, 3, 224, 224), "input_ids": torch.randint(1000, 49000, (batch, 77))},
        loss_fn=_clip_loss,
    )


def _clip_loss(model, batch):
    return model(**batch, return_loss=True).loss


@judged
def videomae(draw):

    config = transformers.VideoMAEConfig(
        hidden_size=384, num_hidden_layers=3, num_attention_heads=6, intermediate_size=1536, num_labels=400
    )
    batch = draw.near(2, 16)
    return finished(
        draw,
        transformers.VideoMAEForVideoClassification(config),
        {"pixel_values": torch.randn(batch, 16, 3, 224, 224), "labels": torch.randint(400, (batch,))},
    )


@learned
def segmentation(draw):
    """A dilated net with pyramids of holes, its logits brought up to the image."""

    build = draw.choice(
        (torchvision.models.segmentation.fcn_resnet50, torchvision.models.segmentation.lraspp_mobilenet_v3_large)
    )
    batch, size = draw.near(4, 16), draw.choice((256, 384, 512))
    model = build(weights=None, weights_backbone=None, num_classes=21)
    return finished(
        draw,
        model,
        [torch.randn(batch, 3, size, size), torch.randint(21, (batch, size, size))],
        lambda m, b: nn.functional.cross_entropy(m(b[0])["out"], b[1]),
        draw.random() < 0.5,
    )


@judged
def deeplab(draw):

    batch, size = draw.near(4, 16), draw.choice((256, 384, 512))
    model = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21)
    return finished(
        draw,
        model,
        [torch.randn(batch, 3, size, size), torch.randint(21, (batch, size, size))],
        lambda m, b: nn.functional.cross_entropy(m(b[0])["out"], b[1]),
        draw.random() < 0.5,
    )


# -- images that are made ----------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.first_norm, self.second_norm = nn.GroupNorm(32, inputs), nn.GroupNorm(32, outputs)
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, 1, 1), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        y = self.first(nn.functional.silu(self.first_norm(x)))
        y = y + self.time(nn.functional.silu(t))[:, :, None, None]
        return self.skip(x) + self.second(nn.functional.silu(self.second_norm(y)))


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(32, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, c // 64, 64, h * w).transpose(3, 4).unbind(1)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(2, 3).reshape(b, c, h, w))


class DiffusionUNet(nn.Module):
    def __init__(self, width, channels):
        super().__init__()
        widths = [width, 2 * width, 4 * width]
        self.first = nn.Conv2d(channels, width, 3, 1, 1)
        self.down = nn.ModuleList(Residual(max(width, w // 2), w, 4 * width) for w in widths)
        self.shrink = nn.ModuleList(nn.Conv2d(w, w, 3, 2, 1) for w in widths[:-1])
        self.middle = Attention(widths[-1])
        self.up = nn.ModuleList(Residual(w + (2 * w if w < widths[-1] else w), w, 4 * width) for w in reversed(widths))
        self.last_norm, self.last = nn.GroupNorm(32, width), nn.Conv2d(width, channels, 3, 1, 1)
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))

    def forward(self, x, t):
        t, x, kept = self.time(t), self.first(x), []
        for level, block in enumerate(self.down):
            x = block(x, t)
            kept.append(x)
            x = self.shrink[level](x) if level < len(self.shrink) else x
        x = self.middle(x)
        for block in self.up:
            skip = kept.pop()
            x = x if x.shape[2:] == skip.shape[2:] else nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skip], 1), t)
        return self.last(nn.functional.silu(self.last_norm(x)))


def _denoising_loss(model, batch):
    return nn.functional.mse_loss(model(*batch[:-1]), batch[-1])


@learned
def diffusion_unet(draw):
    width, size, batch = draw.choice((64, 128, 192)), draw.choice((32, 64)), draw.near(8, 64)
    model = DiffusionUNet(width, draw.choice((3, 4)))
    image = torch.randn(batch, model.first.in_channels, size, size)
    return finished(
        draw, model, [image, torch.randn(batch, width), torch.randn_like(image)], _denoising_loss, draw.random() < 0.3
    )


class DiTBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, c):
        b, n, w = x.shape
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(c)[:, None].chunk(6, -1)
        y = self.norms[0](x) * (1 + scale) + shift
        q, k, v = self.qkv(y).reshape(b, n, 3, w // 64, 64).permute(2, 0, 3, 1, 4)
        x = x + gate * self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, w))
        return x + gate2 * self.feed(self.norms[1](x) * (1 + scale2) + shift2)


@judged
def dit(draw):
    width, patches, batch = draw.choice((384, 768, 1152)), draw.choice((256, 1024)), draw.near(8, 64)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.blocks, self.last = (
                nn.Linear(16, width),
                nn.ModuleList(DiTBlock(width) for _ in range(3)),
                nn.Linear(width, 16),
            )

        def forward(self, x, c):
            x = self.embed(x)
            for block in self.blocks:
                x = block(x, c)
            return self.last(x)

    image = torch.randn(batch, patches, 16)
    return finished(draw, Whole(), [image, torch.randn(batch, width), torch.randn_like(image)], _denoising_loss)


@learned
def generator(draw):
    """Transposed convolutions, from a vector to an image, and a critic of it."""
    width = draw.choice((32, 64, 96))
    widths = [8 * width, 4 * width, 2 * width, width]
    layers = [nn.ConvTranspose2d(128, widths[0], 4, 1, 0, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(True)]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]
    layers += [
        nn.ConvTranspose2d(width, 3, 4, 2, 1),
        nn.Tanh(),
        nn.Conv2d(3, width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1),
        nn.InstanceNorm2d(2 * width, affine=True),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(2 * width * 256, 2),
    ]
    batch = draw.near(16, 256)
    return finished(
        draw,
        nn.Sequential(*layers),
        [torch.randn(batch, 128, 1, 1), torch.randint(2, (batch,))],
        channels_last=draw.random() < 0.3,
    )


@learned
def super_resolution(draw):
    width = draw.choice((32, 64))
    body = [part for _ in range(5) for part in (nn.Conv2d(width, width, 3, 1, 1), nn.PReLU(width))]
    model = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1), *body, nn.Conv2d(width, 48, 3, 1, 1), nn.PixelShuffle(4))
    batch, size = draw.near(4, 32), draw.choice((48, 64, 96))
    return finished(
        draw,
        model,
        [torch.randn(batch, 3, size, size), torch.randn(batch, 3, 4 * size, 4 * size)],
        lambda m, b: nn.functional.l1_loss(m(b[0]), b[1]),
        draw.random() < 0.5,
    )


# -- others ------------------------------------------------------------------------------------------------------------


@learned
def video(draw):

    build = draw.choice((torchvision.models.video.r3d_18, torchvision.models.video.r2plus1d_18))
    batch = draw.near(2, 12)
    return finished(
        draw,
        build(num_classes=400),
        [torch.randn(batch, 3, draw.choice((8, 16)), 112, 112), torch.randint(400, (batch,))],
    )


@learned
def encoder_layers(draw):
    """PyTorch's own transformer, norms after or before."""
    width, vocabulary = draw.choice((256, 512, 768)), draw.choice((8000, 32000))
    layer = nn.TransformerEncoderLayer(
        width,
        width // 64,
        draw.choice((2, 4)) * width,
        batch_first=draw.random() < 0.7,
        norm_first=draw.random() < 0.5,
        activation=draw.choice(("relu", "gelu")),
    )
    model = nn.Sequential(
        nn.Embedding(vocabulary, width),
        nn.TransformerEncoder(layer, 3, enable_nested_tensor=False),
        nn.Linear(width, vocabulary),
    )
    ids = tokens(draw, vocabulary, 12000, 512)
    return finished(draw, model, [ids, ids])


@learned
def two_towers(draw):
    """Embeddings of users and items, and perceptrons on them."""
    width, inner = draw.choice((64, 128)), draw.choice((512, 1024))

    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(200000, width), nn.Embedding(50000, width)
            self.left, self.right = (
                nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.BatchNorm1d(inner), nn.Linear(inner, 128))
                for _ in range(2)
            )

        def forward(self, users, items):
            left = nn.functional.normalize(self.left(self.users(users)), dim=-1)
            return left @ nn.functional.normalize(self.right(self.items(items)), dim=-1).T

    batch = draw.near(512, 8192)
    return finished(
        draw, Towers(), [torch.randint(200000, (batch,)), torch.randint(50000, (batch,)), torch.arange(batch)]
    )


@judged
def graph_network(draw):
    """Messages along edges, summed at their ends."""
    width, nodes = draw.choice((128, 256)), draw.near(10000, 60000)
    edges = 12 * nodes

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
            self.out = nn.Linear(width, 40)

        def forward(self, x, source, target):
            for layer, norm in zip(self.layers, self.norms):
                sums = torch.zeros_like(x).index_add(0, target, x[source])
                x = norm(nn.functional.relu(layer(torch.cat([x, sums.to(x.dtype)], -1)))).to(x.dtype)
            return self.out(x)

    ends = torch.randint(nodes, (2, edges))
    return finished(draw, Graph(), [torch.randn(nodes, width), ends[0], ends[1], torch.randint(40, (nodes,))])


@judged
def radiance_field(draw):
    """A deep, narrow perceptron at many points."""
    width = draw.choice((128, 256))
    layers = [nn.Linear(63, width), nn.ReLU()] + [
        part for _ in range(7) for part in (nn.Linear(width, width), nn.ReLU())
    ]
    batch = draw.near(32768, 262144)
    return finished(
        draw,
        nn.Sequential(*layers, nn.Linear(width, 4)),
        [torch.randn(batch, 63), torch.randn(batch, 4)],
        lambda m, b: nn.functional.mse_loss(m(b[0]), b[1]),
    )


# ----------------------------------------------------------------------------------------------------------------------


KIN = {
    "llama": ("llama", "qwen2", "gemma2", "phi3", "olmo2", "starcoder2", "mixtral", "cohere"),
    "gpt2": ("falcon", "gpt_neox", "opt", "gpt_neo"),
    "bert": ("bert", "roberta", "mpnet", "electra", "modernbert"),
    "speech": ("hubert", "wav2vec2"),
    "resnet": ("resnext", "ecaresnet", "skresnet"),
    "mobilenet_v3": ("mobilenetv4",),
    "transformer": ("encoder_layers",),
    "unet": ("diffusion_unet",),
    "dlrm": ("two_towers",),
}


def made(group, name, number, device):
    with torch.device(device):
        return group[name](Draw(f"{name}/{number}"))


EACH = 3  # set-ups of an architecture


def set_ups(learned_from, judged_on, kin):
    """By name, of both groups in turn."""
    family_of = {name: family_name for family_name, names in kin.items() for name in names}
    return {
        f"{'judged' if group is judged_on else family_of.get(name, name)}/{name}-{number}": functools.partial(
            made, group, name, number
        )
        for number in range(EACH)
        for group in (learned_from, judged_on)
        for name in group
    }


SETUPS = set_ups(LEARNED, JUDGED, KIN)
