#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as programs leave them: ckpt_compare of files that the PyTorch at hand writes here, held to what it says
of the same values itself.

usage: ckpt_wild.py MSPROBE    (run by the Python that has PyTorch)
"""

import json
import sys

import harness
import tensor_files
from ckpt_runs import compare


def save(scratch, name, value):
    import torch

    path = scratch / name
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(value, path)


def statuses(rows):
    return {name: row["Status"] for name, row in rows.items()}


def narrower_copies_are_equal_after_rounding(msprobe, scratch):
    import torch

    torch.manual_seed(3)
    # All magnitudes, so that overflow, denormal numbers and ties come up.
    wide = torch.randn(50, 40) * torch.logspace(-45, 38, 2000).reshape(50, 40)
    wide[0, :4] = torch.tensor([float("nan"), float("inf"), 0.0, 65519.0])
    wide[1] = (torch.arange(40.0) + 0.5) * 2**-8 + 1  # ties of bfloat16
    wide[2] = (torch.arange(40.0) + 0.5) * 2**-11 + 1
    narrow = {"bf16": wide.bfloat16(), "half": wide.half(), "single": wide.double().float()}
    save(scratch, "wide.pt", {"bf16": wide, "half": wide, "single": wide.double() * 1.0000000001})
    save(scratch, "narrow.pt", narrow)
    for pair in (("wide.pt", "narrow.pt"), ("narrow.pt", "wide.pt")):
        result, rows = compare(msprobe, scratch, *pair, "--fail-on", "different")
        harness.check_equal("status", result.returncode, 0)
        harness.check_equal("rows", statuses(rows), dict.fromkeys(narrow, "equal after rounding"))
        harness.check("3 equal after rounding to the narrower type" in result.stderr, result.stderr)
        harness.check_equal("gate", compare(msprobe, scratch, *pair, "--fail-on", "unequal")[0].returncode, 1)
    wide[7, 9] += 1
    save(scratch, "narrow.pt", {"bf16": wide.bfloat16(), "half": narrow["half"], "single": wide})
    result, rows = compare(msprobe, scratch, "wide.pt", "narrow.pt", "--fail-on", "different")
    harness.check_equal("status with a change", result.returncode, 1)
    harness.check_equal("half", rows["half"]["Status"], "equal after rounding")
    for name in ("bf16", "single"):
        harness.check_equal(name, rows[name]["Status"], "different")
        expected = "all but 1 of its elements are equal after rounding, the first unequal one at [7, 9]"
        harness.check_equal(name, rows[name]["Note"], expected)


def the_first_unequal_element_has_its_coordinates(msprobe, scratch):
    import torch

    first = torch.zeros(3, 4, 5)
    second = first.clone()
    second[2, 1, 3] = 1
    second[2, 3, 0] = 2
    save(scratch, "a.pt", {"w": first, "s": torch.tensor(1.0)})
    save(scratch, "b.pt", {"w": second, "s": torch.tensor(2.0)})
    result, rows = compare(msprobe, scratch, "a.pt", "b.pt")
    harness.check_equal("cells", [rows["w"]["First Unequal"], rows["w"]["First Unequal At"]], ["48", "[2, 1, 3]"])
    harness.check_equal("scalar", rows["s"]["First Unequal At"], "[]")
    harness.check("first at [2, 1, 3]" in result.stderr, result.stderr)


def integers_keep_all_digits(msprobe, scratch):
    import torch

    values = torch.tensor([2**63 - 1, -(2**63), 5])
    save(scratch, "i.pt", values)
    save(scratch, "many.pt", {"a": values, "b": torch.tensor([3], dtype=torch.uint8), "c": torch.tensor([0.5])})
    text = harness.run(msprobe, ["inspect", "i.pt"], scratch).stdout
    harness.check("max 9223372036854775807, min -9223372036854775808" in text, text)
    text = harness.run(msprobe, ["inspect", "--statistics", "many.pt"], scratch).stdout
    harness.check(" 9223372036854775807 " in text and " -9223372036854775808 " in text, text)
    facts = json.loads(harness.run(msprobe, ["inspect", "--json", "--statistics", "many.pt"], scratch).stdout)
    ranges = [(t["statistics"]["min"], t["statistics"]["max"]) for t in facts["file"]["tensors"]]
    harness.check_equal("ranges", ranges, [(-(2**63), 2**63 - 1), (3, 3), (0.5, 0.5)])
    harness.check(isinstance(ranges[1][0], int), ranges)
    result = harness.run(msprobe, ["parse", "-d", "i.pt", "-t", "npy", "-o", "out"], scratch)
    harness.check("9223372036854775807" in result.stderr, result.stderr)


def whole_numbers_are_equal_or_different(msprobe, scratch):
    """One bit of a packed word, a token or the scale of a block is another weight, however large the others are."""
    import torch

    torch.manual_seed(4)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        words = torch.randint(100, 120, (64, 64)).to(dtype)
        other = words.clone()
        other[3, 5] += 1
        save(scratch, "a.pt", {"qweight": words, "w": torch.ones(4)})
        save(scratch, "b.pt", {"qweight": other, "w": torch.ones(4)})
        result, rows = compare(msprobe, scratch, "a.pt", "b.pt", "--fail-on", "different", "--tolerance", "0.5")
        harness.check_equal(str(dtype), (statuses(rows), result.returncode), ({"qweight": "different", "w": "equal"}, 1))
    # The same numbers in another type are the same.
    save(scratch, "c.pt", {"qweight": words.double(), "w": torch.ones(4)})
    result, rows = compare(msprobe, scratch, "a.pt", "c.pt", "--fail-on", "different")
    harness.check_equal("as numbers", (rows["qweight"]["Status"], result.returncode), ("same values", 0))


def universal(scratch, name, weights, buffers=(), shared=(), dtype=None):
    """As DeepSpeed's ds_to_universal.py lays it out."""
    for parameter, value in weights.items():
        save(scratch, f"{name}/zero/{parameter}/fp32.pt", {"param": value, "cat_dim": 0})
        save(scratch, f"{name}/zero/{parameter}/exp_avg.pt", {"param": value * 0})
    module = {parameter: value.to(dtype or value.dtype) for parameter, value in weights.items()}
    module.update(buffers)
    module.update({alias: module[source] for alias, source in dict(shared).items()})
    save(scratch, f"{name}/mp_rank_00_model_states.pt", {"module": module, "buffer_names": list(dict(buffers)), "shared_params": dict(shared)})


