# SPDX-License-Identifier: Apache-2.0
"""Two of the models as wide as real ones and in bfloat16, where rounding hides more."""

from transformers import GPT2Config, LlamaConfig

from ports.gpt2 import Gpt2Port
from ports.llama import LlamaPort
from ports.port import Wrong


class LargeLlamaPort(LlamaPort):
    name = "llama_large"
    dtype = "bfloat16"
    layers = 8
    wrongs = (Wrong("rotary_layout"), Wrong("key_value_order"), Wrong("gelu"), Wrong("no_mask"),
              Wrong("layers_swapped", layer=6), Wrong("gate_and_up_swapped"))

    def config(self):
        return LlamaConfig(vocab_size=2000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=self.layers,
                           num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=64,
                           rms_norm_eps=1e-6, use_cache=False, attn_implementation=self.attention)


class LargeGpt2Port(Gpt2Port):
    name = "gpt2_large"
    dtype = "bfloat16"
    layers = 4
    held_out = True
    wrongs = (Wrong("transposed_weight", layer=1), Wrong("positions_from_one"), Wrong("post_norm"),
              Wrong("dropped_bias", layer=0), Wrong("scale_of_model"))

    def config(self):
        return GPT2Config(vocab_size=2000, n_positions=64, n_embd=1024, n_layer=self.layers, n_head=16,
                          use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                          attn_implementation="sdpa")
