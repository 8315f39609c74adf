"""Set-ups of further architectures than examples/wide_setups.py has, drawn and named in the same way.

    python -m forerun.setup_pairs examples/wider_setups.py --records runs.jsonl                # on a GPU
    python -m forerun.iteration_ops runs.jsonl -o ops.jsonl

Families are split once more: of `judged` nothing is learned, and nothing that is learned is a near twin of what is
judged here, there, or in data/h200/split.json. Networks that an older timm does not have are left out.
"""

import pathlib
import sys

import timm
import torch
import transformers
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import wide_setups  # noqa: E402
from wide_setups import finished, language_model, set_ups, tokens  # noqa: E402

LEARNED, JUDGED = {}, {}


# -- images ------------------------------------------------------------------------------------------------------------


def family(group, name, *names, **words):
    known = [network for network in names if timm.is_model(network)]
    if known:
        group[name] = wide_setups.network(known, **words)


ONE_SIZE = {"sizes": (224,), "most": 64}

family(LEARNED, "botnet", "botnet26t_256", "eca_botnext26ts_256", sizes=(256,), most=64)
family(LEARNED, "halonet", "halonet26t", "sehalonet33ts", sizes=(256,), most=64)
family(LEARNED, "gcresnet", "gcresnext26ts", "gcresnet33ts", "eca_resnext26ts")
family(LEARNED, "mobileone", "mobileone_s1", "mobileone_s2", most=64)
family(LEARNED, "coat", "coat_lite_tiny", "coat_lite_small", **ONE_SIZE)
family(LEARNED, "dpn", "dpn48b", "dpn68b", most=64)
family(LEARNED, "efficientformer", "efficientformer_l1", **ONE_SIZE)
family(LEARNED, "fbnet", "fbnetv3_b", "fbnetc_100")
family(LEARNED, "mixnet", "mixnet_s", "mixnet_l")
family(LEARNED, "lcnet", "lcnet_100", "tinynet_a", most=128)
family(LEARNED, "gcvit", "gcvit_xxtiny", "gcvit_xtiny", **ONE_SIZE)
family(LEARNED, "hardcorenas", "hardcorenas_a", "hardcorenas_f", most=128)
family(LEARNED, "maxvit", "maxvit_rmlp_pico_rw_256", "maxvit_nano_rw_256", sizes=(256,), most=32)
family(LEARNED, "metaformer", "convformer_s18", "caformer_s18", most=64)
family(LEARNED, "mobilenet_v2", "mobilenetv2_050", "mobilenetv2_140", "mobilenet_edgetpu_v2_m")
family(LEARNED, "mvit", "mvitv2_tiny", **ONE_SIZE)
family(LEARNED, "nest", "nest_tiny", "jx_nest_tiny", **ONE_SIZE)
family(LEARNED, "nextvit", "nextvit_small", **ONE_SIZE)
family(LEARNED, "pit", "pit_xs_224", "pit_s_224", **ONE_SIZE)
family(LEARNED, "repghost", "repghostnet_100", "repghostnet_150", most=128)
family(LEARNED, "repvit", "repvit_m1", "repvit_m2_3", **ONE_SIZE)
family(LEARNED, "resnet", "resnetv2_50", "resnetv2_50x1_bit", "resnet26t", "resnetblur50", most=64)
family(LEARNED, "rexnet", "rexnet_100", "rexnetr_200")
family(LEARNED, "senet", "legacy_seresnet50", "legacy_seresnext26_32x4d")
family(LEARNED, "sequencer", "sequencer2d_s", **ONE_SIZE)
family(LEARNED, "starnet", "starnet_s2", "starnet_s4", most=128)
family(LEARNED, "swiftformer", "swiftformer_s", "swiftformer_l1", **ONE_SIZE)
family(LEARNED, "tnt", "tnt_s_patch16_224", sizes=(224,), most=32)
family(LEARNED, "vovnet", "ese_vovnet19b_dw", "ese_vovnet39b", most=64)
family(LEARNED, "xception", "xception41", "xception41p", most=48)
family(LEARNED, "efficientnet", "efficientnet_lite0", "tf_efficientnetv2_b1", "efficientnet_es", "efficientnet_b3")
family(LEARNED, "convnext", "convnext_atto", "convnextv2_pico", "convnext_nano_ols")
family(LEARNED, "vision_mlp", "resmlp_12_224", "gmixer_24_224", **ONE_SIZE)