def the_universal_form_is_what_deepspeed_loads(msprobe, scratch):
    import torch

    torch.manual_seed(6)
    weights = {"fc.weight": torch.randn(6, 4), "fc.bias": torch.randn(6)}
    buffers = {"steps": torch.ones(3)}
    moved = {**weights, "fc.bias": weights["fc.bias"] + 0.5}
    universal(scratch, "a", weights, buffers)
    universal(scratch, "b", moved, buffers)
    # The file of the model, which is not what is loaded, is that of the other one.
    save(scratch, "b/mp_rank_00_model_states.pt", {"module": {**weights, **buffers}})
    result, rows = compare(msprobe, scratch, "a", "b", "--fail-on", "different")
    harness.check_equal("moved", statuses(rows), {"fc.weight": "equal", "fc.bias": "different", "steps": "equal"})
    harness.check_equal("status", result.returncode, 1)
    harness.check("its copy on mp_rank_00_model_states.pt differs in 6 of 6 elements" in rows["fc.bias"]["Note"], rows)
    # Trained in bfloat16, with a tied head, against the plain weights.
    universal(scratch, "half", weights, buffers, {"head.weight": "fc.weight"}, torch.bfloat16)
    save(scratch, "plain.pt", {**weights, **buffers})
    result, rows = compare(msprobe, scratch, "half", "plain.pt", "--fail-on", "missing")
    harness.check_equal("plain", set(statuses(rows).values()), {"equal"})
    harness.check_equal("status", result.returncode, 0)
    result, rows = compare(msprobe, scratch, "a", "a", "--optimizer")
    harness.check("optimizer.state.fc.bias.exp_avg" in rows, list(rows))
    for content, reason in (({"cat_dim": 0}, "it has no 'param'"), ({"other": torch.ones(6)}, "it has no 'param'"), (None, "truncated")):
        if content is None:
            (scratch / "b/zero/fc.bias/fp32.pt").write_bytes(b"cut")
        else:
            save(scratch, "b/zero/fc.bias/fp32.pt", content)
        result, rows = compare(msprobe, scratch, "a", "b")
        harness.check_equal(reason, (rows["fc.bias"]["Status"], result.returncode), ("not comparable", 2))
        note = rows["fc.bias"]["Note"]
        harness.check("b/zero/fc.bias/fp32.pt: " in note and reason in note, note)


