# SPDX-License-Identifier: Apache-2.0
"""Small models of many families, for unchanged_training.py: of torch.nn (torch_families.py), transformers, timm
and diffusers.

A family is built anew for each training, with random weights. Its inputs depend on the step alone. transformers are
built from the default configuration of their class with all sizes cut down (SIZES), and what a class needs otherwise
(OWN).
"""

import dataclasses
import importlib
import importlib.util
import inspect
from typing import Callable, NamedTuple

import torch

from torch_families import PICTURE, TORCH, volume


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def descent(parameters):
    return torch.optim.SGD(parameters, lr=0.01)


class Family(NamedTuple):
    name: str
    prepare: Callable  # imports what is slow to import
    build: Callable  # the model
    inputs: Callable  # (draw, model) -> a tuple of positional or a dict of keyword arguments
    optimizer: Callable = adam


class Draw:
    """The random numbers of one step."""

    def __init__(self, step):
        self._generator = torch.Generator().manual_seed(step)

    def numbers(self, *shape):
        return torch.randn(shape, generator=self._generator)

    def tokens(self, *shape, first=3, below=90):
        return torch.randint(first, below, shape, generator=self._generator)


# ---------------------------------------------------------------------- transformers

# The value of each size of a small model, wherever its configuration has it: a number, or a list of as many as the default has.
SIZES = {name: size for size, names in (
    (1, "bos_token_id depths decoder_start_token_id first_k_dense_replace n_group topk_group"),
    (2, "decoder_layers encoder_layers eos_token_id linear_num_key_heads mamba_n_groups mask_time_length n_layer "
        "n_layers num_codebooks num_conv_pos_embedding_groups num_decoder_layers num_encoder_layers "
        "num_experts_per_tok num_hidden_layers num_layers type_vocab_size"),
    (4, "chunk_size decoder_attention_heads encoder_attention_heads linear_num_heads linear_num_value_heads n_head "
        "n_heads n_routed_experts num_attention_heads num_experts num_frames num_heads num_key_value_heads "
        "num_local_experts window_size"),
    (8, "d_kv head_dim hidden_size_per_layer_input linear_head_dim linear_key_head_dim linear_value_head_dim "
        "mamba_d_head mamba_d_state mamba_head_dim mamba_n_heads mamba_num_heads patch_size qk_nope_head_dim "
        "qk_rope_head_dim ssm_state_size v_head_dim"),
    (16, "conv_dim feature_size fusion_hidden_size kv_lora_rank neck_hidden_sizes num_conv_pos_embeddings num_mel_bins "
         "q_lora_rank"),
    (32, "d_model emb_dim embed_dim embed_dims embedding_size hidden_size hidden_sizes image_size "
         "moe_intermediate_size n_embd projection_dim shared_expert_intermediate_size"),
    (64, "d_ff decoder_ffn_dim encoder_ffn_dim ffn_dim intermediate_size max_position_embeddings max_source_positions "
         "max_target_positions n_ctx n_inner n_positions"),
    (99, "n_words src_vocab_size tgt_vocab_size vocab_size vocab_size_per_layer_input"),
    (0, "pad_token_id"),
    (0.0, "attention_dropout attention_probs_dropout_prob attn_pdrop activation_dropout classifier_dropout "
          "decoder_layerdrop drop_path_rate dropout dropout_rate embd_pdrop encoder_layerdrop hidden_dropout "
          "hidden_dropout_prob layerdrop resid_pdrop"),
    (False, "use_cache"),
) for name in names.split()}

