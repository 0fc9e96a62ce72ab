#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt_compare` says how parameters differ: each mistake of a conversion that is planted here is named, in three forms of
files, and of training nothing is claimed.

usage: ckpt_relations.py MSPROBE    (run by the Python that has PyTorch)
"""

import json

import harness
import tensor_files

LAYERS, HEADS, HEAD, FF, WORDS = 3, 8, 32, 320, 500
HIDDEN = HEADS * HEAD


def model(seed):
    """Weights that no initialiser would leave."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def trained(*shape):
        return sum(torch.randn(*shape, generator=generator) ** power * scale for power, scale in ((1, 0.05), (3, 0.004)))

    tensors = {"model.embed_tokens.weight": trained(WORDS, HIDDEN)}
    for layer in range(LAYERS):
        head = f"model.layers.{layer}."
        for part in "qkvo":
            tensors[f"{head}self_attn.{part}_proj.weight"] = trained(HIDDEN, HIDDEN)
        for part in ("gate", "up"):
            tensors[f"{head}mlp.{part}_proj.weight"] = trained(FF, HIDDEN)
        tensors[f"{head}mlp.down_proj.weight"] = trained(HIDDEN, FF)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{head}{norm}.weight"] = 1 + trained(HIDDEN)
    tensors["model.norm.weight"] = 1 + trained(HIDDEN)
    tensors["lm_head.weight"] = trained(WORDS, HIDDEN)
    return tensors


def in_layers(leaf, change):
    def apply(tensors):
        for layer in range(LAYERS):
            name = f"model.layers.{layer}.{leaf}.weight"
            tensors[name] = change(tensors[name]).contiguous()

    return apply


def of(name, change):
    def apply(tensors):
        tensors[name] = change(tensors[name]).contiguous()

    return apply


def both(*changes):
    return lambda tensors: [change(tensors) for change in changes]


