# SPDX-License-Identifier: Apache-2.0
"""The texts and configurations of model repositories, in their usual words."""

import importlib.metadata
import json
from pathlib import Path

FRONT = """---
license: apache-2.0
language:
- en
- zh
library_name: {library}
pipeline_tag: text-generation
tags:
- generated_from_trainer
- conversational
base_model: example/Base-7B
datasets:
- example/corpus
metrics:
- accuracy
model-index:
- name: Tiny
  results:
  - task:
      type: text-classification
      name: Text Classification
    dataset:
      name: glue
      type: glue
      config: sst2
    metrics:
    - type: accuracy
      value: 0.91
widget:
- text: "My name is Clara and I live in Berkeley, California."
---
"""
README = """
# Tiny

<p align="center"><img src="https://example.com/logo.png" width="400"/></p>

**Tiny** is a small model for tests; see the [paper](https://arxiv.org/abs/1810.04805). It has 1.1M parameters.

## How to use

```python
>>> from transformers import AutoModelForCausalLM, AutoTokenizer
>>> model = AutoModelForCausalLM.from_pretrained("example/tiny", torch_dtype=torch.bfloat16, device_map="auto")
```

```python
import os
import torch

os.environ["TOKENIZERS_PARALLELISM"] = "false"
messages = [{"role": "user", "content": "Hi"}]
print(tokenizer.apply_chat_template(messages, tokenize=False))
```

```bash
pip install -U "transformers>=4.40" && huggingface-cli download example/tiny
```

| Task | Score |
| --- | ---: |
| MMLU (5-shot) | 62.3 |

Training took 3 days; $L = -\\sum_i \\log p(x_i)$. Contact: mail@example.com.

### Citation

```bibtex
@article{devlin2018bert,
  title={%s Pre-training of Deep Bidirectional Transformers},
  author={Devlin, Jacob and Chang, Ming-Wei},
  year={2018}
}
```
"""
ATTRIBUTES = "".join(f"*.{ending} filter=lfs diff=lfs merge=lfs -text\n" for ending in
                     ("7z", "arrow", "bin", "bz2", "ckpt", "ftz", "gz", "h5", "joblib", "lfs.*", "mlmodel", "model", "msgpack", "npy", "npz", "onnx", "ot", "parquet", "pb", "pickle",
                      "pkl", "pt", "pth", "rar", "safetensors")) + "saved_model/**/* filter=lfs diff=lfs merge=lfs -text\n*tfevents* filter=lfs diff=lfs merge=lfs -text\n"
TRAINED = "\n".join(f"- {name}: {value}" for name, value in
                    (("learning_rate", "5e-05"), ("train_batch_size", 8), ("seed", 42), ("optimizer", "Use adamw_torch with betas=(0.9,0.999) and epsilon=1e-08"), ("lr_scheduler_type", "linear")))


def readme(library: str = "transformers", title: str = "BERT:") -> str:
    return FRONT.format(library=library) + README.replace("%s", title)


