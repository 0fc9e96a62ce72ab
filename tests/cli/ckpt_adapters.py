#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt_compare --adapter`: a base model and its adapter against the merged model, merged here by NumPy.

usage: ckpt_adapters.py MSPROBE    (run by a Python that has NumPy)
"""

import json

import harness
import tensor_files

RANK = 4


def save(folder, name, tensors):
    raw = {key: (value.shape, value.astype("<f4").tobytes()) for key, value in tensors.items()}
    tensor_files.save_safetensors(folder / name, raw)


def model():
    import numpy as np

    rng = np.random.default_rng(3)
    names = {"model.embed_tokens.weight": (32, 16), "lm_head.weight": (32, 16)}
    for layer in range(2):
        names[f"model.layers.{layer}.self_attn.q_proj.weight"] = (24, 16)
        names[f"model.layers.{layer}.mlp.down_proj.weight"] = (16, 40)
    return {name: rng.standard_normal(shape) for name, shape in names.items()}


def adapter_of(base, modules):
    """(A, B) of each."""
    import numpy as np

    rng = np.random.default_rng(4)
    return {module: (rng.standard_normal((RANK, base[module + ".weight"].shape[1])),
                     rng.standard_normal((base[module + ".weight"].shape[0], RANK))) for module in modules}


def save_adapter(folder, adapter, whole=None, **settings):
    tensors = {f"base_model.model.{name}": value for name, value in (whole or {}).items()}
    for module, (down, up) in adapter.items():
        tensors[f"base_model.model.{module}.lora_A.weight"] = down
        tensors[f"base_model.model.{module}.lora_B.weight"] = up
    save(folder, "adapter_model.safetensors", tensors)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")


def merged(base, adapter, scale):
    import numpy as np

    result = {name: value.astype("f4").astype("f8") for name, value in base.items()}
    for module, (down, up) in adapter.items():
        result[module + ".weight"] += scale * np.matmul(up.astype("f4").astype("f8"), down.astype("f4").astype("f8"))
    return result


def compare(msprobe, scratch, *options):
    words = ["ckpt_compare", "base", "merged", "-o", "result.json", "--overwrite", "--fail-on", "different", *options]
    return harness.run(msprobe, words, scratch)


def in_bfloat16(path):
    """Rewrites a file of float32."""
    import numpy as np

    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8:begin]).items():
        first, last = entry["data_offsets"]
        bits = np.frombuffer(raw[begin + first : begin + last], "<u4").astype("u8")
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        tensors[name] = {"dtype": "BF16", "shape": entry["shape"]}, rounded.astype("<u2").tobytes()
    header, data = {}, b""
    for name, (entry, content) in tensors.items():
        header[name] = {**entry, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


MODULES = ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj", "model.layers.1.mlp.down_proj"]


def a_merged_model_is_base_and_adapter(msprobe, scratch):
    base = model()
    adapter = adapter_of(base, MODULES)
    save(scratch / "base", "model.safetensors", base)
    for settings, scale in (({}, 2), ({"use_rslora": True}, 4), ({"lora_alpha": 2}, 0.5)):
        save_adapter(scratch / "adapter", adapter, **settings)
        save(scratch / "merged", "model.safetensors", merged(base, adapter, scale))
        harness.check_equal("base alone", compare(msprobe, scratch).returncode, 1)
        result = compare(msprobe, scratch, "--adapter", "adapter")
        harness.check(result.returncode == 0, f"{settings}\n{result.stderr}")
        harness.check("adapter is added to 3 weights" in result.stderr, result.stderr)
        harness.check("6 equal bit for bit" in result.stderr, result.stderr)


def a_wrong_merge_is_found(msprobe, scratch):
    base = model()
    adapter = adapter_of(base, MODULES)
    save(scratch / "base", "model.safetensors", base)
    save_adapter(scratch / "adapter", adapter)
    wrong = merged(base, adapter, 2)
    wrong["model.layers.1.mlp.down_proj.weight"][7, 11] += 1e-4
    save(scratch / "merged", "model.safetensors", wrong)
    result = compare(msprobe, scratch, "--adapter", "adapter")
    harness.check(result.returncode == 1, result.stderr)
    harness.check("1 of 640 elements are further apart" in result.stderr and "first at [7, 11]" in result.stderr,
                  result.stderr)


def how_a_merge_is_wrong_is_told(msprobe, scratch):
    """Forgotten, done twice, with another scale; the merged model also in bfloat16."""
    import numpy as np

    base = model()
    adapter = adapter_of(base, MODULES)
    save(scratch / "base", "model.safetensors", base)
    save_adapter(scratch / "adapter", adapter)
    for scale, text in ((0, "the adapter is not in the second"), (4, "the adapter is in the second 2 times"),
                        (1, "the adapter is in the second 0.5 times")):
        for rounds in (False, True):
            save(scratch / "merged", "model.safetensors", merged(base, adapter, scale))
            if rounds:
                in_bfloat16(scratch / "merged" / "model.safetensors")
            told = compare(msprobe, scratch, "--adapter", "adapter").stderr
            harness.check(f"self_attn.q_proj.weight of 2 layers: {text}\n" in told, told)
            harness.check(f"model.layers.1.mlp.down_proj.weight: {text}\n" in told, told)
    other = merged(base, adapter, 2)
    noise = np.random.default_rng(8)
    for module in MODULES:
        other[module + ".weight"] += noise.standard_normal(other[module + ".weight"].shape)
    save(scratch / "merged", "model.safetensors", other)
    told = compare(msprobe, scratch, "--adapter", "adapter").stderr
    harness.check("how they differ" not in told, told)


def patterns_and_whole_modules(msprobe, scratch):
    base = model()
    adapter = adapter_of(base, MODULES)
    head = base["lm_head.weight"] + 1
    save(scratch / "base", "model.safetensors", base)
    save_adapter(scratch / "adapter", adapter, whole={"lm_head.weight": head},
                 alpha_pattern={"mlp.down_proj": 16}, rank_pattern={"layers.0.self_attn.q_proj": 8})
    result = merged(base, {MODULES[0]: adapter[MODULES[0]]}, 1)
    result.update({f"{MODULES[1]}.weight": merged(base, {MODULES[1]: adapter[MODULES[1]]}, 2)[f"{MODULES[1]}.weight"],
                   f"{MODULES[2]}.weight": merged(base, {MODULES[2]: adapter[MODULES[2]]}, 4)[f"{MODULES[2]}.weight"],
                   "lm_head.weight": head})
    save(scratch / "merged", "model.safetensors", result)
    told = compare(msprobe, scratch, "--adapter", "adapter")
    harness.check(told.returncode == 0 and "it replaces 1 more" in told.stderr, told.stderr)


def what_cannot_be_added_is_refused(msprobe, scratch):
    """One line that names the adapter, and status 2."""
    base = model()
    adapter = adapter_of(base, MODULES)
    for name in ("base", "merged"):
        save(scratch / name, "model.safetensors", base)
    down, up = adapter[MODULES[0]]
    cases = {
        "another kind": lambda: save_adapter(scratch / "adapter", adapter, peft_type="IA3"),
        "magnitudes": lambda: save_adapter(scratch / "adapter", adapter, use_dora=True),
        "no such module": lambda: save_adapter(scratch / "adapter", {"model.layers.9.self_attn.q_proj": (down, up)}),
        "shapes": lambda: save_adapter(scratch / "adapter", {MODULES[0]: (down[:, 1:], up)}),
        "ranks": lambda: save_adapter(scratch / "adapter", {MODULES[0]: (down[1:], up)}),
        "rank of zero": lambda: save_adapter(scratch / "adapter", adapter, r=0),
        "no rank": lambda: save_adapter(scratch / "adapter", adapter, r="many"),
        "expressions": lambda: save_adapter(scratch / "adapter", adapter, rank_pattern={"^model.*q_proj": 4}),
        "no adapter": lambda: save_adapter(scratch / "adapter", {}, whole={}),
    }
    for kind, make in cases.items():
        make()
        result = compare(msprobe, scratch, "--adapter", "adapter")
        harness.check_equal(f"{kind}: {result.stderr}", result.returncode, 2)
        lines = [line for line in result.stderr.splitlines() if line.startswith("msprobe: error: adapter")]
        harness.check_equal(f"{kind}: {result.stderr}", len(lines), 1)
    (scratch / "adapter" / "adapter_config.json").unlink()
    harness.check_equal("no settings", compare(msprobe, scratch, "--adapter", "adapter").returncode, 2)


harness.main_of_script("numpy")
