#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model in every form: experts one by one, stacked and grouped, projections apart and fused, ranks of Megatron and
names of Hugging Face; each pair is equal bit for bit, and a changed element has its place in each.

usage: ckpt_forms.py MSPROBE DATA_FOLDER    (run by the Python that has PyTorch)
"""

import argparse
import itertools
import json
import pathlib
import sys

import harness
from ckpt_runs import compare

HIDDEN, FFN, HEADS, GROUPS, SIZE, EXPERTS, LAYERS = 8, 6, 4, 2, 2, 4, 2
NORMS = {"input_layernorm.weight": "input_layernorm.weight", "post_attention_layernorm.weight": "pre_mlp_layernorm.weight"}


def weights():
    """Queries, keys, values and experts apart, under plain names."""
    import torch

    torch.manual_seed(11)
    model = {"embed": torch.randn(16, HIDDEN), "head": torch.randn(16, HIDDEN), "norm": torch.randn(HIDDEN)}
    for layer in range(LAYERS):
        model[layer] = {
            "q": torch.randn(HEADS * SIZE, HIDDEN), "k": torch.randn(GROUPS * SIZE, HIDDEN),
            "v": torch.randn(GROUPS * SIZE, HIDDEN), "o": torch.randn(HIDDEN, HEADS * SIZE),
            "router": torch.randn(EXPERTS, HIDDEN), "gate": torch.randn(EXPERTS, FFN, HIDDEN),
            "up": torch.randn(EXPERTS, FFN, HIDDEN), "down": torch.randn(EXPERTS, HIDDEN, FFN),
            "norms": [torch.randn(HIDDEN), torch.randn(HIDDEN)],
        }
    return model


def hugging_face(model, form):
    import torch

    state = {"model.embed_tokens.weight": model["embed"], "lm_head.weight": model["head"],
             "model.norm.weight": model["norm"]}
    for layer in range(LAYERS):
        part, head = model[layer], f"model.layers.{layer}."
        for name, value in zip(NORMS, part["norms"]):
            state[head + name] = value
        state[head + "self_attn.o_proj.weight"] = part["o"]
        if form == "fused":
            state[head + "self_attn.qkv_proj.weight"] = torch.cat([part["q"], part["k"], part["v"]])
        else:
            for name in "qkv":
                state[head + f"self_attn.{name}_proj.weight"] = part[name]
        block = "block_sparse_moe." if form == "mixtral" else "mlp."
        state[head + block + "gate.weight"] = part["router"]
        both = torch.cat([part["gate"], part["up"]], 1)
        if form in ("stacked", "fused"):
            state[head + "mlp.experts.gate_up_proj"] = both
            state[head + "mlp.experts.down_proj"] = part["down"]
        elif form == "across":
            state[head + "mlp.experts.gate_up_proj"] = both.transpose(1, 2).contiguous()
            state[head + "mlp.experts.down_proj"] = part["down"].transpose(1, 2).contiguous()
        else:
            names = ("w1", "w3", "w2") if form == "mixtral" else ("gate_proj", "up_proj", "down_proj")
            for expert in range(EXPERTS):
                for name, key in zip(names, ("gate", "up", "down")):
                    state[f"{head}{block}experts.{expert}.{name}.weight"] = part[key][expert]
    return state


def megatron(model, form, tensor=1, expert=1):
    """The state of each rank, by (tensor, expert)."""
    import torch

    def rows(value, t):
        return value.chunk(tensor, 0)[t].clone()

    ranks = {}
    for t, e in itertools.product(range(tensor), range(expert)):
        state = {"embedding.word_embeddings.weight": rows(model["embed"], t), "output_layer.weight": rows(model["head"], t),
                 "decoder.final_layernorm.weight": model["norm"]}
        for layer in range(LAYERS):
            part, head = model[layer], f"decoder.layers.{layer}."
            for name, value in zip(NORMS.values(), part["norms"]):
                state[head + name] = value
            queries = [part[name].reshape(GROUPS, -1, HIDDEN) for name in "qkv"]
            state[head + "self_attention.linear_qkv.weight"] = rows(torch.cat(queries, 1).reshape(-1, HIDDEN), t)
            state[head + "self_attention.linear_proj.weight"] = part["o"].chunk(tensor, 1)[t].clone()
            state[head + "mlp.router.weight"] = part["router"]
            local = [value[e * EXPERTS // expert : (e + 1) * EXPERTS // expert] for value in (part["gate"], part["up"], part["down"])]
            first = torch.cat([value.chunk(tensor, 1)[t] for value in local[:2]], 1)
            second = local[2].chunk(tensor, 2)[t]
            mlp = head + "mlp.experts."
            if form == "grouped":
                state[mlp + "weight1"] = first.transpose(1, 2).reshape(HIDDEN, -1)
                state[mlp + "weight2"] = second.transpose(1, 2).reshape(-1, HIDDEN)
                continue
            for i in range(EXPERTS // expert):
                if form == "te":
                    state[mlp + f"linear_fc1.weight{i}"], state[mlp + f"linear_fc2.weight{i}"] = first[i], second[i]
                else:
                    state[mlp + f"local_experts.{i}.linear_fc1.weight"] = first[i]
                    state[mlp + f"local_experts.{i}.linear_fc2.weight"] = second[i]
        ranks[t, e] = state
    return ranks


def write(scratch, name, model):
    import torch

    kind, form, *sizes = name.split("-")
    folder = scratch / name
    folder.mkdir()
    if kind == "hf":
        torch.save(hugging_face(model, form), folder / "model.pt")
        config = {"num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "hidden_size": HIDDEN}
        (folder / "config.json").write_text(json.dumps(config))
        return
    tensor, expert = (int(size) for size in sizes)
    arguments = argparse.Namespace(
        tensor_model_parallel_size=tensor, pipeline_model_parallel_size=1, expert_model_parallel_size=expert,
        num_attention_heads=HEADS, num_query_groups=GROUPS, group_query_attention=True, hidden_size=HIDDEN, swiglu=True,
        num_experts=EXPERTS, untie_embeddings_and_output_weights=True)
    for (t, e), state in megatron(model, form, tensor, expert).items():
        rank = folder / (f"mp_rank_{t:02}" + (f"_{e:03}" if expert > 1 else ""))
        rank.mkdir()
        torch.save({"model": state, "args": arguments, "checkpoint_version": 3.0}, rank / "model_optim_rng.pt")


FORMS = ("hf-apart", "hf-mixtral", "hf-stacked", "hf-across", "hf-fused", "megatron-local-1-1", "megatron-te-1-2",
         "megatron-grouped-1-1", "megatron-grouped-2-2", "megatron-local-2-1")


def every_pair_is_equal(msprobe, scratch):
    model = weights()
    for name in FORMS:
        write(scratch, name, model)
    for first, second in itertools.permutations(FORMS, 2):
        result, rows = compare(msprobe, scratch, first, second, "--fail-on", "unequal")
        harness.check_equal(f"{first} {second}: {result.stderr}", result.returncode, 0)
        # In every form: at least the three parameters outside of the layers, and seven of each layer.
        harness.check(len(rows) >= 3 + 7 * LAYERS, f"{first} {second}: {sorted(rows)}")


def a_changed_element_has_its_place(msprobe, scratch):
    """One of an expert's first projection, in its second half, and one of the keys."""
    model = weights()
    for name in FORMS:
        write(scratch, name, model)
    model[1]["up"][2, 4, 3] += 1
    model[0]["k"][GROUPS * SIZE - 1, 5] += 1
    for name in FORMS:
        (scratch / name).rename(scratch / ("old-" + name))
        write(scratch, name, model)
    places = {"gate_up": (FFN + 4, 3), "stack": (2, FFN + 4, 3), "stack_across": (2, 3, FFN + 4)}
    for first, second in itertools.permutations(FORMS, 2):
        result, rows = compare(msprobe, scratch, "old-" + first, second, "--fail-on", "different")
        harness.check_equal(f"{first} {second}: {result.stderr}", result.returncode, 1)
        changed = {name: row["First Unequal At"] for name, row in rows.items() if row["Status"] != "equal"}
        harness.check_equal(f"{first} {second}: changed", len(changed), 2)
        for name, place in changed.items():
            harness.check_equal(name, rows[name]["Unequal Elements"], "1")
            joined = name.endswith((" + up_proj.weight", " + w3.weight", "gate_up_proj[2]", "weight1[2]", "experts.2.gate_up_proj.weight"))
            if joined or "local_experts.2.linear_fc1" in name:
                harness.check_equal(name, place, str(list(places["gate_up"])))
            elif "linear_fc1.weight2" in name:
                harness.check_equal(name, place, str(list(places["gate_up"])))
            elif name.endswith(("up_proj.weight", "w3.weight")):
                harness.check_equal(name, place, "[4, 3]")
            elif name.endswith("gate_up_proj"):
                expected = "stack_across" if "across" in first else "stack"
                harness.check_equal(name, place, str(list(places[expected])))
            elif name.endswith("k_proj.weight"):
                harness.check_equal(name, place, f"[{GROUPS * SIZE - 1}, 5]")
            elif name.endswith("qkv_proj.weight"):
                harness.check_equal(name, place, f"[{(HEADS + GROUPS) * SIZE - 1}, 5]")
            elif name.endswith("linear_qkv.weight"):
                group = (HEADS // GROUPS + 2) * SIZE
                harness.check_equal(name, place, f"[{GROUPS * group - SIZE - 1}, 5]")
            else:
                # (hidden, experts x both halves): the third expert's columns begin behind those of two.
                harness.check("experts.weight1" in name, f"{first} {second}: {name}")
                harness.check_equal(name, place, f"[3, {2 * 2 * FFN + FFN + 4}]")


def what_one_side_lacks_is_named(msprobe, scratch):
    import torch

    model = weights()
    write(scratch, "hf-stacked", model)
    state = hugging_face(model, "apart")
    del state["model.layers.1.mlp.experts.3.down_proj.weight"]
    del state["model.layers.0.mlp.experts.1.up_proj.weight"]
    torch.save(state, scratch / "part.pt")
    result, rows = compare(msprobe, scratch, "hf-stacked", "part.pt", "--fail-on", "missing")
    harness.check_equal("status", result.returncode, 1)
    alone = {name: row["Status"] for name, row in rows.items() if row["Status"].startswith("only")}
    expected = {
        "decoder.layers.0.mlp.experts.local_experts.1.linear_fc1.weight": "only in the first",
        "decoder.layers.1.mlp.experts.local_experts.3.linear_fc2.weight": "only in the first",
        "model.layers.0.mlp.experts.1.gate_proj.weight": "only in the second",
    }
    harness.check_equal("alone", alone, expected)


def sizes_of_heads_are_asked_for_where_they_matter(msprobe, scratch):
    import torch

    model = weights()
    for name in ("hf-fused", "hf-apart"):
        write(scratch, name, model)
        (scratch / name / "config.json").unlink()
    _, rows = compare(msprobe, scratch, "hf-fused", "hf-apart")
    harness.check_equal("rows alone", {row["Status"] for row in rows.values()}, {"equal"})
    # Megatron stores the rows group by group: without the sizes the order of the rows is unknown.
    (scratch / "rank" / "mp_rank_00").mkdir(parents=True)
    arguments = argparse.Namespace(tensor_model_parallel_size=1, pipeline_model_parallel_size=1)
    state = {"model": megatron(model, "local")[0, 0], "args": arguments}
    torch.save(state, scratch / "rank" / "mp_rank_00" / "model_optim_rng.pt")
    result, rows = compare(msprobe, scratch, "hf-fused", "rank")
    harness.check_equal("status", result.returncode, 2)
    unknown = {name: row["Note"] for name, row in rows.items() if row["Status"] != "equal"}
    harness.check_equal("unknown", sorted(unknown), [
        f"decoder.layers.{layer}.self_attention.linear_qkv.weight" for layer in range(LAYERS)])
    harness.check(all("the numbers of attention heads and query groups are unknown" in note for note in unknown.values()), unknown)


def models_of_transformers(msprobe, scratch, wild):
    for name, count in (("mixtral", 7 + 2 * 3), ("phi3", 8)):
        for pair in ((wild / f"{name}_memory.safetensors", wild / name), (wild / name, wild / f"{name}_memory.safetensors")):
            result, rows = compare(msprobe, scratch, *pair, "--fail-on", "unequal")
            harness.check_equal(result.stderr, result.returncode, 0)
            harness.check_equal(name, [row["Status"] for row in rows.values()], ["equal"] * len(rows))
            harness.check(len(rows) >= count, sorted(rows))


def tests(msprobe, data):
    try:
        import torch  # noqa: F401
    except ImportError:
        print("1..0 # SKIP no PyTorch")
        sys.exit(0)
    wild = pathlib.Path(data).resolve() / "ckpt" / "wild"
    return harness.tests_of_script(msprobe=msprobe, wild=wild)


harness.main(tests)