def interleaved(weight):
    return weight.view(HEADS, 2, HEAD // 2, HIDDEN).transpose(1, 2).reshape(HIDDEN, HIDDEN)


def exchange(tensors, find):
    for name in list(tensors):
        other = find(name)
        if other:
            tensors[name], tensors[other] = tensors[other], tensors[name]


def mistakes():
    """Name to the change of the weights and the lines that say so."""
    import torch

    torch.manual_seed(5)
    linear = torch.nn.Linear(HIDDEN, HIDDEN, bias=False).weight.data
    normal = torch.randn(HIDDEN, HIDDEN) * 0.02
    rows = 0.5 + torch.rand(FF, 1)
    columns = 0.5 + torch.rand(1, HIDDEN)
    delta = torch.randn(HIDDEN, 8) @ torch.randn(8, HIDDEN) * 0.01
    last = LAYERS - 1
    every = f"of {LAYERS} layers"
    o_proj = f"model.layers.{last}.self_attn.o_proj.weight"
    up_proj = f"model.layers.{last}.mlp.up_proj.weight"
    shuffled = torch.randperm(HIDDEN)
    return {
        "rotary": (both(in_layers("self_attn.q_proj", interleaved), in_layers("self_attn.k_proj", interleaved)),
                   [f"self_attn.{p}_proj.weight {every}: rows permuted: halves -> interleaved, {HEAD} per head" for p in "kq"]),
        "wrong_heads": (in_layers("self_attn.k_proj", lambda w: w.view(4, 2, 32, HIDDEN).transpose(1, 2).reshape(HIDDEN, HIDDEN)),
                        [f"self_attn.k_proj.weight {every}: rows permuted: halves -> interleaved, 64 per head"]),
        "transposed": (in_layers("self_attn.o_proj", lambda w: w.T), [f"self_attn.o_proj.weight {every}: transposed"]),
        "transposed_other_shape": (in_layers("mlp.down_proj", lambda w: w.T), [f"mlp.down_proj.weight {every}: transposed"]),
        "gate_and_up": (lambda t: exchange(t, lambda n: n.replace("gate_proj", "up_proj") if "gate_proj" in n else None),
                        [f"mlp.gate_proj.weight {every}: exchanged with mlp.up_proj.weight"]),
        "scaled": (in_layers("self_attn.v_proj", lambda w: w * 1.25), [f"self_attn.v_proj.weight {every}: scaled by 1.25"]),
        "layers": (lambda t: exchange(t, lambda n: n.replace(".0.", ".1.") if ".layers.0." in n else None),
                   ["layers 0 and 1 are exchanged: 9 parameters"]),
        "never_loaded": (of(o_proj, lambda _w: normal), [f"{o_proj}: the second looks as initialised (normal with deviation 0.02): never loaded?"]),
        "never_loaded_linear": (of(o_proj, lambda _w: linear), [f"{o_proj}: the second looks as initialised (uniform within 0.0625): never loaded?"]),
        "nothing_loaded": (lambda t: t.update({n: torch.randn(v.shape) * 0.02 for n, v in t.items() if v.dim() > 1}),
                           [f"{2 + 7 * LAYERS} parameters (model.embed_tokens.weight, mlp.down_proj.weight and 7 other names): "
                            "the second looks as initialised (normal with deviation 0.02): never loaded?"]),
        "tied": (lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}),
                 ["lm_head.weight: the same as model.embed_tokens.weight in the second, not in the first"]),
        "copied": (lambda t: t.update({up_proj: t[up_proj.replace(str(last), "0")].clone()}),
                   [f"{up_proj}: the same as {up_proj.replace(str(last), '0')} in the second, not in the first"]),
        "norms_less_one": (lambda t: [t.update({n: v - 1}) for n, v in list(t.items()) if "norm" in n],
                           ["input_layernorm.weight " + every + ": shifted by -1", "model.norm.weight: shifted by -1"]),
        "rows_scaled": (in_layers("mlp.up_proj", lambda w: w * rows), [f"mlp.up_proj.weight {every}: each row scaled by its own factor"]),
        "columns_scaled": (in_layers("mlp.up_proj", lambda w: w * columns), [f"mlp.up_proj.weight {every}: each column scaled by its own factor"]),
        "adapter": (in_layers("self_attn.q_proj", lambda w: w + delta), [f"self_attn.q_proj.weight {every}: the difference has rank 8, as with a merged adapter"]),
        "zeros": (of(up_proj, torch.zeros_like), [f"{up_proj}: the second is 0 throughout"]),
        "nan": (of(up_proj, lambda w: w * float("nan")), [f"{up_proj}: the second is NaN throughout"]),
        "regrouped": (in_layers("self_attn.q_proj", lambda w: w.view(2, 4, HEAD, HIDDEN).transpose(0, 1).reshape(HIDDEN, HIDDEN)),
                      [f"self_attn.q_proj.weight {every}: rows permuted: 8 blocks of 32 regrouped by 2"]),
        "columns": (in_layers("self_attn.o_proj", lambda w: w.flip(1)), [f"self_attn.o_proj.weight {every}: columns reversed"]),
        "shuffled": (in_layers("self_attn.o_proj", lambda w: w[shuffled]), [f"self_attn.o_proj.weight {every}: rows permuted"]),
        "rows_and_columns": (in_layers("self_attn.o_proj", lambda w: w[shuffled][:, shuffled.flip(0)]),
                             [f"self_attn.o_proj.weight {every}: rows and columns permuted"]),
        "rotary_of_both": (in_layers("self_attn.o_proj", lambda w: interleaved(w).flip(1)),
                           [f"self_attn.o_proj.weight {every}: rows permuted: halves -> interleaved, {HEAD} per head, columns reversed"]),
        "negated": (in_layers("self_attn.v_proj", lambda w: -w), [f"self_attn.v_proj.weight {every}: negated"]),
        "moved_norm": (lambda t: exchange(t, lambda n: n.replace("input_", "post_attention_") if "input_" in n else None),
                       [f"input_layernorm.weight {every}: exchanged with post_attention_layernorm.weight"]),
        "rounded": (lambda t: t.update({n: v.bfloat16().float() for n, v in t.items()}), [": rounded to bfloat16"]),
    }  # fmt: skip


def save_torch(path, tensors):
    import torch

    torch.save(tensors, path)


def save_half(path, tensors):
    import torch

    torch.save({name: tensor.bfloat16() for name, tensor in tensors.items()}, path)


def compare(msprobe, scratch, first, second):
    words = ["ckpt_compare", first, second, "-o", "result.json", "--overwrite", "--fail-on", "different"]
    result = harness.run(msprobe, words, scratch)
    return result, json.loads((scratch / "result.json").read_text())


