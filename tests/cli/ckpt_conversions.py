#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that converters of checkpoints are known for, each from both sides: `ckpt_compare` says what happened.

usage: ckpt_conversions.py MSPROBE    (run by a Python that has NumPy)
"""


import harness
import tensor_files

HIDDEN, HEADS, GROUPS, SIZE, WORDS, LAYERS = 128, 8, 2, 16, 96, 3


def save(folder, tensors):
    raw = {name: (value.shape, value.astype("<f4").tobytes()) for name, value in tensors.items()}
    tensor_files.save_safetensors(folder / "model.safetensors", raw)


def llama():
    """A trained one: weights with heavier tails than those of initialisers."""
    import numpy as np

    rng = np.random.default_rng(6)

    def trained(*shape):
        value = rng.standard_normal(shape)
        return 0.02 * value * (1 + abs(value))

    state = {"model.embed_tokens.weight": trained(WORDS, HIDDEN), "lm_head.weight": trained(WORDS, HIDDEN),
             "model.norm.weight": 1 + trained(HIDDEN)}
    for layer in range(LAYERS):
        head = f"model.layers.{layer}."
        for name, rows in (("q", HEADS * SIZE), ("k", GROUPS * SIZE), ("v", GROUPS * SIZE)):
            state[f"{head}self_attn.{name}_proj.weight"] = trained(rows, HIDDEN)
        state[head + "mlp.up_proj.weight"] = trained(256, HIDDEN)
        state[head + "mlp.down_proj.weight"] = trained(HIDDEN, 256)
        state[head + "input_layernorm.weight"] = 1 + trained(HIDDEN)
    return state


def told(msprobe, scratch, first, second, status):
    """The output for the pair, in both directions."""
    save(scratch / "first", first)
    save(scratch / "second", second)
    texts = []
    for pair in (("first", "second"), ("second", "first")):
        words = ["ckpt_compare", *pair, "-o", "result.json", "--overwrite", "--fail-on", "different"]
        result = harness.run(msprobe, words, scratch)
        harness.check_equal(f"status of {pair}\n{result.stderr}", result.returncode, status)
        texts.append(result.stderr)
    return texts


def says(texts, *wanted):
    for text in texts:
        for words in wanted:
            harness.check(words in text, f"'{words}' is not in\n{text}")


def gamma_and_beta_are_renamed(msprobe, scratch):
    """TensorFlow's names of layer norms, which BERT's first conversions kept; a loader that renames each `gamma`
    makes `layer_scale.gamma` a `weight` as well."""
    import numpy as np

    rng = np.random.default_rng(1)
    second = {"bert.pooler.weight": rng.standard_normal((8, 8))}
    for layer in range(2):
        for name in ("gamma", "beta"):
            second[f"bert.encoder.layer.{layer}.output.LayerNorm.{name}"] = rng.standard_normal(16)
    second["convnext.layer_scale.gamma"] = rng.standard_normal(16)
    first = {name.replace(".gamma", ".weight").replace(".beta", ".bias"): value.copy() for name, value in second.items()}
    texts = told(msprobe, scratch, first, second, 0)
    says(texts, "5 parameters are renamed", "6 parameters in both: 6 equal bit for bit")
    harness.check("LayerNorm.bias with" in texts[0] and "LayerNorm.beta with" in texts[1], texts[0])
    second["convnext.layer_scale.gamma"][3] += 1
    says(told(msprobe, scratch, first, second, 1), "1 of 16", "first at [3]")


def heads_of_keys_are_those_of_queries(msprobe, scratch):
    """GGUF's order of rows, with the number of heads where that of groups is meant."""
    def halves(weight, heads):
        return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)

    first, second, right = llama(), llama(), llama()
    for layer in range(LAYERS):
        head = f"model.layers.{layer}.self_attn."
        for state, groups in ((second, HEADS), (right, GROUPS)):
            state[head + "q_proj.weight"] = halves(state[head + "q_proj.weight"], HEADS)
            state[head + "k_proj.weight"] = halves(state[head + "k_proj.weight"], groups)
    says(told(msprobe, scratch, first, right, 1), "self_attn.q_proj.weight of 3 layers: rows permuted",
         "self_attn.k_proj.weight of 3 layers: rows permuted", f"{SIZE} per head")
    texts = told(msprobe, scratch, first, second, 1)
    says(texts, "self_attn.q_proj.weight of 3 layers: rows permuted", f"{SIZE} per head",
         f"{GROUPS * SIZE // HEADS} per head")