family(JUDGED, "convit", "convit_tiny", **ONE_SIZE)
family(JUDGED, "fasternet", "fasternet_t1", "fasternet_s")
family(JUDGED, "hiera", "hiera_tiny_224", **ONE_SIZE)
family(JUDGED, "inception_next", "inception_next_atto", "inception_next_tiny", **ONE_SIZE)
family(JUDGED, "mambaout", "mambaout_femto", "mambaout_kobe")
family(JUDGED, "rdnet", "rdnet_tiny", most=48)
family(JUDGED, "shvit", "shvit_s2", "shvit_s3", **ONE_SIZE)
family(JUDGED, "tiny_vit", "tiny_vit_5m_224", "tiny_vit_11m_224", **ONE_SIZE)
family(JUDGED, "visformer", "visformer_tiny", "visformer_small", **ONE_SIZE)
family(JUDGED, "volo", "volo_d1_224", sizes=(224,), most=32)
family(JUDGED, "vitamin", "vitamin_small_224", sizes=(224,), most=48)
family(JUDGED, "pnasnet", "pnasnet5large", sizes=(224,), most=24)


# -- language ----------------------------------------------------------------------------------------------------------


def decoder(group, name, config, head, widths, vocabularies, **words):
    group[name] = wide_setups.decoder(config, head, widths, vocabularies, **words)