def what_a_loader_reads_is_read(msprobe, scratch):
    """Several forms of weights in one folder: the one that from_pretrained() takes counts, the others are named, and
    what contradicts it."""
    import torch

    torch.manual_seed(7)
    new = {"a.weight": torch.randn(8, 4), "b.weight": torch.randn(8, 4)}
    old = {**new, "b.weight": new["b.weight"] + 1}
    tensor_files.save_torch_tensors(scratch / "reference/model.safetensors", new)

    def save_old_index(folder):
        index = {"weight_map": {name: f"model-0000{i}-of-00002.safetensors" for i, name in enumerate(old, 1)}}
        for name, file in index["weight_map"].items():
            tensor_files.save_torch_tensors(folder / file, {name: old[name]})
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    def save_deepspeed(folder):
        save(folder, "global_step4/mp_rank_00_model_states.pt", {"module": old})
        (folder / "latest").write_text("global_step4")

    beside = {
        "index": (save_old_index, "model.safetensors.index.json is here, too", True),
        "bin": (lambda folder: save(folder, "pytorch_model.bin", old), "pytorch_model.bin is here, too", True),
        "same_bin": (lambda folder: save(folder, "pytorch_model.bin", new), "pytorch_model.bin is here, too", False),
        "half_bin": (lambda folder: save(folder, "pytorch_model.bin", {k: v.half() for k, v in new.items()}), "pytorch_model.bin is here, too", False),
        "deepspeed": (save_deepspeed, "files of DeepSpeed are here, too", True),
        "variant": (lambda folder: tensor_files.save_torch_tensors(folder / "model.fp16.safetensors", old), "model.fp16.safetensors is here, too", True),
        "original": (lambda folder: tensor_files.save_torch_tensors(folder / "consolidated.safetensors", old), "consolidated.safetensors is here, too", True),
        "gguf": (lambda folder: (folder / "model-q4.gguf").write_bytes(b"GGUF"), "model-q4.gguf is here, too, and not compared", False),
    }  # fmt: skip
    for name, (add, warning, contradicts) in beside.items():
        tensor_files.save_torch_tensors(scratch / name / "model.safetensors", new)
        add(scratch / name)
        result, rows = compare(msprobe, scratch, "reference", name, "--fail-on", "unequal")
        # Another form of the same weights needs no comparison.
        status = 0 if name in ("same_bin", "half_bin") else 2
        harness.check_equal(name, (statuses(rows), result.returncode), ({"a.weight": "equal", "b.weight": "equal"}, status))
        harness.check(warning in result.stderr, f"{name}: {result.stderr}")
        told = "it contradicts model.safetensors: 1 of 2 parameters in both differ, as b.weight" in result.stderr
        harness.check_equal(f"{name} contradicts: {result.stderr}", told, contradicts)
    (scratch / "same_bin/pytorch_model.bin").write_bytes(b"cut")
    result, rows = compare(msprobe, scratch, "reference", "same_bin")
    harness.check_equal("a broken one beside", result.returncode, 0)
    harness.check("pytorch_model.bin is here, too, and not compared (same_bin/pytorch_model.bin: " in result.stderr, result.stderr)
    # State of the training beside the weights is no other form of them.
    for state in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        save(scratch / "reference", state, {"a": torch.ones(2)})
    result, rows = compare(msprobe, scratch, "reference", "reference")
    harness.check("here, too" not in result.stderr, result.stderr)