def fused_projections_are_in_another_order(msprobe, scratch):
    """Queries, keys and values of each head together, against all queries first."""
    import numpy as np

    rng = np.random.default_rng(2)
    parts = [rng.standard_normal((HEADS, SIZE, HIDDEN)) for _ in range(3)]
    first = {"h.0.attn.qkv.weight": np.concatenate(parts).reshape(-1, HIDDEN), "h.0.ln.weight": parts[0][0, 0]}
    second = {**first, "h.0.attn.qkv.weight": np.stack(parts, 1).reshape(-1, HIDDEN)}
    says(told(msprobe, scratch, first, second, 1), f"rows permuted: {3 * HEADS} blocks of {SIZE} regrouped by")


def a_head_is_tied_that_is_not(msprobe, scratch):
    first, second = llama(), llama()
    second["lm_head.weight"] = second["model.embed_tokens.weight"]
    texts = told(msprobe, scratch, first, second, 1)
    says(texts[:1], "lm_head.weight: the same as model.embed_tokens.weight in the second, not in the first")
    says(texts[1:], "lm_head.weight: the same as model.embed_tokens.weight in the first, not in the second")


def the_bias_of_a_head_is_there_twice(msprobe, scratch):
    """BERT's `bias` and `decoder.bias` are one tensor, of which safetensors keep the first; a copy that differs is
    missing on the other side."""
    import numpy as np

    rng = np.random.default_rng(5)
    first = {"cls.predictions.transform.dense.weight": rng.standard_normal((8, 8)), "cls.predictions.bias": rng.standard_normal(30)}
    second = {**first, "cls.predictions.decoder.bias": first["cls.predictions.bias"].copy()}
    says(told(msprobe, scratch, first, second, 0), "2 equal bit for bit", "cls.predictions.decoder.bias is the same as cls.predictions.bias")
    second["cls.predictions.decoder.bias"][7] += 1
    says(told(msprobe, scratch, first, second, 1), "1 only in the", "cls.predictions.decoder.bias")


def a_prefix_that_strict_false_passed_over(msprobe, scratch):
    """All below the prefix is as initialised, norms as well."""
    import numpy as np

    rng = np.random.default_rng(3)
    first, second = llama(), llama()
    for name, value in second.items():
        if name.startswith("model.layers."):
            second[name] = rng.normal(0, 0.02, value.shape) if value.ndim > 1 else np.ones(value.shape)
    texts = told(msprobe, scratch, first, second, 1)
    says(texts[:1], "the second looks as initialised (normal with deviation 0.02): never loaded?",
         "input_layernorm.weight of 3 layers: the second looks as initialised (1 throughout): never loaded?")
    says(texts[1:], "the first looks as initialised (normal with deviation 0.02): never loaded?")
    for text in texts:
        harness.check("the same as" not in text, text)


def weight_norm_has_new_names(msprobe, scratch):
    import numpy as np

    rng = np.random.default_rng(4)
    names = {"weight_g": "parametrizations.weight.original0", "weight_v": "parametrizations.weight.original1"}
    first = {f"conv.{old}": rng.standard_normal((32, 1 if old == "weight_g" else 48)) for old in names}
    second = {f"conv.{new}": first[f"conv.{old}"] for old, new in names.items()}
    says(told(msprobe, scratch, first, second, 0), "2 parameters are renamed", "2 equal bit for bit")
    second["conv.parametrizations.weight.original0"] = np.ones((32, 1))
    says(told(msprobe, scratch, first, second, 1), "2 parameters are renamed", "1 different", "conv.", "1 throughout")


harness.main_of_script("numpy")