RESNET = {"model_type": "resnet", "embedding_size": 16, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}
# Values that a class needs instead, or in addition.
OWN = {
    "ASTForAudioClassification": {"max_length": 32},
    "BitForImageClassification": {"num_groups": 4},
    "CodeGenForCausalLM": {"rotary_dim": 4},
    "ConvNextForImageClassification": {"image_size": 64},
    "ConvNextV2ForImageClassification": {"image_size": 64},
    "DetrForObjectDetection": {"backbone_config": {**RESNET, "out_features": ["stage4"]}, "num_queries": 6},
    "DistilBertForMaskedLM": {"dim": 32, "hidden_dim": 64},
    "Dots1ForCausalLM": {"n_shared_experts": 1},
    "EfficientNetForImageClassification": {"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320},
    "FalconH1ForCausalLM": {"mamba_d_ssm": 64},
    "FunnelForMaskedLM": {"block_sizes": [1, 1], "d_head": 8, "d_inner": 64},
    "Gemma3nForCausalLM": {"intermediate_size": 64, "num_kv_shared_layers": 0, "activation_sparsity_pattern": None},
    "GPTJForCausalLM": {"rotary_dim": 4},
    "GPTNeoForCausalLM": {"attention_types": [[["global", "local"], 1]]},
    "HGNetV2ForImageClassification": {"hidden_sizes": [256, 512, 1024, 2048]},
    "LevitForImageClassification": {"patch_size": 16, "image_size": 64},
    "Lfm2MoeForCausalLM": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "LlavaForConditionalGeneration": {"image_token_id": 98},
    "LongcatFlashForCausalLM": {"ffn_hidden_size": 64, "expert_ffn_hidden_size": 32, "moe_topk": 2,
                                "zero_expert_num": 2},
    "LongT5ForConditionalGeneration": {"decoder_start_token_id": 0},
    "LukeForMaskedLM": {"entity_vocab_size": 20, "entity_emb_size": 32},
    "Mamba2ForCausalLM": {"num_heads": 8},
    "MobileNetV1ForImageClassification": {"depth_multiplier": 0.25},
    "MobileNetV2ForImageClassification": {"depth_multiplier": 0.25},
    "MobileViTV2ForImageClassification": {"patch_size": 2, "image_size": 64},
    "ReformerModelWithLMHead": {"is_decoder": True, "axial_pos_embds_dim": [16, 16], "axial_pos_shape": [2, 4],
                                "attn_layers": ["local", "lsh"], "attention_head_size": 8, "feed_forward_size": 64,
                                "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4, "num_buckets": 2},
    "RoCBertForMaskedLM": {"pronunciation_vocab_size": 20, "shape_vocab_size": 20},
    "RTDetrForObjectDetection": {
        "backbone_config": {**RESNET, "model_type": "rt_detr_resnet", "out_features": ["stage2", "stage3", "stage4"]},
        "encoder_in_channels": [16, 16, 32], "encoder_hidden_dim": 32, "decoder_in_channels": [32, 32, 32],
        "feat_strides": [8, 16, 32], "num_queries": 6, "num_denoising": 0},
    "SwinForImageClassification": {"patch_size": 2, "window_size": 2},
    "Swinv2ForImageClassification": {"patch_size": 2, "window_size": 2},
    "SwitchTransformersForConditionalGeneration": {"decoder_start_token_id": 0},
    "T5ForConditionalGeneration": {"decoder_start_token_id": 0},
    "TextNetForImageClassification": {"hidden_sizes": [64, 64, 128, 256, 512]},
    "UperNetForSemanticSegmentation": {
        "backbone_config": {**RESNET, "out_features": ["stage1", "stage2", "stage3", "stage4"]}, "pool_scales": [1, 2],
        "auxiliary_in_channels": 16},
    "ViTMAEForPreTraining": {"decoder_hidden_size": 32, "decoder_num_attention_heads": 4,
                             "decoder_num_hidden_layers": 1, "decoder_intermediate_size": 64},
    "VJEPA2ForVideoClassification": {"crop_size": 32, "frames_per_clip": 4, "num_pooler_layers": 1,
                                     "pred_hidden_size": 32, "pred_num_attention_heads": 4,
                                     "pred_num_hidden_layers": 1},
    "Wav2Vec2BertForCTC": {"feature_projection_input_dim": 16},
    "XmodForMaskedLM": {"default_language": "en_XX"},
    "ZambaForCausalLM": {"layers_block_type": ["linear_attention", "hybrid"] * 2, "num_hidden_layers": 4,
                         "attention_hidden_size": 64, "attention_head_dim": 16},
    "Zamba2ForCausalLM": {"layers_block_type": ["linear_attention", "hybrid"]},
}

TEXT = """
AfmoeForCausalLM ApertusForCausalLM AriaTextForCausalLM BailingHybridForCausalLM BambaForCausalLM BartForCausalLM
BertLMHeadModel BitNetForCausalLM BloomForCausalLM CodeGenForCausalLM CohereForCausalLM Cohere2ForCausalLM
Cohere2MoeForCausalLM CpmAntForCausalLM CTRLLMHeadModel DeepseekV2ForCausalLM DeepseekV3ForCausalLM
DeepseekV32ForCausalLM DeepseekV4ForCausalLM DiffLlamaForCausalLM DogeForCausalLM Dots1ForCausalLM
Ernie4_5_MoeForCausalLM FalconForCausalLM FalconH1ForCausalLM FalconMambaForCausalLM FlexOlmoForCausalLM
GemmaForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM Gemma3nForCausalLM GlmForCausalLM Glm4ForCausalLM
Glm4MoeForCausalLM GlmMoeDsaForCausalLM GPT2LMHeadModel GPTBigCodeForCausalLM GPTJForCausalLM GPTNeoForCausalLM
GPTNeoXForCausalLM GptOssForCausalLM GraniteForCausalLM GraniteMoeForCausalLM GraniteMoeHybridForCausalLM
GraniteMoeSharedForCausalLM HunYuanMoEV1ForCausalLM JambaForCausalLM JetMoeForCausalLM KimiLinearForCausalLM
Lfm2ForCausalLM Lfm2MoeForCausalLM LlamaForCausalLM Llama4ForCausalLM LongcatFlashForCausalLM MambaForCausalLM
Mamba2ForCausalLM MiniMaxForCausalLM MistralForCausalLM MixtralForCausalLM ModernBertDecoderForCausalLM MoshiForCausalLM
MptForCausalLM NanoChatForCausalLM NemotronForCausalLM NemotronHForCausalLM OlmoForCausalLM Olmo2ForCausalLM
OlmoHybridForCausalLM OlmoeForCausalLM OpenAIGPTLMHeadModel OPTForCausalLM PersimmonForCausalLM PhiForCausalLM
Phi3ForCausalLM PhimoeForCausalLM ProphetNetForCausalLM Qwen2ForCausalLM Qwen2MoeForCausalLM Qwen3ForCausalLM
Qwen3_5ForCausalLM Qwen3MoeForCausalLM Qwen3NextForCausalLM RecurrentGemmaForCausalLM ReformerModelWithLMHead
RoFormerForCausalLM RwkvForCausalLM StableLmForCausalLM Starcoder2ForCausalLM XGLMForCausalLM XLMWithLMHeadModel
XLNetLMHeadModel xLSTMForCausalLM YoutuForCausalLM ZambaForCausalLM Zamba2ForCausalLM AlbertForMaskedLM BertForMaskedLM
BigBirdForMaskedLM ConvBertForMaskedLM DebertaForMaskedLM DebertaV2ForMaskedLM DistilBertForMaskedLM EsmForMaskedLM
EuroBertForMaskedLM FNetForMaskedLM FunnelForMaskedLM IBertForMaskedLM JinaEmbeddingsV3ForMaskedLM LayoutLMForMaskedLM
LongformerForMaskedLM LukeForMaskedLM MobileBertForMaskedLM ModernBertForMaskedLM MPNetForMaskedLM MraForMaskedLM
NomicBertForMaskedLM NystromformerForMaskedLM RemBertForMaskedLM RobertaPreLayerNormForMaskedLM RoCBertForMaskedLM
SqueezeBertForMaskedLM TapasForMaskedLM XmodForMaskedLM YosoForMaskedLM BartForConditionalGeneration
BigBirdPegasusForConditionalGeneration FSMTForConditionalGeneration LEDForConditionalGeneration
LongT5ForConditionalGeneration MarianMTModel MBartForConditionalGeneration NllbMoeForConditionalGeneration
PegasusXForConditionalGeneration ProphetNetForConditionalGeneration SeamlessM4TForTextToText
SwitchTransformersForConditionalGeneration T5ForConditionalGeneration T5GemmaForConditionalGeneration
UMT5ForConditionalGeneration
"""

CLASSIFIED = """
BeitForImageClassification BitForImageClassification CLIPForImageClassification ConvNextForImageClassification
ConvNextV2ForImageClassification CvtForImageClassification DeiTForImageClassification Dinov2ForImageClassification
EfficientNetForImageClassification FocalNetForImageClassification HGNetV2ForImageClassification
HieraForImageClassification LevitForImageClassification MobileNetV1ForImageClassification
MobileNetV2ForImageClassification MobileViTForImageClassification MobileViTV2ForImageClassification
PoolFormerForImageClassification PPLCNetForImageClassification PvtForImageClassification PvtV2ForImageClassification
RegNetForImageClassification ResNetForImageClassification SegformerForImageClassification SiglipForImageClassification
SwiftFormerForImageClassification SwinForImageClassification Swinv2ForImageClassification TextNetForImageClassification
ViTForImageClassification TimesformerForVideoClassification VideoMAEForVideoClassification VivitForVideoClassification
VJEPA2ForVideoClassification
"""

PICTURES = """
DetrForObjectDetection GLPNForDepthEstimation RTDetrForObjectDetection SegformerForSemanticSegmentation
UperNetForSemanticSegmentation ViTMAEForPreTraining YolosForObjectDetection
"""

PICTURES_AND_TEXT = """
AltCLIPModel BlipForConditionalGeneration ChineseCLIPModel CLIPModel FlavaModel GitForCausalLM
LlavaForConditionalGeneration OwlViTModel SiglipModel ViltModel
"""

SOUND = """
Data2VecAudioForCTC HubertForCTC MoonshineForConditionalGeneration SpeechT5ForSpeechToText SEWForCTC SEWDForCTC
UniSpeechSatForCTC Wav2Vec2ForCTC Wav2Vec2ConformerForCTC WavLMForCTC
"""

SPECTRA = """
ASTForAudioClassification Speech2TextForConditionalGeneration Wav2Vec2BertForCTC WhisperForConditionalGeneration
"""


def use_torchvision():
    """timm and some of transformers import it. Its operators may be built for another PyTorch; they are not used."""
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        importlib.import_module("torchvision")


def fitting(present, size):
    """The size in the type that a configuration has there."""
    if isinstance(present, (list, tuple)):
        return [size] * len(present) if all(type(element) is int for element in present) else present
    if isinstance(present, dict) or (type(present) is bool) != (type(size) is bool):
        return present
    return type(present)(size) if type(present) in (int, float) else size


def small(kind, own):
    """A configuration of this class with small sizes, also in the configurations inside, and `own` values."""
    default = kind()
    known = {field.name for field in dataclasses.fields(kind)}
    values = {name: fitting(getattr(default, name), size) for name, size in SIZES.items()
              if name in known and name not in own}
    for name in kind.sub_configs:
        inner = getattr(default, name, None)
        if name not in own and dataclasses.is_dataclass(inner):
            values[name] = small(type(inner), {}).to_dict()
    if "layer_types" in known and "layer_types" not in own and getattr(default, "layer_types", None):
        kinds = list(dict.fromkeys(default.layer_types))
        values["layer_types"] = kinds * 2 if len(kinds) == 1 else kinds
        values["num_hidden_layers"] = len(values["layer_types"])
    return kind(**values, **own)


def of_config(model, name, default=None):
    """The value of `name` in the configuration of a model, or in one inside it."""
    config = model.config
    for one in [config] + [getattr(config, inner, None) for inner in type(config).sub_configs]:
        if getattr(one, name, None) is not None:
            return getattr(one, name)
    return default


def text(draw, model):
    tokens = draw.tokens(2, 8)
    return {"input_ids": tokens, "labels": tokens}


def pictures(draw, model):
    size = of_config(model, "image_size", 32)
    shape = list(size) if isinstance(size, (list, tuple)) else [size, size]
    shape.insert(0, of_config(model, "num_channels", 3))
    if "Video" in type(model).__name__:
        shape.insert(0, of_config(model, "num_frames", 4))
    return {model.main_input_name: draw.numbers(2, *shape)}


def classified(draw, model):
    return {**pictures(draw, model), "labels": draw.tokens(2, first=0, below=5)}


def pictures_and_text(draw, model):
    more = {"return_loss": True} if "return_loss" in inspect.signature(model.forward).parameters else {}
    size = of_config(model, "image_size", 32)
    return {"pixel_values": draw.numbers(2, 3, size, size), "input_ids": draw.tokens(2, 8), **more}


def pictures_in_text(draw, model):
    tokens = torch.cat((torch.full((2, 16), model.config.image_token_id), draw.tokens(2, 8)), 1)
    return {"pixel_values": draw.numbers(2, 3, 32, 32), "input_ids": tokens, "labels": tokens}


def sound(draw, model):
    return {"input_values": draw.numbers(2, 2000), "labels": draw.tokens(2, 3)}


def spectra(draw, model):
    return {"input_features": draw.numbers(2, 64, of_config(model, "num_mel_bins", 80)), "labels": draw.tokens(2, 3)}


def transformer(name, inputs):
    def build():
        kind = getattr(importlib.import_module("transformers"), name)
        own = dict(OWN.get(name, {}))
        if "Classification" in name:
            own["num_labels"] = 5
        return kind(small(kind.config_class, own))

    return Family(name, lambda: getattr(importlib.import_module("transformers"), name), build, INPUTS.get(name, inputs))


INPUTS = {
    "LlavaForConditionalGeneration": pictures_in_text,
    "ASTForAudioClassification": lambda draw, model: {
        "input_values": draw.numbers(2, 32, 16), "labels": draw.tokens(2, first=0, below=5)},
    "Wav2Vec2BertForCTC": lambda draw, model: {"input_features": draw.numbers(2, 32, 16), "labels": draw.tokens(2, 3)},
    "VJEPA2ForVideoClassification": lambda draw, model: {
        "pixel_values_videos": draw.numbers(2, 4, 3, 32, 32), "labels": draw.tokens(2, first=0, below=5)},
    "WhisperForConditionalGeneration": lambda draw, model: {
        "input_features": draw.numbers(2, 16, 128), "labels": draw.tokens(2, 3)},
    **dict.fromkeys(("DetrForObjectDetection", "RTDetrForObjectDetection", "UperNetForSemanticSegmentation"),
                    lambda draw, model: {"pixel_values": draw.numbers(2, 3, 64, 64)}),
}
TRANSFORMERS = [transformer(name, inputs) for inputs, names in (
    (text, TEXT), (classified, CLASSIFIED), (pictures, PICTURES), (pictures_and_text, PICTURES_AND_TEXT),
    (sound, SOUND), (spectra, SPECTRA)) for name in names.split()]

# ---------------------------------------------------------------------- timm

CONVOLUTIONS = """
test_byobnet test_convnext test_efficientnet test_mambaout test_nfnet test_resnet densenet121 dla46_c dpn48b
edgenext_xx_small efficientvit_b0 efficientvit_m0 fastvit_t8 ghostnet_050 hardcorenas_a inception_next_atto lcnet_035
mobilenetv3_small_050 mobilevit_xxs pvt_v2_b0 regnetx_002 repghostnet_050 resnest14d resnet18 rexnet_100 starnet_s1
"""
PATCHES = dict(img_size=32, patch_size=8, embed_dim=32, num_heads=4, depth=2)
TIMM = {
    **{name: {} for name in CONVOLUTIONS.split()},
    **dict.fromkeys(("test_vit", "test_maxvit", "test_coatnet", "coat_tiny", "gcvit_xxtiny", "gmlp_ti16_224"),
                    dict(img_size=64)),
    **dict.fromkeys(("beit_base_patch16_224", "cait_xxs24_224", "deit_tiny_distilled_patch16_224",
                     "eva02_tiny_patch14_224", "xcit_nano_12_p8_224"), PATCHES),
    "convit_tiny": dict(PATCHES, local_up_to_layer=1),
    "davit_tiny": dict(depths=(1, 1, 1, 1), embed_dims=(16, 16, 32, 32), num_heads=(2, 2, 2, 2)),
    "swin_tiny_patch4_window7_224": dict(img_size=32, window_size=4, embed_dim=16, depths=(1, 1, 2, 1),
                                         num_heads=(1, 2, 2, 4)),
    "twins_svt_small": dict(img_size=64, depths=(1, 1, 1, 1), embed_dims=(16, 16, 32, 32), num_heads=(1, 2, 2, 4)),
}


def timm_model(name, own):
    def build():
        return importlib.import_module("timm").create_model(name, num_classes=5, **own)

    size = own.get("img_size", 64)
    return Family(f"timm.{name}", lambda: importlib.import_module("timm"), build, volume(2, 3, size, size), descent)


# ---------------------------------------------------------------------- diffusers

BLOCKS = dict(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)
CODER = dict(BLOCKS, down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2)
CROSS = dict(BLOCKS, cross_attention_dim=16, attention_head_dim=4)
HEADS = dict(num_attention_heads=2, attention_head_dim=8)
ATTENTION = dict(HEADS, num_layers=2)


def denoised(*shape, **more):
    """A sample of that shape, a time, and further inputs of other shapes."""
    def inputs(draw, model):
        sample = next(iter(inspect.signature(model.forward).parameters))
        return {sample: draw.numbers(*shape), "timestep": draw.tokens(shape[0]),
                **{name: draw.numbers(*one) for name, one in more.items()}}
    return inputs


def denoised_class(draw, model):
    return {"hidden_states": draw.numbers(2, 4, 8, 8), "timestep": draw.tokens(2), "class_labels": draw.tokens(2)}


def denoised_video(draw, model):
    return {"hidden_states": draw.numbers(1, 8, 4), "encoder_hidden_states": draw.numbers(1, 5, 16),
            "timestep": draw.tokens(1), "encoder_attention_mask": torch.ones(1, 5, dtype=torch.bool),
            "num_frames": 2, "height": 2, "width": 2}


DIFFUSERS = {
    "UNet2DModel": (
        dict(BLOCKS, sample_size=16, down_block_types=("DownBlock2D", "AttnDownBlock2D"), attention_head_dim=4,
             up_block_types=("AttnUpBlock2D", "UpBlock2D")),
        denoised(2, 3, 16, 16)),
    "UNet2DConditionModel": (
        dict(CROSS, sample_size=16, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
             up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")),
        denoised(2, 4, 16, 16, encoder_hidden_states=(2, 5, 16))),
    "UNet3DConditionModel": (
        dict(CROSS, sample_size=16, down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
             up_block_types=("UpBlock3D", "CrossAttnUpBlock3D")),
        denoised(1, 4, 2, 16, 16, encoder_hidden_states=(1, 5, 16))),
    "ControlNetModel": (
        dict(CROSS, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
             conditioning_embedding_out_channels=(8, 16)),
        denoised(2, 4, 16, 16, encoder_hidden_states=(2, 5, 16), controlnet_cond=(2, 3, 32, 32))),
    "AutoencoderKL": (dict(CODER, sample_size=16), PICTURE),
    "AsymmetricAutoencoderKL": (
        dict(down_block_types=CODER["down_block_types"], down_block_out_channels=(8, 16), norm_num_groups=4,
             up_block_types=CODER["up_block_types"], up_block_out_channels=(8, 16)), PICTURE),
    "AutoencoderTiny": (
        dict(encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), num_encoder_blocks=(1, 1),
             num_decoder_blocks=(1, 1), upsampling_scaling_factor=2), PICTURE),
    "AutoencoderOobleck": (
        dict(encoder_hidden_size=8, downsampling_ratios=[2, 4], channel_multiples=[1, 2], decoder_channels=8,
             decoder_input_channels=4, audio_channels=2), volume(1, 2, 64)),
    "VQModel": (dict(CODER, sample_size=16, num_vq_embeddings=16), PICTURE),
    "DiTTransformer2DModel": (dict(ATTENTION, in_channels=4, sample_size=8, num_embeds_ada_norm=100), denoised_class),
    "PixArtTransformer2DModel": (
        dict(ATTENTION, sample_size=8, cross_attention_dim=16, caption_channels=16),
        denoised(2, 4, 8, 8, encoder_hidden_states=(2, 5, 16))),
    "PriorTransformer": (
        dict(ATTENTION, embedding_dim=16, num_embeddings=5, additional_embeddings=4),
        denoised(2, 16, proj_embedding=(2, 16), encoder_hidden_states=(2, 5, 16))),
    "SD3Transformer2DModel": (
        dict(ATTENTION, sample_size=8, in_channels=4, out_channels=4, joint_attention_dim=16, caption_projection_dim=16,
             pooled_projection_dim=16),
        denoised(2, 4, 8, 8, encoder_hidden_states=(2, 5, 16), pooled_projections=(2, 16))),
    "SanaTransformer2DModel": (
        dict(ATTENTION, sample_size=8, in_channels=4, out_channels=4, num_cross_attention_heads=2,
             cross_attention_head_dim=8, cross_attention_dim=16, caption_channels=16),
        denoised(2, 4, 8, 8, encoder_hidden_states=(2, 5, 16))),
    "FluxTransformer2DModel": (
        dict(in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
             joint_attention_dim=16, pooled_projection_dim=16, axes_dims_rope=[4, 4, 8]),
        denoised(2, 9, 4, encoder_hidden_states=(2, 5, 16), pooled_projections=(2, 16), img_ids=(9, 3),
                 txt_ids=(5, 3))),
    "AuraFlowTransformer2DModel": (
        dict(HEADS, sample_size=8, in_channels=4, out_channels=4, num_mmdit_layers=1, num_single_dit_layers=1,
             joint_attention_dim=16, caption_projection_dim=16, pos_embed_max_size=64),
        denoised(2, 4, 8, 8, encoder_hidden_states=(2, 5, 16))),
    "CogVideoXTransformer3DModel": (
        dict(ATTENTION, in_channels=4, out_channels=4, text_embed_dim=16, sample_width=8, sample_height=8,
             sample_frames=8, max_text_seq_length=5, time_embed_dim=8),
        denoised(1, 2, 4, 8, 8, encoder_hidden_states=(1, 5, 16))),
    "LTXVideoTransformer3DModel": (
        dict(ATTENTION, in_channels=4, out_channels=4, cross_attention_dim=16, caption_channels=16), denoised_video),
    "WanTransformer3DModel": (
        dict(ATTENTION, in_channels=4, out_channels=4, text_dim=16, freq_dim=16, ffn_dim=32, attention_head_dim=12),
        denoised(1, 4, 2, 8, 8, encoder_hidden_states=(1, 5, 16))),
}


def diffuser(name, config, inputs):
    def build():
        return getattr(importlib.import_module("diffusers"), name)(**config)

    return Family(name, lambda: getattr(importlib.import_module("diffusers"), name), build, inputs)


# ---------------------------------------------------------------------- all

# Models that were looked at and left out, and why.
UNTRIED = {
    "AlignModel": "its projection does not follow the sizes of its small encoders",
    "BltForCausalLM": "the sizes of its inner configurations do not follow each other",
    "BridgeTowerModel": "it has one attention head for 64 features, of which there are 32",
    "CohereCompassForCausalLM": "its rotary embedding lacks one of its kinds of layers",
    "DbrxForCausalLM": "its attention's configuration lacks the base of the rotary embedding",
    "DinatForImageClassification": "needs the package natten",
    "Dots3NoteForCausalLM": "its sizes differ by layer",
    "DPTForDepthEstimation": "a ReLU at its end gives zeros with random weights, and no gradients",
    "Florence2ForConditionalGeneration": "the strides of its picture encoder do not follow the size of the picture",
    "Gemma4ForCausalLM": "its sizes differ by layer",
    "Idefics3ForConditionalGeneration": "a processor has to prepare its pictures",
    "InklingForConditionalGeneration": "needs the package scipy",
    "MusicgenForConditionalGeneration": "its labels are codes of a codec, in another shape than its inputs",
    "PaliGemmaForConditionalGeneration": "a processor has to place its pictures in the text",
    "UNet1DModel": "its blocks halve a sample more often than a short one allows",
    "timm.mixer_s32_224": "its size cannot be set: 19 million parameters",
    "timm.vgg11_bn": "its size cannot be set: 129 million parameters",
}
FAMILIES = [Family(name, lambda: None, build, inputs, descent if "sparse" in name else adam)
            for inputs, builds in TORCH.items() for name, build in builds.items()]
FAMILIES += TRANSFORMERS + [timm_model(*each) for each in TIMM.items()]
FAMILIES += [diffuser(name, *rest) for name, rest in DIFFUSERS.items()]
