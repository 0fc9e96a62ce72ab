# SPDX-License-Identifier: Apache-2.0
"""Whole repositories of tiny models: weights, tokenizer, configuration, README, as save_pretrained and others write them."""

import json
import warnings
from pathlib import Path
from typing import Callable, Dict

import benign_texts

SIZES = {"hidden_size": 16, "d_model": 16, "n_embd": 16, "num_hidden_layers": 2, "n_layer": 2, "num_layers": 2, "num_attention_heads": 2, "n_head": 2, "num_heads": 2, "intermediate_size": 32,
         "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 64, "n_positions": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "d_ff": 32, "d_kv": 8, "head_dim": 8, "embedding_size": 16, "moe_intermediate_size": 16,
         "num_experts": 4, "num_local_experts": 4, "pad_token_id": 0, "n_layers": 2, "n_heads": 2, "dim": 16, "hidden_dim": 32, "image_size": 32, "patch_size": 8, "word_embed_proj_dim": 16, "ffn_dim": 32}
# The family, its class, and whether its weights are those of torch instead of safetensors.
FAMILIES = {
    "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM",
    "phi": "PhiForCausalLM", "gpt2": "GPT2LMHeadModel", "gpt_neox": "GPTNeoXForCausalLM", "opt": "OPTForCausalLM", "bloom": "BloomForCausalLM", "falcon": "FalconForCausalLM",
    "mixtral": "MixtralForCausalLM", "starcoder2": "Starcoder2ForCausalLM", "cohere": "CohereForCausalLM", "bert": "BertForMaskedLM", "roberta": "RobertaForSequenceClassification", "distilbert": "DistilBertForMaskedLM", "albert": "AlbertForMaskedLM",
    "electra": "ElectraForMaskedLM", "deberta-v2": "DebertaV2ForMaskedLM", "t5": "T5ForConditionalGeneration", "bart": "BartForConditionalGeneration", "vit": "ViTForImageClassification",
}
AS_TORCH = ("gpt2", "bert", "t5", "bloom")
CHAT = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi", "mixtral")


def corpus_text() -> str:
    return Path(benign_texts.__file__).read_text()


