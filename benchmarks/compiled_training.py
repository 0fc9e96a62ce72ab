#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small models of many families with torch.compile(), and reports what changes if they are recorded at level L0.

    benchmarks/compiled_training.py [--only NAME,... | --all] [--backend NAME] [--jobs N] [--json FILE] [--list]

Run it with a Python that has torch, transformers and timm, and with msprobe in PYTHONPATH (build/python). The models
are those of training_families.py. Each is trained for three steps in three ways, each in a separate process:
compiled, compiled and recorded, and recorded without the compiler. The first and the last step are recorded. A model
is compiled with fullgraph=True if PyTorch can do that without the recorder.

The columns:

    bits          losses and gradients of the compiled training that have other bits when it is recorded, of how many
    entries       of one step, recorded without the compiler. The next columns compare with these; first/last step:
    missing       entries that the recording of the compiled training lacks
    additional    entries that only it has
    values        inputs, outputs and gradients that only one recording has, or with another type or shape
    parents       entries that are inside of another module than without the compiler
    errors        lines of dump_error_info.log
    norm          the largest relative difference of a Norm between the two recordings. Left out are Norms that are
                  rounding next to the largest one, and gradients that are not of all uses (gradient_of)
    graphs        that the compiled training has without the recorder, and its graph breaks
    added         graphs, and graph breaks, that the recorder adds in each step
    s             seconds that all trainings took

Gradients of inputs are not compared: compiled code has none. Neither are numbers among the arguments.