def few_heads(width):
    return max(1, width // 512)


decoder(LEARNED, "granite", "GraniteConfig", "GraniteForCausalLM", (1024, 2048), (49152,), inner=4,
        fixed={"num_key_value_heads": few_heads})
decoder(LEARNED, "gemma", "GemmaConfig", "GemmaForCausalLM", (1024, 2048), (256000,), heads_of=256, inner=8,
        fixed={"num_key_value_heads": 1, "head_dim": 256})
decoder(LEARNED, "nemotron", "NemotronConfig", "NemotronForCausalLM", (1024, 3072), (256000,), heads_of=128,
        fixed={"num_key_value_heads": few_heads})
decoder(LEARNED, "codegen", "CodeGenConfig", "CodeGenForCausalLM", (1024, 2048), (51200,),
        names=wide_setups.GPT2_NAMES, fixed={"rotary_dim": 32})
decoder(LEARNED, "xglm", "XGLMConfig", "XGLMForCausalLM", (1024, 2048), (256008,),
        names=("d_model", "num_layers", "attention_heads", "ffn_dim"))
decoder(LEARNED, "qwen3", "Qwen3Config", "Qwen3ForCausalLM", (1024, 2560), (151936,), heads_of=128, inner=3,
        fixed={"num_key_value_heads": few_heads, "head_dim": 128})
decoder(LEARNED, "olmoe", "OlmoeConfig", "OlmoeForCausalLM", (1024, 2048), (50304,), heads_of=128, inner=0.5,
        fixed={"num_experts": 32, "num_experts_per_tok": 8, "num_key_value_heads": lambda w: w // 128})
decoder(LEARNED, "granitemoe", "GraniteMoeConfig", "GraniteMoeForCausalLM", (1024, 1536), (49152,), inner=0.5,
        fixed={"num_local_experts": 16, "num_experts_per_tok": 4, "num_key_value_heads": 4})
decoder(LEARNED, "biogpt", "BioGptConfig", "BioGptForCausalLM", (1024,), (42384,), longest=1024)

decoder(JUDGED, "persimmon", "PersimmonConfig", "PersimmonForCausalLM", (1024, 2048), (262144,))
decoder(JUDGED, "glm", "GlmConfig", "GlmForCausalLM", (2048, 4096), (151552,), heads_of=128, inner=3.34,
        fixed={"num_key_value_heads": 2, "head_dim": 128, "pad_token_id": 0})
decoder(JUDGED, "helium", "HeliumConfig", "HeliumForCausalLM", (1024, 2560), (48000,), heads_of=128, inner=2.75,
        fixed={"head_dim": 128, "num_key_value_heads": lambda w: w // 128})
decoder(JUDGED, "smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", (1024, 2048), (128256,), heads_of=128, inner=5.375,
        fixed={"num_key_value_heads": few_heads, "pad_token_id": 0})


def encoder(group, name, config, head, widths, vocabulary, fixed=None, labels=None):
    group[name] = wide_setups.encoder(config, head, widths, vocabulary, fixed, labels)


encoder(LEARNED, "roformer", "RoFormerConfig", "RoFormerForMaskedLM", (384, 768), 50000)
encoder(LEARNED, "squeezebert", "SqueezeBertConfig", "SqueezeBertForMaskedLM", (768,), 30522, {"embedding_size": 768})
encoder(LEARNED, "convbert", "ConvBertConfig", "ConvBertForMaskedLM", (768,), 30522)
encoder(LEARNED, "layoutlm", "LayoutLMConfig", "LayoutLMForMaskedLM", (768,), 30522)
encoder(LEARNED, "rembert", "RemBertConfig", "RemBertForMaskedLM", (1152,), 250300,
        {"input_embedding_size": 256, "output_embedding_size": 1664})
encoder(JUDGED, "nystromformer", "NystromformerConfig", "NystromformerForMaskedLM", (768,), 30000,
        {"segment_means_seq_len": 64, "num_landmarks": 64})
encoder(JUDGED, "fnet", "FNetConfig", "FNetForMaskedLM", (768,), 32000)
encoder(JUDGED, "xmod", "XmodConfig", "XmodForMaskedLM", (768,), 50265,
        {"languages": ("en_XX",), "default_language": "en_XX", "max_position_embeddings": 2050})

LEARNED["mbart"] = wide_setups.sequences("MBartConfig", "MBartForConditionalGeneration")
LEARNED["m2m"] = wide_setups.sequences("M2M100Config", "M2M100ForConditionalGeneration")
JUDGED["blenderbot"] = wide_setups.sequences("BlenderbotConfig", "BlenderbotForConditionalGeneration")


def xlnet(draw):
    width = draw.choice((768, 1024))
    config = transformers.XLNetConfig(vocab_size=32000, d_model=width, n_layer=2, n_head=width // 64, d_inner=4 * width,
                                      num_labels=2)
    return language_model(draw, config, "XLNetForSequenceClassification", 8000, 512, 2)


def deepseek(draw):
    """Attention from few numbers a token; experts, two of which every token takes."""
    width = draw.choice((512, 768))
    config = transformers.DeepseekV2Config(
        vocab_size=102400, hidden_size=2 * width, intermediate_size=4 * width, moe_intermediate_size=width,
        num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=16, n_routed_experts=16, n_shared_experts=2,
        num_experts_per_tok=6, first_k_dense_replace=1, q_lora_rank=None, kv_lora_rank=512, qk_rope_head_dim=64,
        qk_nope_head_dim=128, v_head_dim=128, n_group=1, topk_group=1, use_cache=False,
    )
    return language_model(draw, config, "DeepseekV2ForCausalLM", 8000, 1024)


LEARNED["xlnet"], LEARNED["deepseek_v2"] = xlnet, deepseek


# -- speech and sequences ----------------------------------------------------------------------------------------------

LEARNED["sew"] = wide_setups.waves("SEWConfig", "SEWForSequenceClassification")
LEARNED["data2vec_audio"] = wide_setups.waves("Data2VecAudioConfig", "Data2VecAudioForSequenceClassification")
JUDGED["unispeech"] = wide_setups.waves("UniSpeechSatConfig", "UniSpeechSatForSequenceClassification")


def speech_to_text(draw):
    width = draw.choice((256, 512, 768))
    config = transformers.Speech2TextConfig(
        vocab_size=10000, d_model=width, encoder_layers=2, decoder_layers=2, encoder_attention_heads=width // 64,
        decoder_attention_heads=width // 64, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, use_cache=False,
        encoder_layerdrop=0.0, decoder_layerdrop=0.0,
    )
    batch = draw.near(4, 48)
    sounds = torch.randn(batch, draw.choice((500, 1000, 1500)), 80)
    return finished(draw, transformers.Speech2TextForConditionalGeneration(config),
                    {"input_features": sounds, "labels": torch.randint(10000, (batch, draw.choice((32, 64, 128))))})


def spectrogram(draw):
    config = transformers.ASTConfig(hidden_size=draw.choice((384, 768)), num_hidden_layers=2, num_attention_heads=6,
                                    max_length=draw.choice((512, 1024)), num_labels=527)
    batch = draw.near(4, 32)
    return finished(draw, transformers.ASTForAudioClassification(config),
                    {"input_values": torch.randn(batch, config.max_length, 128),
                     "labels": torch.randint(527, (batch,))})


class WaveNet(nn.Module):
    """Convolutions over time with ever wider holes, gated."""

    def __init__(self, width, layers):
        super().__init__()
        self.first = nn.Conv1d(80, width, 1)
        self.inner = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, padding=2**i, dilation=2**i) for i in range(layers))
        self.outer = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.last = nn.Conv1d(width, 256, 1)

    def forward(self, x):
        x = self.first(x)
        for inner, outer in zip(self.inner, self.outer):
            x = x + outer(nn.functional.glu(inner(x), 1))
        return self.last(x)


def wavenet(draw):
    batch, length = draw.near(4, 32), draw.choice((1000, 4000, 8000))
    return finished(draw, WaveNet(draw.choice((128, 256, 512)), draw.choice((4, 8))),
                    [torch.randn(batch, 80, length), torch.randint(256, (batch, length))],
                    lambda m, b: nn.functional.cross_entropy(m(b[0]), b[1]))


class Codec(nn.Module):
    """A sound made shorter by strides and long again, as codecs of sound are built."""

    def __init__(self, width):
        super().__init__()
        down, up = [nn.Conv1d(1, width, 7, padding=3)], []
        for level, stride in enumerate((2, 4, 5)):
            inner = width * 2**level
            down += [nn.ELU(), nn.Conv1d(inner, inner, 3, padding=1), nn.ELU(),
                     nn.Conv1d(inner, 2 * inner, 2 * stride, stride, padding=stride // 2)]
            up = [nn.ELU(), nn.ConvTranspose1d(2 * inner, inner, 2 * stride, stride, padding=stride // 2),
                  nn.ELU(), nn.Conv1d(inner, inner, 3, padding=1)] + up
        self.down, self.memory = nn.Sequential(*down), nn.LSTM(8 * width, 8 * width, 2, batch_first=True)
        self.up = nn.Sequential(*up, nn.ELU(), nn.Conv1d(width, 1, 7, padding=3))

    def forward(self, x):
        x = self.down(x)
        return self.up(x + self.memory(x.transpose(1, 2))[0].transpose(1, 2))


def _sound_loss(model, batch):
    made = model(batch[0])
    return nn.functional.l1_loss(made, batch[0][..., : made.shape[-1]])


def codec(draw):
    return finished(draw, Codec(draw.choice((16, 32, 64))), [torch.randn(draw.near(2, 16), 1, 8000)], _sound_loss)


def patches_of_series(draw):
    config = transformers.PatchTSTConfig(num_input_channels=draw.choice((7, 21)), context_length=512, patch_length=16,
                                         patch_stride=8, prediction_length=96, d_model=draw.choice((128, 256)),
                                         num_attention_heads=8, ffn_dim=512, num_hidden_layers=3)
    batch, channels = draw.near(16, 128), config.num_input_channels
    return finished(draw, transformers.PatchTSTForPrediction(config),
                    {"past_values": torch.randn(batch, 512, channels),
                     "future_values": torch.randn(batch, 96, channels)})


LEARNED["speech_to_text"], LEARNED["wavenet"], LEARNED["spectrogram"] = speech_to_text, wavenet, spectrogram
JUDGED["codec"], JUDGED["patchtst"] = codec, patches_of_series


# -- images and words, images from noise -------------------------------------------------------------------------------


def siglip(draw):
    config = transformers.SiglipConfig(
        text_config={"num_hidden_layers": 2, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
        vision_config={"num_hidden_layers": 2, "image_size": 224, "patch_size": draw.choice((16, 32))},
    )
    batch = draw.near(16, 128)
    return finished(draw, transformers.SiglipModel(config),
                    {"pixel_values": torch.randn(batch, 3, 224, 224), "input_ids": torch.randint(32000, (batch, 64))},
                    wide_setups._clip_loss)


def depth(draw):
    """An encoder and a decoder of an image, halved four times; what lies far is told by a map of one channel."""
    width = draw.choice((32, 48, 64))

    def step(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 1, 1), nn.GroupNorm(8, outputs), nn.SiLU())

    class Depth(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [width * 2**i for i in range(5)]
            self.first = step(3, width)
            self.down = nn.ModuleList(step(a, b) for a, b in zip(widths, widths[1:]))
            self.up = nn.ModuleList(step(b + a, a) for a, b in zip(widths, widths[1:]))
            self.last = nn.Conv2d(width, 1, 1)

        def forward(self, x):
            kept = [self.first(x)]
            for layer in self.down:
                kept.append(layer(nn.functional.avg_pool2d(kept[-1], 2)))
            x = kept.pop()
            for layer in reversed(self.up):
                x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
                x = layer(torch.cat([x, kept.pop()], 1))
            return self.last(x)

    batch, size = draw.near(2, 16), draw.choice((256, 384))
    return finished(draw, Depth(), [torch.randn(batch, 3, size, size), torch.randn(batch, 1, size, size)],
                    lambda m, b: nn.functional.l1_loss(m(b[0]), b[1]), draw.random() < 0.5)


class CrossAttended(nn.Module):
    """A block of a latent diffusion model: attention to itself, to words, and a gated layer."""

    def __init__(self, width, words):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.itself = nn.MultiheadAttention(width, width // 64, batch_first=True, bias=False)
        self.across = nn.MultiheadAttention(width, width // 64, batch_first=True, kdim=words, vdim=words, bias=False)
        self.inner, self.outer = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, words):
        y = self.norms[0](x)
        x = x + self.itself(y, y, y, need_weights=False)[0]
        x = x + self.across(self.norms[1](x), words, words, need_weights=False)[0]
        left, right = self.inner(self.norms[2](x)).chunk(2, -1)
        return x + self.outer(left * nn.functional.gelu(right))


class Latent(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.first = nn.Conv2d(4, width, 3, 1, 1)
        self.before = nn.ModuleList(wide_setups.Residual(width, width, 4 * width) for _ in range(2))
        self.wide = wide_setups.Residual(width, 2 * width, 4 * width)
        self.narrow = wide_setups.Residual(3 * width, width, 4 * width)
        self.blocks = nn.ModuleList(CrossAttended(width, words) for _ in range(2))
        self.deep = CrossAttended(2 * width, words)
        self.shrink, self.last = nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(width, 4, 3, 1, 1)

    def _attended(self, block, x, words):
        tokens_of = block(x.flatten(2).transpose(1, 2), words)
        return tokens_of.transpose(1, 2).reshape(x.shape)

    def forward(self, x, t, words):
        x = self.first(x)
        for residual, block in zip(self.before, self.blocks):
            x = self._attended(block, residual(x, t), words)
        deep = self._attended(self.deep, self.wide(self.shrink(x), t), words)
        x = torch.cat([x, nn.functional.interpolate(deep, scale_factor=2.0)], 1)
        return self.last(self.narrow(x, t))


def latent_diffusion(draw):
    width, words, batch, size = 320, draw.choice((768, 1024)), draw.near(2, 24), draw.choice((32, 64))
    image = torch.randn(batch, 4, size, size)
    return finished(draw, Latent(width, words),
                    [image, torch.randn(batch, 4 * width), torch.randn(batch, 77, words), torch.randn_like(image)],
                    wide_setups._denoising_loss, draw.random() < 0.3)


def perceptrons(draw):
    """Rows of a table: wide layers with norms and dropout between."""
    width, columns = draw.choice((512, 1024, 2048)), draw.choice((54, 200, 700))
    layers = [nn.Linear(columns, width)]
    for _ in range(draw.choice((2, 4))):
        layers += [nn.BatchNorm1d(width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width)]
    batch = draw.near(256, 16384)
    return finished(draw, nn.Sequential(*layers, nn.Linear(width, 10)),
                    [torch.randn(batch, columns), torch.randint(10, (batch,))])


def recurrent_words(draw):
    """A bidirectional LSTM that marks words."""
    width, vocabulary = draw.choice((256, 512)), 30000

    class Marks(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(vocabulary, width)
            self.memory = nn.LSTM(width, width, 2, batch_first=True, bidirectional=True, dropout=0.2)
            self.out = nn.Linear(2 * width, 20)

        def forward(self, ids):
            return self.out(self.memory(self.words(ids))[0])

    ids = tokens(draw, vocabulary, 16000, 256)
    return finished(draw, Marks(), [ids, torch.randint(20, ids.shape)])


LEARNED["depth"], LEARNED["perceptrons"], LEARNED["lstm"] = depth, perceptrons, recurrent_words
JUDGED["siglip"], JUDGED["latent_diffusion"] = siglip, latent_diffusion

KIN = {
    "llama": ("granite", "gemma", "nemotron", "qwen3", "olmoe", "granitemoe", "deepseek_v2"),
    "gpt2": ("codegen", "xglm", "biogpt"),
    "bert": ("roformer", "squeezebert", "convbert", "layoutlm", "rembert", "xlnet"),
    "bart": ("mbart", "m2m", "speech_to_text"),
    "speech": ("sew", "data2vec_audio"),
    "resnet": ("gcresnet", "senet", "botnet", "halonet"),
    "mobilenet_v3": ("lcnet", "fbnet", "hardcorenas"),
    "mixer": ("vision_mlp",),
}
SETUPS = set_ups(LEARNED, JUDGED, KIN)
