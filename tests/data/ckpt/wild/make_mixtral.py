#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes `mixtral*` and `phi3*`: a tiny Mixtral and a tiny Phi-3 of transformers (5.23), as they are in memory and as
save_pretrained writes them.

usage: make_mixtral.py FOLDER
"""

import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file


def main(folder):
    sizes = dict(vocab_size=8, hidden_size=4, intermediate_size=6, num_hidden_layers=1, num_attention_heads=2,
                 num_key_value_heads=1, head_dim=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    models = {
        "mixtral": (transformers.MixtralConfig(**sizes, num_local_experts=3), transformers.MixtralForCausalLM),
        "phi3": (transformers.Phi3Config(**sizes), transformers.Phi3ForCausalLM),
    }
    for name, (config, kind) in models.items():
        torch.manual_seed(1)
        model = kind(config)
        model.save_pretrained(pathlib.Path(folder) / name)
        save_file({key: value.contiguous() for key, value in model.state_dict().items()},
                  pathlib.Path(folder) / f"{name}_memory.safetensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