def mistakes_are_named(msprobe, scratch, save, suffix):
    base = model(0)
    save_torch(scratch / "base.pt", base)
    for name, (change, lines) in mistakes().items():
        if save is save_half and name in ("adapter", "rounded"):  # hidden by the rounding
            continue
        tensors = {key: value.clone() for key, value in base.items()}
        change(tensors)
        second = f"{name}{suffix}"
        save(scratch / second, tensors)
        result, written = compare(msprobe, scratch, "base.pt", second)
        harness.check_equal(f"{name}: status", result.returncode, 1)
        for line in lines:
            harness.check(line in result.stderr, f"{name}: {line!r} is not in\n{result.stderr}")
        related = [key for key, entry in written.items() if "relation" in entry]
        harness.check(related, f"{name}: no relation in JSON")
        equal = [key for key in related if written[key]["l2"] == 0]
        harness.check_equal(f"{name}: relations of what is equal", equal, [])
        (scratch / second).unlink()


def in_pytorch_files(msprobe, scratch):
    mistakes_are_named(msprobe, scratch, save_torch, ".pt")


def in_safetensors(msprobe, scratch):
    mistakes_are_named(msprobe, scratch, tensor_files.save_torch_tensors, ".safetensors")


def in_bfloat16_against_float32(msprobe, scratch):
    mistakes_are_named(msprobe, scratch, save_half, ".pt")