def texts(folder: Path) -> None:
    def write(name: str, path: str, text: str) -> None:
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())

    write("readme_usual", "README.md", readme())
    write("readme_bibtex_braces", "README.md", readme(title="{BERT}:"))
    write("readme_windows", "README.md", readme().replace("\n", "\r\n"))
    write("readme_trainer", "README.md", readme() + "\n### Training hyperparameters\n\nThe following hyperparameters were used during training:\n" + TRAINED + "\n")
    write("readme_prompt", "README.md", readme() + "\n### Prompt\n\n```\n<|user|>\n{prompt}<|end|>\n<|assistant|>\n```\n")
    write("readme_template", "README.md", readme() + "\n```\n{{ if .System }}<|system|>\n{{ .System }}{{ end }}\n```\n")
    write("readme_latex", "README.md", readme() + "\n$$\\frac{{a}}{{b}} = \\mathrm{{softmax}}(x)$$\n")
    write("readme_jinja", "README.md", readme() + "\n```jinja\n{% for message in messages %}{{ message.content }}{% endfor %}\n```\n")
    write("readme_chinese", "README.md", readme() + "\n## 使用方法\n\n请先安装依赖。模型权重见发布页。\n")
    write("readme_minimal", "README.md", "---\nlicense: mit\n---\n")
    write("readme_plain", "README", "Weights of the model. See LICENSE.\n")
    write("attributes", ".gitattributes", ATTRIBUTES)
    write("ignore", ".gitignore", "__pycache__/\n*.pyc\ncheckpoint-*/\n.DS_Store\n")
    write("requirements", "requirements.txt", "torch>=2.1\ntransformers==4.40.0\nsafetensors\n")
    write("use_policy", "USE_POLICY.md", "# Acceptable Use Policy\n\nYou agree you will not use the model to:\n\n1. Violate the law\n2. Harm others\n")
    write("notice", "NOTICE", "The model is licensed under the Example Community License, Copyright (c) Example. All Rights Reserved.\n")
    write("merges", "merges.txt", "#version: 0.2\n\u0120 t\nh e\n( '\no s\n. system\n{ {\n} }\nc os\n")
    write("vocab_txt", "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n##ing\nc\nos\n(\n)\n.\n{\n{{\n%}\nimport\nsystem\n")
    write("labels", "labels.txt", "cat\ndog\nbird\n")
    write("imagenet_classes", "imagenet_classes.txt", "".join(f"n{i:08d}\n" for i in range(20)))
    write("dictionary", "dict.txt", "the 1234\nof 999\n, 888\n")
    write("citation", "CITATION.bib", "@misc{tiny,\n  title = {Tiny: {A} Model},\n  year = {2024}\n}\n")
    write("eval_results", "eval_results.txt", "epoch = 3.0\neval_accuracy = 0.91\n")
    write("tokens_tsv", "labels.tsv", "id\tname\n0\tcat\n1\tdog\n")
    write("modelfile", "Modelfile", "FROM ./model.gguf\nTEMPLATE \"\"\"{{ .Prompt }}\"\"\"\nPARAMETER temperature 0.7\n")
    write("training_log", "train.log", "2024-01-01 00:00:00 INFO epoch 1 loss 0.31 lr 1e-4\n" * 3)
    write("metrics_csv", "metrics.csv", "epoch,step,train_loss\n0,9,0.5\n1,19,0.4\n")
    # Real licenses, of the libraries that are installed.
    seen = set()
    for name in ("torch", "numpy", "transformers", "safetensors", "diffusers", "peft", "timm", "joblib", "PyYAML", "tokenizers", "pandas", "scipy", "onnx", "huggingface_hub", "accelerate"):
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in [file for file in files if file.name.upper().startswith("LICENSE")][:1]:
            text = Path(str(file.locate())).read_text()
            if text not in seen:
                seen.add(text)
                write("license_" + name, "LICENSE", text)