def meta_tensors_are_told(msprobe, scratch):
    import torch

    save(scratch, "m.pt", {"w": torch.ones(3), "m": torch.empty(4, 5, device="meta")})
    result, rows = compare(msprobe, scratch, "m.pt", "m.pt")
    harness.check_equal("status", result.returncode, 2)
    harness.check_equal("rows", statuses(rows), {"m": "not comparable", "w": "equal"})
    harness.check("a tensor of shape [4, 5] on the device meta" in rows["m"]["Note"], rows["m"]["Note"])
    result = harness.run(msprobe, ["inspect", "m.pt"], scratch)
    harness.check("a tensor of shape [4, 5] on the device meta" in result.stdout, result.stdout)


def a_colliding_name_ends_only_itself(msprobe, scratch):
    import torch

    save(scratch, "a.pt", {"a": {"b": torch.ones(3)}, "a.b": torch.zeros(3), "c": torch.ones(2)})
    save(scratch, "b.pt", {"a.b": torch.ones(3), "c": torch.ones(2)})
    result, rows = compare(msprobe, scratch, "a.pt", "b.pt")
    harness.check_equal("status", result.returncode, 2)
    harness.check_equal("rows", statuses(rows), {"a.b": "not comparable", "c": "equal"})
    harness.check_equal("note", rows["a.b"]["Note"], "several tensors have this name")


def pieces_that_are_missing_are_told(msprobe, scratch):
    import torch

    weights = {f"w{i}": torch.arange(4.0) + i for i in range(3)}
    for i, (name, value) in enumerate(weights.items(), 1):
        tensor_files.save_torch_tensors(scratch / "safe" / f"model-{i:05}-of-00003.safetensors", {name: value})
        save(scratch, f"bin/pytorch_model-{i:05}-of-00003.bin", {name: value})
    save(scratch, "bin/optimizer.bin", {"state": torch.ones(2)})
    save(scratch, "whole.pt", weights)
    for folder in ("safe", "bin"):
        result, rows = compare(msprobe, scratch, folder, "whole.pt", "--fail-on", "missing")
        harness.check_equal(folder, (result.returncode, list(statuses(rows).values())), (0, ["equal"] * 3))
    result, _ = compare(msprobe, scratch, "safe/model-00002-of-00003.safetensors", "whole.pt")
    harness.check_equal("one file", result.returncode, 0)
    harness.check("one of 3 files of a checkpoint" in result.stderr, result.stderr)
    for folder, ending in (("safe", "safetensors"), ("bin", "bin")):
        for path in (scratch / folder).glob(f"*-0000[13]-of-*.{ending}"):
            path.unlink()
        result, _ = compare(msprobe, scratch, folder, "whole.pt")
        harness.check_equal(folder, result.returncode, 2)
        harness.check("numbers 1, 3 of 3 are missing" in result.stderr, result.stderr)
        result, rows = compare(msprobe, scratch, folder, "whole.pt", "--allow-partial")
        harness.check_equal(folder, (result.returncode, statuses(rows)["w1"]), (0, "equal"))
        harness.check("warning" in result.stderr, result.stderr)


def small_model():
    import torch

    torch.manual_seed(5)
    names = ["model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"]
    return {name: torch.randn(6, 4) for name in names}