def tokenizer(kind: str, folder: Path, chat: bool = False):
    """A small tokenizer of the kind, trained on a text of this repository."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    lines = corpus_text().splitlines()
    if kind == "wordpiece":
        made = tokenizers.BertWordPieceTokenizer()
        made.train_from_iterator(lines, 280, show_progress=False)
        made.save_model(str(folder))
        names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    elif kind == "unigram":
        made = tokenizers.SentencePieceUnigramTokenizer()
        made.train_from_iterator(lines, 280, show_progress=False, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>")
        names = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "</s>", "additional_special_tokens": ["<extra_id_0>"]}
    else:
        made = tokenizers.ByteLevelBPETokenizer()
        made.train_from_iterator(lines, 290, special_tokens=["<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>"], show_progress=False)
        made.save_model(str(folder))
        names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, model_max_length=512, **names)
    if chat:
        fast.chat_template = ("{% if tools %}{{ '<tools>' + tools|tojson + '</tools>' }}{% endif %}{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
                              "{%- if message.content is string %}{{ message['content']|trim }}{%- else %}{%- for item in message.content %}{{ item.text }}{%- endfor %}{%- endif %}{{ '<|im_end|>\\n' }}"
                              "{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}")
    fast.save_pretrained(folder)
    return fast


def finish(folder: Path, library: str = "transformers") -> None:
    if not (folder / "README.md").exists():
        (folder / "README.md").write_text(benign_texts.readme(library))
    (folder / ".gitattributes").write_text(benign_texts.ATTRIBUTES)


def transformer(family: str, folder: Path):
    import torch
    import transformers

    usual = transformers.AutoConfig.for_model(family)
    config = transformers.AutoConfig.for_model(family, **{name: value for name, value in SIZES.items() if hasattr(usual, name) and not isinstance(getattr(type(usual), name, None), property)})
    model = getattr(transformers, FAMILIES[family])(config)
    if family in AS_TORCH:
        config.architectures = [FAMILIES[family]]
        config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    elif family == "llama":
        model.save_pretrained(folder, max_shard_size="20KB")
    else:
        model.save_pretrained(folder)
    return model


def family_repository(family: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        transformer(family, folder)
        if family == "vit":
            from transformers import ViTImageProcessor

            ViTImageProcessor().save_pretrained(folder)
        else:
            kind = "wordpiece" if family in ("bert", "distilbert", "electra") else "unigram" if family in ("t5", "albert", "deberta-v2") else "bpe"
            tokenizer(kind, folder, family in CHAT)
        if family in CHAT:
            (folder / "LICENSE").write_text("Apache License\nVersion 2.0, January 2004\nhttp://www.apache.org/licenses/\n")
        finish(folder)
    return make


def adapter(kind: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        import peft
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        base = LlamaForCausalLM(LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=300))
        base.name_or_path = base.config._name_or_path = "example/Base-7B"
        common = {"task_type": "CAUSAL_LM"}
        config = {
            "lora": lambda: peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.05, **common),
            "dora": lambda: peft.LoraConfig(r=4, use_dora=True, target_modules="all-linear", modules_to_save=["lm_head"], **common),
            "ia3": lambda: peft.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"], **common),
            "prompt": lambda: peft.PromptTuningConfig(num_virtual_tokens=4, **common),
        }[kind]()
        model = peft.get_peft_model(base, config)
        model.save_pretrained(folder)
        if kind == "ia3":
            weights = peft.get_peft_model_state_dict(model)
            (folder / "adapter_model.safetensors").unlink()
            torch.save(weights, folder / "adapter_model.bin")
        tokenizer("bpe", folder, True)
        finish(folder, "peft")
    return make


def diffusion(kind: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        import diffusers

        unet = diffusers.UNet2DModel(sample_size=8, block_out_channels=(32, 32), layers_per_block=1, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
        if kind == "ddpm":
            diffusers.DDPMPipeline(unet, diffusers.DDPMScheduler()).save_pretrained(folder)
        elif kind == "ddim":
            diffusers.DDIMPipeline(unet, diffusers.DDIMScheduler()).save_pretrained(folder)
        elif kind == "vae":
            diffusers.AutoencoderKL(block_out_channels=(32,), norm_num_groups=8).save_pretrained(folder)
        else:
            import transformers

            text = transformers.CLIPTextModel(transformers.CLIPTextConfig(hidden_size=32, intermediate_size=37, num_attention_heads=4, num_hidden_layers=2, vocab_size=300, projection_dim=32))
            tokenizer_folder = folder / "tokenizer"
            tokenizer_folder.mkdir()
            conditioned = diffusers.UNet2DConditionModel(sample_size=8, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=32,
                                                         down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))
            diffusers.StableDiffusionPipeline(vae=diffusers.AutoencoderKL(block_out_channels=(32,), norm_num_groups=8), text_encoder=text, tokenizer=tokenizer("bpe", tokenizer_folder), unet=conditioned,
                                              scheduler=diffusers.PNDMScheduler(skip_prk_steps=True), safety_checker=None, feature_extractor=None, requires_safety_checker=False).save_pretrained(folder)
        finish(folder, "diffusers")
    return make


def timm_repository(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        import timm
        from timm.models import save_for_hf

        save_for_hf(timm.create_model(name, pretrained=False), folder, safe_serialization="both" if "test" in name else True)
        finish(folder, "timm")
    return make


def sentences(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer

    inner = folder / "inner"
    inner.mkdir()
    transformer("bert", inner)
    model = __import__("transformers").AutoModel.from_pretrained(inner)
    tokenizer("wordpiece", inner)
    model.save_pretrained(inner)
    (inner / "pytorch_model.bin").unlink(missing_ok=True)
    word = Transformer(str(inner))
    SentenceTransformer(modules=[word, Pooling(16), Normalize()], device="cpu").save(str(folder))
    __import__("shutil").rmtree(inner)
    finish(folder, "sentence-transformers")


def trained(folder: Path) -> None:
    """A checkpoint of Trainer, as many publish it."""
    import torch
    from transformers import Trainer, TrainingArguments

    model = transformer("distilbert", folder)
    data = [{"input_ids": torch.ones(4, dtype=torch.long), "attention_mask": torch.ones(4, dtype=torch.long), "labels": torch.ones(4, dtype=torch.long)}] * 4
    Trainer(model, TrainingArguments(str(folder), max_steps=2, save_steps=2, report_to=[], use_cpu=True), train_dataset=data).train()
    tokenizer("wordpiece", folder)
    finish(folder)


def lightning(folder: Path) -> None:
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.loggers import CSVLogger

    class Net(LightningModule):
        def __init__(self, width: int = 4, lr: float = 0.1):
            super().__init__()
            self.save_hyperparameters()
            self.layer = torch.nn.Linear(3, width)

        def training_step(self, batch, _index):
            return self.layer(batch).sum()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), self.hparams.lr)

    trainer = Trainer(max_steps=2, accelerator="cpu", logger=CSVLogger(folder, name="", version=""), enable_progress_bar=False, default_root_dir=folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(Net(), torch.utils.data.DataLoader(torch.ones(4, 3)))
    finish(folder, "pytorch")


def accelerated(folder: Path) -> None:
    import accelerate
    import torch

    accelerator = accelerate.Accelerator(cpu=True)
    net = torch.nn.Linear(3, 2)
    net, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters()))
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    accelerator.save_state(str(folder))
    finish(folder, "accelerate")


def onnx_repository(folder: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    transformer("bert", folder)
    (folder / "pytorch_model.bin").unlink()
    tokenizer("wordpiece", folder)
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch_size", 16])  # noqa: E731
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "main_graph", [value("x")], [value("y")])
    (folder / "onnx").mkdir()
    for name in ("model.onnx", "model_quantized.onnx"):
        onnx.save(helper.make_model(graph, producer_name="pytorch"), folder / "onnx" / name)
    (folder / "quantize_config.json").write_text(json.dumps({"per_channel": True, "reduce_range": True, "per_model_config": {"model": {"op_types": ["MatMul", "Gather"], "weight_type": "QInt8"}}}, indent=2))
    finish(folder, "transformers.js")


def gguf_repository(folder: Path) -> None:
    import make_benign

    made = folder / "made"
    made.mkdir()
    make_benign.gguf_files(made)
    (made / "gguf_llama_f2/model.gguf").rename(folder / "tiny.Q8_0.gguf")
    (made / "gguf_llama_f4/model.gguf").rename(folder / "tiny.F32.gguf")
    __import__("shutil").rmtree(made)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    finish(folder, "gguf")


def repositories() -> Dict[str, Callable[[Path], None]]:
    made: Dict[str, Callable[[Path], None]] = {"model_" + family.replace("-", "_"): family_repository(family) for family in FAMILIES}
    made.update({"adapter_" + kind: adapter(kind) for kind in ("lora", "dora", "ia3", "prompt")})
    made.update({"diffusion_" + kind: diffusion(kind) for kind in ("ddpm", "ddim", "vae", "stable")})
    made.update({"timm_" + name: timm_repository(name) for name in ("test_resnet", "test_vit", "mobilenetv3_small_050")})
    made.update(sentence_transformer=sentences, trainer=trained, lightning=lightning, accelerate=accelerated, onnx=onnx_repository, gguf=gguf_repository)
    made["sentence_piece"] = sentence_piece
    return made


def sentence_piece(folder: Path) -> None:
    """A repository with the file of SentencePiece beside its weights."""
    import io

    import sentencepiece

    transformer("llama", folder)
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus_text().splitlines()), model_writer=out, vocab_size=120, minloglevel=2, hard_vocab_limit=False)
    (folder / "tokenizer.model").write_bytes(out.getvalue())
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True, "bos_token": {"__type": "AddedToken", "content": "<s>", "lstrip": False}, "tokenizer_class": "LlamaTokenizer",
                                                              "sp_model_kwargs": {}, "model_max_length": 2048}, indent=2))
    finish(folder)