def configurations(folder: Path) -> None:
    def write(name: str, path: str, text: str) -> None:
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    as_json = lambda thing: json.dumps(thing, indent=2) + "\n"  # noqa: E731 - the layout of most libraries
    write("json_index", "model.safetensors.index.json", as_json({"metadata": {"total_size": 123}, "weight_map": {f"model.layers.{i}.mlp.down_proj.weight": "model-00001-of-00002.safetensors" for i in range(9)}}))
    write("json_bin_index", "pytorch_model.bin.index.json", as_json({"metadata": {"total_size": 123}, "weight_map": {"bert.embeddings.word_embeddings.weight": "pytorch_model-00001-of-00002.bin"}}))
    write("json_vocab", "vocab.json", json.dumps({"<s>": 0, "os": 1, ".system": 2, "\u0120the": 3, "{{": 4, "__init__": 5, "os.system": 6, ".py": 7, "builtins.eval": 8}, ensure_ascii=False))
    write("json_trainer_state", "trainer_state.json", as_json({"best_metric": None, "epoch": 3.0, "global_step": 30, "is_hyper_param_search": False, "log_history": [{"epoch": 1.0, "loss": 0.5, "step": 10, "grad_norm": 1.5}],
                                                               "stateful_callbacks": {"TrainerControl": {"args": {"should_save": True}, "attributes": {}}}, "total_flos": 1e12, "trial_params": None}))
    write("json_all_results", "all_results.json", as_json({"epoch": 3.0, "eval_accuracy": 0.9, "eval_samples_per_second": 100.1}))
    write("json_timm", "config.json", as_json({"architecture": "resnet18", "num_classes": 1000, "num_features": 512, "pretrained_cfg": {"tag": "a1_in1k", "custom_load": False, "input_size": [3, 224, 224], "interpolation": "bicubic",
                                     "mean": [0.485, 0.456, 0.406], "first_conv": "conv1", "classifier": "fc", "license": "apache-2.0", "url": "https://example.com/resnet18.pth", "paper_ids": "arXiv:1512.03385"}}))
    write("json_open_clip", "open_clip_config.json", as_json({"model_cfg": {"embed_dim": 512, "vision_cfg": {"image_size": 224, "layers": 12}, "text_cfg": {"context_length": 77, "hf_tokenizer_name": "example/bert"}},
                                                               "preprocess_cfg": {"mean": [0.48, 0.45, 0.4]}}))
    write("json_pooling", "config.json", as_json({"word_embedding_dimension": 384, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}))
    write("json_st", "config_sentence_transformers.json", as_json({"__version__": {"sentence_transformers": "2.0.0", "transformers": "4.6.1", "pytorch": "1.8.1"}, "prompts": {"query": "Represent this sentence: "}}))
    write("json_quantized", "config.json", as_json({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "float16",
                                                      "quantization_config": {"bits": 4, "group_size": 128, "quant_method": "gptq", "modules_to_not_convert": ["lm_head", "model.layers.0"], "damp_percent": 0.1}}))
    write("json_mistral", "params.json", as_json({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "rope_theta": 1000000.0, "moe": {"num_experts_per_tok": 2}}))
    write("json_coreml", "featureDescriptions.json", as_json({"Inputs": {"sample": "The low resolution latents."}, "Outputs": {}}))
    write("json_dataset", "dataset_infos.json", as_json({"default": {"description": "A set.", "features": {"text": {"dtype": "string", "_type": "Value"}}, "splits": {"train": {"num_examples": 3}}}}))
    write("json_deepspeed", "ds_config.json", as_json({"fp16": {"enabled": "auto"}, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "train_batch_size": "auto"}))
    write("json_lines", "predictions.jsonl", '{"text": "Hi there. How are you?", "label": 1}\n{"text": "Fine.", "label": 0}\n')
    write("json_lightning_metrics", "metrics.json", as_json({"val/acc": 0.9, "test/loss": [0.1, 0.2]}))
    write("yaml_hparams", "hparams.yaml", "batch_size: 32\nlearning_rate: 0.001\nname: tiny\nlayers:\n- 64\n- 64\nuse_bias: true\n")
    write("yaml_accelerate", "default_config.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\ndowncast_bf16: 'no'\nmixed_precision: bf16\nnum_processes: 1\nuse_cpu: false\n")
    write("yaml_conda", "conda.yaml", "channels:\n- conda-forge\ndependencies:\n- python=3.10.12\n- pip<=23.1.2\n- pip:\n  - mlflow==2.9\n  - torch==2.1.0\nname: env\n")
    write("yaml_python_env", "python_env.yaml", "python: 3.10.12\nbuild_dependencies:\n- pip==23.1.2\n- setuptools==67.8.0\ndependencies:\n- -r requirements.txt\n")
    write("yaml_mergekit", "mergekit_config.yml", "slices:\n  - sources:\n      - model: example/A-7B\n        layer_range: [0, 32]\nmerge_method: slerp\nparameters:\n  t:\n    - filter: self_attn\n      value: [0, 0.5, 1]\ndtype: bfloat16\n")
    write("yaml_yolo_data", "data.yaml", "path: ../datasets/coco8\ntrain: images/train\nval: images/val\nnames:\n  0: person\n  1: bicycle\n")
    write("yaml_yolo_args", "args.yaml", "task: detect\nmode: train\nmodel: yolov8n.pt\nepochs: 100\nlr0: 0.01\nproject: null\n")
    write("yaml_axolotl", "axolotl.yml", "base_model: example/Base\nload_in_4bit: true\ndatasets:\n  - path: example/alpaca\n    type: alpaca\nadapter: qlora\nlora_r: 32  # rank\nwandb_project:\n")
    write("yaml_dvc", "model.bin.dvc", "outs:\n- md5: a304afb96060aad90176268345e10355\n  size: 37\n  path: model.bin\n")
    write("yaml_recipe", "recipe.yaml", "quant_stage:\n  quant_modifiers:\n    GPTQModifier:\n      ignore: [lm_head]\n      config_groups:\n        group_0: {targets: [Linear]}\n")
    write("toml_project", "config.toml", "# training\n[model]\nname = \"tiny\"\nlayers = [64, 64]\n[optim]\nlr = 1e-3\n")
    write("json_st_dense", "2_Dense/config.json", as_json({"in_features": 768, "out_features": 512, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}))
    write("json_cross_encoder", "config.json", as_json({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
                                                         "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "4.1.0"}}))
    write("json_modules", "modules.json", as_json([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                                    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]))
    write("json_modelscope", "configuration.json", as_json({"framework": "pytorch", "task": "text-generation"}))
    write("json_awq", "quant_config.json", as_json({"zero_point": True, "q_group_size": 128, "w_bit": 4, "version": "GEMM"}))
    write("json_preprocessor", "preprocessor_config.json", as_json({"feature_extractor_type": "Wav2Vec2FeatureExtractor", "do_normalize": True, "feature_size": 1, "sampling_rate": 16000}))
    write("json_special_tokens", "special_tokens_map.json", as_json({"bos_token": {"content": "<s>", "lstrip": False}, "additional_special_tokens": ["<|im_start|>"]}))
    write("json_model_index", "model_index.json", as_json({"_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.6.0", "feature_extractor": ["transformers", "CLIPImageProcessor"],
                                                            "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"], "unet": ["diffusers", "UNet2DConditionModel"]}))
    write("yaml_ollama_like", "params.yaml", "stop:\n  - '<|im_end|>'\n  - '### User:'\nnum_ctx: 4096\n")
    write("yaml_lm_eval_results", "results.yaml", "mmlu: {acc: 0.62, stderr: 0.003}\nmodel: example/tiny\n")