def prefixes_are_taken_off_several_at_once(msprobe, scratch):
    bare = small_model()
    save(scratch, "bare.pt", bare)

    def renamed(rename):
        return {rename(name): value for name, value in bare.items()}

    def fsdp(name):
        return "_fsdp_wrapped_module." + name.replace("layers.0.", "layers.0._fsdp_wrapped_module._orig_mod.")

    cases = {
        "ddp": renamed(lambda n: "module." + n),
        "compiled": renamed(lambda n: "_orig_mod." + n),
        "ddp_compiled": renamed(lambda n: "module._orig_mod." + n),
        "fsdp": renamed(fsdp),
        "inner": renamed(lambda n: n.replace("mlp", "_checkpoint_wrapped_module.mlp")),
        "lightning": {"state_dict": renamed(lambda n: "model." + n), "epoch": 3, "callbacks": {}},
        "lightning_deepspeed": {"state_dict": renamed(lambda n: "_forward_module.model." + n)},
        "app": {"app": {"model": bare, "optim": {"exp_avg": bare}}},
        "all": {"state_dict": renamed(lambda n: "module._orig_mod.model." + fsdp(n))},
    }
    for name, value in cases.items():
        save(scratch, "wrapped.pt", value)
        for pair in (("bare.pt", "wrapped.pt"), ("wrapped.pt", "bare.pt")):
            result, rows = compare(msprobe, scratch, *pair, "--fail-on", "missing")
            harness.check_equal(name, (result.returncode, list(statuses(rows).values())), (0, ["equal"] * 4))
    save(scratch, "module.pt", cases["ddp_compiled"])
    result, rows = compare(msprobe, scratch, "module.pt", "wrapped.pt", "--fail-on", "missing")
    harness.check_equal("both wrapped", (result.returncode, list(statuses(rows).values())), (0, ["equal"] * 4))


def state_of_the_training_is_no_parameter(msprobe, scratch):
    import torch

    weights = small_model()
    states = {
        "optimizer": {"state": {0: {"exp_avg": torch.ones(6, 4), "step": torch.tensor(3.0)}}},
        "rng": torch.get_rng_state(),
        "torch_rng_state": torch.get_rng_state(),
        "cuda_rng_state_all": [torch.get_rng_state()],
        "scaler": {"scale": torch.tensor(65536.0)},
        "loss": torch.tensor(0.25),
        "lr_scheduler": {"base": torch.ones(1)},
        "epoch": torch.tensor(3),
    }
    save(scratch, "bare.pt", weights)
    for number, state in enumerate((states, {})):
        save(scratch, f"full{number}.pt", {"model": weights, **state})
    for name in ("full0.pt", "full1.pt"):
        result, rows = compare(msprobe, scratch, "bare.pt", name, "--fail-on", "missing")
        harness.check_equal(name, (result.returncode, list(statuses(rows).values())), (0, ["equal"] * 4))
    result, rows = compare(msprobe, scratch, "bare.pt", "full0.pt", "--optimizer")
    alone = [name for name, row in rows.items() if row["Status"] == "only in the second"]
    harness.check("optimizer.state.0.exp_avg" in alone and "loss" in alone, alone)
    # A module of that name beside others is a part of the model.
    save(scratch, "bare.pt", {"scaler.weight": torch.ones(2), "loss.weight": torch.ones(2), "w": torch.ones(1)})
    rows = compare(msprobe, scratch, "bare.pt", "bare.pt")[1]
    harness.check_equal("modules", sorted(rows), ["loss.weight", "scaler.weight", "w"])


def several_names_for_one_tensor_are_not_missing(msprobe, scratch):
    import torch

    weights = small_model()
    embedding = weights["model.embed_tokens.weight"]
    untied = {name: value for name, value in weights.items() if name != "lm_head.weight"}
    save(scratch, "tied.pt", {**untied, "lm_head.weight": embedding, "other.alias": embedding[:]})
    tensor_files.save_torch_tensors(scratch / "model.safetensors", untied)
    for pair in (("tied.pt", "model.safetensors"), ("model.safetensors", "tied.pt")):
        result, rows = compare(msprobe, scratch, *pair, "--fail-on", "missing")
        harness.check_equal("status", (result.returncode, list(statuses(rows).values())), (0, ["equal"] * 3))
        for name in ("lm_head.weight", "other.alias"):
            harness.check(f"tied.pt: {name} is the same as model.embed_tokens.weight" in result.stderr, result.stderr)
    # A separate copy, with the same values and with others.
    tensor_files.save_torch_tensors(scratch / "copy.safetensors", {**untied, "lm_head.weight": embedding})
    result, rows = compare(msprobe, scratch, "copy.safetensors", "model.safetensors", "--fail-on", "missing")
    harness.check_equal("copy", (result.returncode, len(rows)), (0, 3))
    tensor_files.save_torch_tensors(scratch / "copy.safetensors", weights)
    result, rows = compare(msprobe, scratch, "copy.safetensors", "model.safetensors", "--fail-on", "missing")
    harness.check_equal("other values", result.returncode, 1)
    harness.check_equal("lm_head", rows["lm_head.weight"]["Status"], "only in the first")
    # Views of one storage at other places are no aliases.
    both = torch.randn(2, 3)
    save(scratch, "views.pt", {"a": both[0], "b": both[1], "c": both})
    save(scratch, "one.pt", {"a": both[0].clone()})
    result, rows = compare(msprobe, scratch, "views.pt", "one.pt", "--fail-on", "missing")
    expected = {"a": "equal", "b": "only in the first", "c": "only in the first"}
    harness.check_equal("views", (result.returncode, statuses(rows)), (1, expected))