Exit status 1 if a training fails because it is recorded, a bit of a float32 training changes, the recordings differ in
their entries, values or parents, recording reports an error, or the recorder adds a graph or a graph break.
"""

import argparse
import concurrent.futures
import hashlib
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time

import torch
from torch._dynamo.utils import counters
from torch.utils._pytree import tree_leaves, tree_map_only

import training_families

STEPS = 3
RECORDED = (0, STEPS - 1)
SECONDS = 600  # for one training
DIFFERENCES = ("missing", "additional", "values", "parents", "errors")  # of two recordings
# The families of a run without --only: in float32, and in bfloat16.
FLOAT = """
perceptron many_paths structures in_place checkpoint autograd_function
nn.MultiheadAttention nn.TransformerEncoder nn.Conv2d
GPT2LMHeadModel LlamaForCausalLM Qwen3MoeForCausalLM MambaForCausalLM BertForMaskedLM T5ForConditionalGeneration
ViTForImageClassification WhisperForConditionalGeneration timm.test_resnet timm.test_convnext
""".split()
HALF = """
shared_layer nn.TransformerDecoder GemmaForCausalLM Qwen3ForCausalLM MixtralForCausalLM DebertaV2ForMaskedLM
BartForConditionalGeneration CLIPModel timm.test_vit
""".split()

# ---------------------------------------------------------------------- one training, in a separate process


def in_half(value):
    return value.bfloat16() if value.is_floating_point() else value


def loss_of(output):
    """The loss that a model returns, or the mean square of all it returns."""
    if isinstance(output, dict) and output.get("loss") is not None:
        return output["loss"]
    found = tree_leaves(dict(output) if isinstance(output, dict) else output)
    return sum(one.float().square().mean() for one in found if isinstance(one, torch.Tensor) and one.requires_grad)


def digest(tensor):
    values = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    return hashlib.sha1(values.contiguous().view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def train(name, half, way, backend, whole, folder):
    """Writes what is known of the training to a file. It ends early at an exception, which is part of it."""
    told = os.open(os.path.join(folder, "told"), os.O_WRONLY | os.O_CREAT)
    os.dup2(told, 1)
    os.dup2(told, 2)
    torch.set_num_threads(1)
    training_families.use_torchvision()
    family = next(one for one in training_families.FAMILIES if one.name == name)
    family.prepare()
    torch.manual_seed(0)
    model = family.build().train()
    if half:
        model.bfloat16()
    debugger = None
    if way != "plain":
        from msprobe.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger(dump_path=folder, task="statistics", level="L0")
    call = model if way == "eager" else torch.compile(model, backend=backend, fullgraph=whole)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    result = {"parameters": sum(one.numel() for one in model.parameters()), "digests": [], "graphs": [], "breaks": [],
              "failure": None}
    try:
        for step in range(STEPS):
            inputs = family.inputs(training_families.Draw(step), model)
            if half:
                inputs = tree_map_only(torch.Tensor, in_half, inputs)
            torch.manual_seed(step)
            records = debugger is not None and step in RECORDED
            if records:
                debugger.start(model)
            loss = loss_of(call(**inputs) if isinstance(inputs, dict) else call(*inputs))
            loss.backward()
            result["digests"].append({"loss": digest(loss), **{
                path: digest(one.grad) for path, one in model.named_parameters() if one.grad is not None}})
            optimizer.step()
            if records:
                debugger.stop()
                debugger.step()
            optimizer.zero_grad()
            result["graphs"].append(counters["stats"]["unique_graphs"])
            result["breaks"].append(sum(counters["graph_break"].values()))
    except Exception as error:
        result["failure"] = f"{type(error).__name__}: {error}"
    result["reasons"] = dict(counters["graph_break"])
    pathlib.Path(folder, "result.json").write_text(json.dumps(result))


# ---------------------------------------------------------------------- comparing two recordings


def leaves(value, path=""):
    """(path, value) of all tensors and other values of an entry."""
    if isinstance(value, dict) and "type" not in value:
        value = list(value.items())
    elif isinstance(value, (list, tuple)):
        value = list(enumerate(value))
    else:
        yield path, value
        return
    for key, part in value:
        yield from leaves(part, f"{path}.{key}")


def read(folder, step):
    """The entries of a recorded step, the entry that each is inside of, and the errors."""
    base = next(pathlib.Path(folder, f"step{step}").iterdir())
    errors = base / "dump_error_info.log"
    entries = json.loads((base / "dump.json").read_text())["data"]
    return {"entries": {name: dict(leaves(entry)) for name, entry in entries.items()},
            "parents": json.loads((base / "construct.json").read_text()),
            "errors": errors.read_text().splitlines() if errors.exists() else []}


def is_partial(value):
    """Whether it is a gradient that is not of all uses, which says so."""
    return isinstance(value, dict) and "gradient_of" in value


def size(value):
    norm = value.get("Norm") if isinstance(value, dict) else None
    return norm if isinstance(norm, float) else 0.0


def shape(value):
    """The members in which two recordings must agree."""
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if key not in ("Max", "Min", "Mean", "Norm", "gradient_of")}


def compare(compiled, eager, half):
    """How the recording of the compiled training differs from that without the compiler."""
    told = {"count": len(eager["entries"]),
            "missing": sorted(set(eager["entries"]) - set(compiled["entries"])),
            "additional": sorted(set(compiled["entries"]) - set(eager["entries"])),
            "values": [], "inputs": 0, "partial": 0, "calls": [], "norm": 0.0, "where": "",
            "parents": [name for name, parent in eager["parents"].items() if compiled["parents"].get(name) != parent],
            "errors": compiled["errors"]}
    largest = {}
    for name, entry in eager["entries"].items():
        kind = "forward" if ".forward." in name else "backward"
        norms = [norm for norm in map(size, entry.values()) if norm < float("inf")]
        largest[kind] = max([largest.get(kind, 0.0), *norms])
    for name in eager["entries"].keys() & compiled["entries"].keys():
        negligible = largest["forward" if ".forward." in name else "backward"] * (1e-3 if half else 1e-6)
        ours, theirs = compiled["entries"][name], eager["entries"][name]
        for path in sorted(ours.keys() | theirs.keys()):
            one, other = ours.get(path, "absent"), theirs.get(path, "absent")
            if one == "absent" and ".backward." in name and path.startswith(".output"):
                told["inputs"] += 1
            elif ".input_" in path and None in (one, other):
                told["calls"].append(name + path)
            elif shape(one) != shape(other):
                told["values"].append(f"{name}{path}: {json.dumps(shape(one))}, "
                                      f"without the compiler {json.dumps(shape(other))}")
            elif is_partial(one) or is_partial(other):
                told["partial"] += 1
            elif max(size(one), size(other)) > negligible:
                difference = abs(size(one) - size(other)) / max(size(one), size(other))
                if difference > told["norm"]:
                    told.update(norm=difference, where=name + path)
    return told


# ---------------------------------------------------------------------- one family


def run(processes, *words, folder):
    """A training in a separate process."""
    os.makedirs(folder)
    process = processes.Process(target=train, args=(*words, folder))
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
        return {"failure": f"still running after {SECONDS} s"}
    told = pathlib.Path(folder, "told").read_text(errors="replace")
    if process.exitcode != 0:
        return {"failure": f"status {process.exitcode}: {told[-3000:]}"}
    result = json.loads(pathlib.Path(folder, "result.json").read_text())
    return {**result, "warnings": [line for line in told.splitlines() if line.startswith("msprobe: warning")]}


def examine(processes, name, half, backend, scratch):
    began = time.monotonic()

    def trained(way, whole, folder):
        return run(processes, name, half, way, backend, whole, folder=os.path.join(scratch, name, folder))

    told = {"name": name, "type": "bfloat16" if half else "float32", "whole": True,
            "plain": trained("plain", True, "whole")}
    if told["plain"]["failure"]:
        told.update(whole=False, not_whole=told["plain"]["failure"], plain=trained("plain", False, "parts"))
    if not told["plain"]["failure"]:
        for way in ("recorded", "eager"):
            told[way] = trained(way, told["whole"], way)
        if not told["recorded"]["failure"] and not told["eager"]["failure"]:
            told["steps"] = [compare(*(read(os.path.join(scratch, name, way), step) for way in ("recorded", "eager")),
                                     half)
                             for step in range(len(RECORDED))]
            told["bits"] = [(step, path) for step, digests in enumerate(told["plain"]["digests"])
                            for path, one in digests.items() if told["recorded"]["digests"][step].get(path) != one]
    told["seconds"] = time.monotonic() - began
    return told


def added(told, key):
    """How many more of them each step of the recorded training has than the same step without the recorder."""
    counts = [[after - before for before, after in zip([0, *told[way][key]], told[way][key])]
              for way in ("recorded", "plain")]
    return [one - other for one, other in zip(*counts)]


def is_good(told):
    if told["plain"]["failure"]:
        return True  # not ours
    if "steps" not in told:
        return False
    return (not any(step[key] for step in told["steps"] for key in DIFFERENCES)
            and not (told["bits"] and told["type"] == "float32")
            and not any(added(told, "graphs") + added(told, "breaks")))


def row(told):
    head = [told["name"], told["type"]]
    if told["plain"]["failure"]:
        return [*head, "cannot be compiled: " + told["plain"]["failure"].splitlines()[0]]
    for way in ("recorded", "eager"):
        if told[way]["failure"]:
            return [*head, f"FAILED, {way}: " + told[way]["failure"].strip().splitlines()[0]]
    first, last = told["steps"]
    graphs = told["plain"]["graphs"][-1]
    broken = told["plain"]["breaks"][-1]
    return [*head, f"{told['plain']['parameters']:,}",
            f"{len(told['bits'])}/{sum(map(len, told['plain']['digests']))}",
            str(first["count"]), *("/".join(str(len(step[key])) for step in told["steps"]) for key in DIFFERENCES),
            f"{first['norm']:.1e}", f"{last['norm']:.1e}",
            f"{graphs}{'' if told['whole'] else f', {broken} breaks'}",
            " ".join(f"{one:+d}" for one in added(told, "graphs")) if any(added(told, "graphs")) else "none",
            " ".join(f"{one:+d}" for one in added(told, "breaks")) if any(added(told, "breaks")) else "none",
            f"{told['seconds']:.0f}"]


COLUMNS = ["family", "type", "parameters", "bits", "entries", "missing", "additional", "values", "parents", "errors",
           "norm, first", "norm, last", "graphs", "added", "breaks added", "s"]


def details(told):
    """Lines that say what is not as it should be, and where Norms differ much."""
    if told["plain"]["failure"]:
        return
    for way in ("recorded", "eager"):
        if told[way]["failure"]:
            yield f"{way}: {told[way]['failure'][:1500]}"
        yield from told[way].get("warnings", [])
    for number, step in enumerate(told.get("steps", [])):
        for key in DIFFERENCES:
            yield from (f"step {RECORDED[number]}, {key}: {one}" for one in step[key][:4])
        if step["norm"] > (0.05 if told["type"] == "bfloat16" else 1e-4):
            yield f"step {RECORDED[number]}: norm differs by {step['norm']:.1e} at {step['where']}"
    if told.get("bits"):
        yield f"bits first differ at step {told['bits'][0][0]}: {', '.join(path for _, path in told['bits'][:3])}"
    if "steps" in told and any(added(told, "breaks")):
        yield f"graph breaks: {list(set(told['recorded']['reasons']) - set(told['plain']['reasons']))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="families, separated by commas; NAME:bfloat16 for that type")
    parser.add_argument("--all", action="store_true", help="all families of training_families.py, in float32")
    parser.add_argument("--backend", default="inductor", help="of torch.compile(); aot_eager is much faster")
    parser.add_argument("--jobs", type=int, default=2, help="families at a time")
    parser.add_argument("--json", help="write everything known there")
    parser.add_argument("--list", action="store_true", help="print the families and stop")
    options = parser.parse_args()
    if options.all:
        wanted = [(family.name, False) for family in training_families.FAMILIES]
    elif options.only:
        wanted = [(word.partition(":")[0], word.endswith(":bfloat16")) for word in options.only.split(",")]
    else:
        wanted = [(name, False) for name in FLOAT] + [(name, True) for name in HALF]
    if options.list:
        print(*(name + (":bfloat16" if half else "") for name, half in wanted), sep="\n")
        return 0
    results = []
    print(*COLUMNS, sep=" | ")
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, value in (("TORCHINDUCTOR_CACHE_DIR", os.path.join(scratch, "cache")),
                            ("TORCHINDUCTOR_COMPILE_THREADS", "1"), ("OMP_NUM_THREADS", "1"),
                            # Else each process tries the instructions, and a busy machine may be too slow for that.
                            ("TORCHINDUCTOR_VEC_ISA_OK", "1")):
            os.environ.setdefault(name, value)
        processes = multiprocessing.get_context("forkserver")
        processes.set_forkserver_preload(["__main__", "torch._inductor.compile_fx"])
        for told in pool.map(lambda one: examine(processes, *one, options.backend, scratch), wanted):
            results.append(told)
            print(*row(told), sep=" | ", flush=True)
            for line in details(told):
                print("    " + line, flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    bad = [told["name"] for told in results if not is_good(told)]
    print(f"{len(results)} families, {len(bad)} not as they should be{': ' if bad else ''}{', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