def pieces_of_others():
    """Name to the change of the weights and what is said of what has no partner, or another shape, then."""
    import torch

    def fuse(tensors):
        for layer in range(LAYERS):
            prefix = f"model.layers.{layer}.self_attn."
            tensors[prefix + "fused.weight"] = torch.cat([tensors.pop(f"{prefix}{part}_proj.weight") for part in "qkv"])

    def rename(tensors):
        for name in [name for name in tensors if ".mlp.up_proj" in name]:
            tensors[name.replace("model.layers", "encoder.block").replace("mlp.up_proj", "wide")] = tensors.pop(name)

    up, o_proj = "model.layers.1.mlp.up_proj.weight", "model.layers.1.self_attn.o_proj.weight"
    every = f"of {LAYERS} layers"
    return {
        "renamed": (rename, [f"mlp.up_proj.weight {every}: the same as encoder.block.*.wide.weight in the second"]),
        "fused": (fuse, [f"self_attn.{part}_proj.weight {every}: rows {i * HIDDEN} to {(i + 1) * HIDDEN - 1} of model.layers.*.self_attn.fused.weight in the second"
                         for i, part in enumerate("qkv")]),
        "half_of_the_columns": (of(o_proj, lambda w: w[:, HIDDEN // 2 :]), [f"{o_proj}: the second is columns {HIDDEN // 2} to {HIDDEN - 1} of the first"]),
        "half_of_the_rows": (of(up, lambda w: w[: FF // 2]), [f"{up}: the second is rows 0 to {FF // 2 - 1} of the first"]),
    }  # fmt: skip


def pieces_of_others_are_named(msprobe, scratch):
    import torch

    base = model(0)
    save_torch(scratch / "base.pt", base)
    for save, how in ((save_torch, ""), (tensor_files.save_torch_tensors, ""), (save_half, ", rounded")):
        for name, (change, lines) in pieces_of_others().items():
            for hurt in (False, True):
                tensors = {key: value.clone() for key, value in base.items()}
                change(tensors)
                for key, value in tensors.items():
                    if hurt and (key not in base or value.shape != base[key].shape):
                        tensors[key] = value = value.clone(memory_format=torch.contiguous_format)
                        for part in value.view(3 if "fused" in key else 1, -1):
                            part[part.numel() // 2] = 0.7251
                save(scratch / "second.pt", tensors)
                result, _ = compare(msprobe, scratch, "base.pt", "second.pt")
                harness.check_equal(f"{name}: status", result.returncode, 1)
                for line in lines:
                    harness.check((line + how in result.stderr) != hurt, f"{name}, {hurt}: {line + how!r}\n{result.stderr}")


def surplus_rows_of_a_vocabulary_are_padding_or_a_difference(msprobe, scratch):
    import torch

    base = model(0)
    rows = base["lm_head.weight"].shape[0]
    (scratch / "base").mkdir()
    tensor_files.save_torch_tensors(scratch / "base/model.safetensors", base)
    for name, more, vocabulary, status in (
        ("zeros", torch.zeros(64, HIDDEN), None, 0),
        ("tokens", torch.randn(64, HIDDEN), None, 1),
        ("counted", torch.randn(64, HIDDEN), rows, 0),
        ("counted_with_them", torch.randn(64, HIDDEN), rows + 64, 1),
    ):
        tensors = {key: torch.cat([value, more]) if key == "lm_head.weight" else value for key, value in base.items()}
        (scratch / name).mkdir()
        tensor_files.save_torch_tensors(scratch / name / "model.safetensors", tensors)
        if vocabulary:
            (scratch / name / "config.json").write_text(json.dumps({"vocab_size": vocabulary}))
        for pair in (("base", name), (name, "base")):
            result, _ = compare(msprobe, scratch, *pair)
            harness.check_equal(f"{pair}: {result.stderr}", result.returncode, status)
            harness.check(("are not padding" in result.stderr) == bool(status), result.stderr)


def rounding_is_no_factor(msprobe, scratch):
    """Another type of 16 bits, and pairs of a few numbers."""
    import torch

    base = {key: value.float() for key, value in model(0).items()}
    base["logit_scale"] = torch.tensor([4.6])
    save_torch(scratch / "base.pt", base)
    halves = {key: value.half() for key, value in base.items()}
    other = {key: value.bfloat16() for key, value in base.items()}
    scalar = {**base, "logit_scale": torch.tensor([4.7])}
    for first, second, status in ((halves, other, 0), (other, halves, 0), (base, scalar, 1)):
        save_torch(scratch / "first.pt", first)
        save_torch(scratch / "second.pt", second)
        result, written = compare(msprobe, scratch, "first.pt", "second.pt")
        claimed = {key: entry["relation"] for key, entry in written.items() if "relation" in entry}
        harness.check_equal("claimed", claimed, {})
        harness.check_equal(f"status: {result.stderr}", result.returncode, status)
    # Both are roundings of one number but for one element, which is a step of bfloat16 further away.
    halves["model.norm.weight"][3] = float(other["model.norm.weight"][3]) * (1 + 2**-6)
    save_torch(scratch / "first.pt", halves)
    save_torch(scratch / "second.pt", other)
    result, _ = compare(msprobe, scratch, "first.pt", "second.pt")
    harness.check("model.norm.weight: all but 1 of its elements are equal after rounding, the first unequal one at [3]" in result.stderr, result.stderr)


def nothing_is_claimed_of_what_says_little(msprobe, scratch):
    """One element that hides all others, constants, a handful of numbers."""
    import torch

    weight = torch.randn(256, 256, generator=torch.Generator().manual_seed(3)) * 0.02
    hurt = weight.clone()
    hurt[4, 5] = 1e10
    ones = {f"l.{i}.norm.weight": torch.ones(64) for i in range(3)}
    trained = {**ones, "l.1.norm.weight": torch.ones(64) + 0.01 * torch.randn(64), "l.2.norm.weight": torch.ones(64) + 0.01 * torch.randn(64)}
    cases = (
        ({"w": weight}, {"w": hurt}, 1),
        (ones, trained, 1),
        ({"w": torch.ones(64, 256)}, {"w": torch.ones(64, 128)}, 1),
        ({"w": torch.full((64,), 0.1)}, {"w": torch.full((64,), 0.3)}, 1),
        ({"b": torch.tensor([1.0, 2.0])}, {"b": torch.tensor([2.0, 1.0])}, 1),
    )
    for first, second, status in cases:
        save_torch(scratch / "first.pt", first)
        save_torch(scratch / "second.pt", second)
        result, written = compare(msprobe, scratch, "first.pt", "second.pt")
        claimed = {key: entry["relation"] for key, entry in written.items() if "relation" in entry and "1 throughout" not in entry["relation"]}
        harness.check_equal(f"claimed: {result.stderr}", claimed, {})
        harness.check_equal(f"status: {result.stderr}", result.returncode, status)
    rows = weight.clone()
    rows[torch.tensor([3, 17, 200])] += 1
    save_torch(scratch / "first.pt", {"w": weight})
    save_torch(scratch / "second.pt", {"w": rows})
    result, _ = compare(msprobe, scratch, "first.pt", "second.pt")
    harness.check("only 3 of 256 rows differ, the first of them row 3" in result.stderr, result.stderr)


def heads_of_another_size_are_named(msprobe, scratch):
    """Both sides in pairs, of heads of other sizes; and both in halves."""

    weight = model(0)["model.layers.0.self_attn.q_proj.weight"]
    pairs = lambda size: weight.view(HIDDEN // size, 2, size // 2, HIDDEN).transpose(1, 2).reshape(HIDDEN, HIDDEN)
    halves = lambda size: weight.view(HIDDEN // size, size // 2, 2, HIDDEN).transpose(1, 2).reshape(HIDDEN, HIDDEN)
    # If one size is twice the other, the rows are the same for both orders of the two sizes.
    for order, words in ((pairs, "in halves with {} per head against {}"), (halves, "interleaved with {} per head against {}")):
        for sizes in ((32, 64), (64, 32), (16, 128)):
            save_torch(scratch / "first.pt", {"w": order(sizes[0]).contiguous()})
            save_torch(scratch / "second.pt", {"w": order(sizes[1]).contiguous()})
            _, written = compare(msprobe, scratch, "first.pt", "second.pt")
            shown = sorted(sizes) if max(sizes) == 2 * min(sizes) else sizes
            harness.check_equal(f"{words}, {sizes}", written["w"]["relation"], "rows permuted: " + words.format(*shown))


def casts_are_named(msprobe, scratch):
    """To a narrower type and back, by way of it to another one, and by leaving bits out; from both sides."""
    import torch

    base = {key: value for key, value in model(0).items() if value.dim() > 1}
    cut = lambda value: (value.view(torch.int32) & -65536).view(torch.float32)
    casts = (
        (lambda value: value.bfloat16().float(), "rounded to bfloat16"),
        (lambda value: value.bfloat16().half(), "rounded to bfloat16, then to float16"),
        (lambda value: value.half().bfloat16(), "rounded to float16, then to bfloat16"),
        (lambda value: cut(value).bfloat16(), "truncated to bfloat16, not rounded"),
        (cut, "truncated to bfloat16, not rounded"),
    )
    save_torch(scratch / "base.pt", base)
    for cast, text in casts:
        changed = {key: cast(value) for key, value in base.items()}
        for pair, before in ((("base.pt", "cast.pt"), ""), (("cast.pt", "base.pt"), "the first is ")):
            save_torch(scratch / "cast.pt", changed)
            result, written = compare(msprobe, scratch, *pair)
            told = {entry.get("relation") for entry in written.values()}
            harness.check_equal(f"{text}: {result.stderr}", told, {before + text})
            save_torch(scratch / "cast.pt", {key: value.flatten().index_fill(0, torch.tensor([77]), 0.7251).view(value.shape)
                                             for key, value in changed.items()})
            result, written = compare(msprobe, scratch, *pair)
            claimed = [entry["relation"] for entry in written.values() if "relation" in entry]
            harness.check_equal(f"{text}, but for one element: {result.stderr}", claimed, [])


def averages_with_a_third_checkpoint_are_named(msprobe, scratch):
    """Averages are named in float32 and bfloat16, close ones too; not for tensors close to one of the two, nor for others."""
    import torch

    first, third = model(0), model(1)
    mixed = lambda share: {key: (1 - share) * first[key] + share * third[key] for key in first}
    noise = {key: value + 0.01 * torch.randn(value.shape) for key, value in mixed(0.25).items()}
    tuned = {key: value + 1e-4 * torch.randn(value.shape) for key, value in first.items()}
    save_torch(scratch / "first.pt", first)
    save_torch(scratch / "third.pt", third)
    cases = ((mixed(0.1), "0.9 x the first + 0.1 x the third"), (mixed(0.0005), "0.9995 x the first + 0.0005 x the third"),
             (mixed(-0.5), "1.5 x the first - 0.5 x the third"), (noise, None), (tuned, None), (third, None))
    for save in (save_torch, save_half):
        for tensors, text in cases:
            save(scratch / "second.pt", tensors)
            result = harness.run(msprobe, ["ckpt_compare", "first.pt", "second.pt", "--third", "third.pt", "-o", "result.json",
                                           "--overwrite"], scratch)
            told = {entry.get("relation") for entry in json.loads((scratch / "result.json").read_text()).values()} - {None}
            if text is None or (save is save_half and "0.0005" in text):  # hidden by the rounding
                harness.check(not any("the third" in each for each in told), f"{told}\n{result.stderr}")
            else:
                harness.check_equal(f"{text}: {result.stderr}", told, {text})
    save_torch(scratch / "other.pt", {"x": torch.ones(3)})
    result = harness.run(msprobe, ["ckpt_compare", "first.pt", "first.pt", "--third", "other.pt", "-o", "result.json", "--overwrite",
                                   "--fail-on", "different"], scratch)
    harness.check(result.returncode == 2 and "no parameter has a name of the first" in result.stderr, result.stderr)


def dead_rows_and_columns_are_named(msprobe, scratch):
    base = model(0)
    save_torch(scratch / "base.pt", base)
    name = "model.layers.1.mlp.up_proj.weight"
    for place, value, text in (
        (slice(3, 4), 0.0, "only elements of row 3 differ: 0 throughout in the second"),
        (slice(3, 9), float("nan"), "only rows 3 to 8 differ: NaN throughout in the second"),
        ((slice(None), 5), 0.0, "only elements of column 5 differ: 0 throughout in the second"),
        (slice(3, 4), 0.25, "only elements of row 3 differ\n"),
    ):
        tensors = {key: tensor.clone() for key, tensor in base.items()}
        tensors[name][place] = value
        save_torch(scratch / "second.pt", tensors)
        result, _ = compare(msprobe, scratch, "base.pt", "second.pt")
        harness.check(f"note: {name}: {text}" in result.stderr, f"{text}\n{result.stderr}")


def one_element_ends_a_relation(msprobe, scratch):
    """A relation that holds for all elements but one is not claimed."""
    base = model(0)
    save_torch(scratch / "base.pt", base)
    for name, (change, _lines) in mistakes().items():
        if name in ("layers", "never_loaded", "never_loaded_linear", "gate_and_up", "moved_norm", "nothing_loaded"):
            continue
        tensors = {key: value.clone() for key, value in base.items()}
        change(tensors)
        for key, value in tensors.items():
            if value.shape != base[key].shape or not bool((value != base[key]).any()):
                if value.shape == base[key].shape:
                    continue
            value.view(-1)[value.numel() // 2 + 1] = 0.7251
        save_torch(scratch / "second.pt", tensors)
        _, written = compare(msprobe, scratch, "base.pt", "second.pt")
        claimed = {key: entry["relation"] for key, entry in written.items() if "relation" in entry}
        harness.check_equal(f"{name}: claimed", claimed, {})


def training_is_no_relation(msprobe, scratch):
    """Steps of optimizers, other seeds, averages and noise."""
    import torch

    def network(seed):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(64, 256), torch.nn.LayerNorm(256), torch.nn.GELU(), torch.nn.Linear(256, 256),
            torch.nn.Embedding(100, 64), torch.nn.Linear(256, 10),
        )  # fmt: skip

    pairs = []

    def add(first, second):
        pairs.append(({k: v.clone() for k, v in first.items()}, {k: v.clone() for k, v in second.items()}))

    for kind in (torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adagrad):
        net = network(1)
        states = [{k: v.clone() for k, v in net.state_dict().items()}]
        optimizer = kind(net.parameters(), lr=1e-2)
        for step in range(12):
            x = torch.randn(32, 64)
            hidden = net[3](net[2](net[1](net[0](x))))
            loss = (net[5](hidden) - x[:, :10]).square().mean() + net[4](torch.randint(0, 100, (32,))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 1:
                states.append({k: v.clone() for k, v in net.state_dict().items()})
        for first, second in zip(states, states[1:]):
            add(first, second)
        add(states[0], states[-1])
        average = {k: 0.9 * states[-1][k] + 0.1 * states[1][k] for k in states[0]}
        add(average, states[-1])
    base = model(3)
    for scale in (1e-4, 1e-3, 1e-2, 1e-1):
        add(base, {k: v + torch.randn_like(v) * scale for k, v in base.items()})
    for seed in (4, 5, 8):
        add(base, model(seed))
    add(network(6).state_dict(), network(7).state_dict())
    harness.check(len(pairs) >= 40, f"only {len(pairs)} pairs")
    for number, (first, second) in enumerate(pairs):
        save_torch(scratch / "a.pt", first)
        save_torch(scratch / "b.pt", second)
        result, written = compare(msprobe, scratch, "a.pt", "b.pt")
        claimed = {key: entry["relation"] for key, entry in written.items() if "relation" in entry}
        harness.check_equal(f"pair {number}: {result.stderr}", claimed, {})


harness.main_of_script("torch")