def old_dtensor(local, size, mesh, here, placements):
    """The pickle that torch.save writes for a DTensor of PyTorch 2.1 to 2.8, after its public sources: its mesh has the ranks
    as a tensor. Classes of those names stand in for the real ones."""
    import torch

    def class_of(module, name):
        names = sys.modules.setdefault(module, type(sys)(module))
        if not hasattr(names, name):
            setattr(names, name, type(name, (), {"__module__": module, "__qualname__": name}))
        return getattr(names, name)

    def made(module, name, **members):
        value = class_of(module, name)()
        value.__dict__.update(members)
        return value

    if not hasattr(torch._utils, "_rebuild_wrapper_subclass"):
        def rebuild(*_):
            raise NotImplementedError

        rebuild.__module__, rebuild.__qualname__, rebuild.__name__ = ("torch._utils", *["_rebuild_wrapper_subclass"] * 2)
        torch._utils._rebuild_wrapper_subclass = rebuild
    types = "torch.distributed._tensor.placement_types"
    grid = made("torch.distributed.device_mesh", "DeviceMesh", mesh=torch.arange(mesh[0] * mesh[1]).reshape(mesh),
                _coordinate_on_dim=list(here))
    spec = made(types, "DTensorSpec", mesh=grid, placements=tuple(
        made(types, name, **({} if dim is None else {"dim": dim})) for name, dim in placements))
    kind = class_of("torch.distributed._tensor.api", "DTensor")
    if not hasattr(kind, "parts"):
        kind.__reduce__ = lambda self: self.parts
    value = kind()
    arguments = (kind, local.dtype, torch.Size(size), (1,) * len(size), 0, torch.strided, torch.device("cpu"), False)
    # Slots: the state is a pair of dicts.
    state = ({}, {"_local_tensor": local, "_spec": spec})
    value.parts = (torch._tensor._rebuild_from_type_v2, (torch._utils._rebuild_wrapper_subclass, kind, arguments, state))
    return value


def old_dtensors_are_joined(msprobe, scratch):
    import torch

    whole = torch.arange(35.0).reshape(5, 7)
    placements = [("Shard", 0), ("Shard", -1)]
    for rank in range(6):
        i, j = divmod(rank, 2)
        local = whole[2 * i : 2 * i + 2, 4 * j : 4 * j + 4].clone()
        save(scratch, f"ranks/model_rank{rank}.pt", {"w": old_dtensor(local, (5, 7), (3, 2), (i, j), placements)})
    changed = whole.clone()
    changed[4, 3] += 1
    save(scratch, "whole.pt", {"w": whole})
    save(scratch, "changed.pt", {"w": changed})
    result, rows = compare(msprobe, scratch, "ranks", "whole.pt")
    harness.check_equal(result.stderr, statuses(rows), {"w": "equal"})
    rows = compare(msprobe, scratch, "ranks", "changed.pt")[1]
    harness.check_equal("place", rows["w"]["First Unequal At"], "[4, 3]")
    # Cut in two over the first axis of the mesh, and copied over the second, where one of the copies is another.
    for rank in range(4):
        i, j = divmod(rank, 2)
        local = whole[3 * i : 3 * i + 3].clone()
        local[1, 2] += rank == 3
        placements = [("Shard", 0), ("Replicate", None)]
        save(scratch, f"copies/model_rank{rank}.pt", {"w": old_dtensor(local, (5, 7), (2, 2), (i, j), placements)})
    result, rows = compare(msprobe, scratch, "copies", "whole.pt", "--fail-on", "different")
    harness.check_equal("status", (result.returncode, statuses(rows)), (1, {"w": "copies differ"}))
    expected = "in copies, its copy on copies/model_rank3.pt differs in 1 of 14 elements, by up to 1.0"
    harness.check_equal("note", rows["w"]["Note"], expected)


def parts_whose_place_is_not_known_are_told(msprobe, scratch):
    import torch

    good = (torch.ones(2, 3), (4, 3), (2, 1), (0, 0))
    replicated = ("Replicate", None)
    cases = {
        "placement Partial is not supported": (*good, [("Partial", None), replicated]),
        "along an axis that it does not have": (*good, [("Shard", 5), replicated]),
        "its mesh and its placements do not fit": (*good, [("Shard", 0)]),
        "a rank outside of its mesh": (torch.ones(2, 3), (4, 3), (2, 1), (7, 0), [("Shard", 0), replicated]),
        "its part is [2, 3], but by its mesh it should be [3, 3]":
            (torch.ones(2, 3), (6, 3), (2, 1), (0, 0), [("Shard", 0), replicated]),
    }
    save(scratch, "whole.pt", {"w": torch.ones(4, 3), "v": torch.ones(2)})
    for reason, arguments in cases.items():
        save(scratch, "model_rank0.pt", {"w": old_dtensor(*arguments), "v": torch.ones(2)})
        result, rows = compare(msprobe, scratch, "model_rank0.pt", "whole.pt")
        harness.check_equal(reason, (result.returncode, rows["v"]["Status"]), (2, "equal"))
        harness.check(reason in rows["w"]["Note"], (reason, rows["w"]["Note"]))
        result = harness.run(msprobe, ["inspect", "model_rank0.pt"], scratch)
        harness.check("Traceback" not in result.stderr and result.returncode in (0, 2), result.stderr)


def hostile_parts_are_refused(msprobe, scratch):
    """Descriptions that are long, go round in circles or speak of sizes that no memory holds."""
    import torch

    def spec(tensor):
        return tensor.parts[1][3][1]["_spec"]

    def fresh(size=(4, 3), mesh=(2, 1), here=(0, 0)):
        return old_dtensor(torch.ones(2, 3), size, mesh, here, [("Shard", 0), ("Replicate", None)])

    circle = fresh()
    spec(circle).__dict__["mesh"] = spec(circle)
    long = fresh()
    spec(long).__dict__.update({f"member{i}": i for i in range(5000)})
    deep = fresh()
    spec(deep).__dict__["placements"] = tuple(spec(deep).placements) * 3000
    huge = fresh(size=(2**62, 2**62))
    far = fresh(here=(2**40, 0))
    negative = fresh(size=(-4, 3))
    empty = fresh(mesh=(0, 1))
    for name, tensor in dict(circle=circle, long=long, deep=deep, huge=huge, far=far, negative=negative,
                             empty=empty).items():
        shared = {"a": tensor, "b": torch.ones(2), **{f"c{i}": tensor for i in range(200)}}
        save(scratch, "model_rank0.pt", shared)
        result, rows = compare(msprobe, scratch, "model_rank0.pt", "model_rank0.pt")
        harness.check_equal(f"{name}: {result.stderr}", result.returncode, 2)
        harness.check_equal(name, rows["b"]["Status"], "equal")
        harness.check_equal(name, {rows[key]["Status"] for key in rows if key != "b"}, {"not comparable"})
        harness.check(rows["a"]["Note"] != "", name)
        inspected = harness.run(msprobe, ["inspect", "model_rank0.pt"], scratch)
        harness.check(inspected.returncode in (0, 2), inspected.stderr)


harness.main_of_script("torch")
