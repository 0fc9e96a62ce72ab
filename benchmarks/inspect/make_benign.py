#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what `inspect --fail-on unknown` must let pass: single files and whole repositories as ordinary libraries write them.

usage: make_benign.py FOLDER [NAME...]    (only the recipes whose names begin so)

Writes FOLDER/benign/NAME/FILE and FOLDER/repos/NAME/..., all of tiny models. A recipe whose library is missing is named.
"""

import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Callable, Dict, List

import benign_repositories
import benign_texts

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")


def arrays(folder: Path) -> None:
    import numpy

    def save(name: str, array) -> None:
        (folder / name).mkdir(parents=True)
        numpy.save(folder / name / "x.npy", array)

    for dtype in ("f2", "f4", "f8", "i1", "i8", "u2", "c8", "?", "U7", "S3", "M8[s]"):
        save("npy_" + dtype.replace("?", "bool").replace("[s]", ""), numpy.zeros((2, 3), dtype))
    save("npy_fortran", numpy.asfortranarray(numpy.ones((3, 4), "f4")))
    save("npy_scalar", numpy.float32(1))
    save("npy_empty", numpy.zeros((0, 4)))
    save("npy_record", numpy.zeros(3, [("label", "i4"), ("score", "f4", (2,))]))
    for name, write in (("npz", numpy.savez), ("npz_packed", numpy.savez_compressed)):
        (folder / name).mkdir()
        write(folder / name / "x.npz", a=numpy.arange(4), **{"layers.0.weight": numpy.ones((2, 2))})
    (folder / "npz_one").mkdir()
    numpy.savez(folder / "npz_one/fid_stats.npz", mu=numpy.zeros(4), sigma=numpy.eye(4))


def checkpoints(folder: Path) -> None:
    import argparse
    import collections

    import torch

    def save(name: str, thing, path: str = "pytorch_model.bin", **options) -> None:
        (folder / name).mkdir(parents=True)
        torch.save(thing, folder / name / path, **options)

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    for optimizer in (torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), torch.optim.Adam(net.parameters()), torch.optim.AdamW(net.parameters())):
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        save("torch_optimizer_" + type(optimizer).__name__, optimizer.state_dict(), "optimizer.pt")
    save("torch_scheduler", torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10).state_dict(), "scheduler.pt")
    save("torch_lambda_scheduler", torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1).state_dict(), "scheduler.pt")
    save("torch_state_dict", net.state_dict())
    save("torch_legacy", net.state_dict(), "model.pth", _use_new_zipfile_serialization=False)
    save("torch_legacy_half", net.half().state_dict(), "model.pt", _use_new_zipfile_serialization=False)
    net.float()
    for dtype in ("float16", "bfloat16", "float64", "int8", "uint8", "bool", "complex64", "float8_e4m3fn", "int32", "int64"):
        save("torch_" + dtype, {"w": torch.zeros(2, 2).to(getattr(torch, dtype))}, "w.pt")
    save("torch_tensor", torch.arange(6.0), "embedding.pt")
    save("torch_parameter", torch.nn.Parameter(torch.ones(2)), "prompt.pt")
    save("torch_view", torch.arange(12.0).view(3, 4).t()[1:], "view.pt")
    save("torch_tied", {"a": net[0].weight, "b": net[0].weight}, "tied.pt")
    save("torch_empty", {}, "empty.pt")
    save("torch_sparse", torch.eye(3).to_sparse(), "sparse.pt")
    save("torch_list", [torch.ones(1), [torch.zeros(2)], (1, "a", None, True, 1e-3)], "list.pt")
    save("torch_size", {"shape": net[0].weight.shape, "dtype": torch.float32, "device": torch.device("cpu")}, "facts.pt")
    save("torch_rng", torch.get_rng_state(), "rng.pt")
    save("torch_args", {"model": net.state_dict(), "args": argparse.Namespace(lr=0.1, layers=[1, 2], name="x"), "epoch": 3}, "checkpoint.pth")
    save("torch_nested", {"epoch": 1, "best": 0.5, "ema": collections.OrderedDict(net.state_dict()), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
    save("torch_defaultdict", {"log": collections.defaultdict(list, {"loss": [1.0, 2.0]})}, "log.pt")
    save("torch_set", {"seen": {1, 2}, "names": frozenset(["a"])}, "set.pt")
    save("torch_protocol_4", net.state_dict(), "model.pt", pickle_protocol=4)
    save("torch_textual_inversion", {"<cat-toy>": torch.zeros(8)}, "learned_embeds.bin")
    save("torch_numpy_scalars", {"step": 3, "loss": net(torch.ones(2, 3)).sum().item(), "w": torch.ones(1)}, "last.ckpt")


def tensors(folder: Path) -> None:
    import numpy
    import safetensors.numpy
    import safetensors.torch
    import torch

    def save(name: str, content, metadata=None, path: str = "model.safetensors") -> None:
        (folder / name).mkdir(parents=True)
        safetensors.torch.save_file(content, folder / name / path, metadata)

    for dtype in ("float32", "float16", "bfloat16", "int8", "int64", "bool", "float8_e4m3fn", "uint8", "float64"):
        save("safetensors_" + dtype, {"w": torch.zeros(3, 2).to(getattr(torch, dtype))})
    save("safetensors_metadata", {"w": torch.ones(2)}, {"format": "pt", "epoch": "3"})
    save("safetensors_training", {"lora_unet_down.lora_up.weight": torch.ones(2, 1)},
         {"ss_network_module": "networks.lora", "ss_tag_frequency": '{"1_cat": {"cat": 3}}', "ss_optimizer": "bitsandbytes.optim.adamw.AdamW8bit", "modelspec.title": "cat"}, "cat.safetensors")
    save("safetensors_scalar", {"a": torch.tensor(1.0), "b": torch.zeros(0)})
    save("safetensors_many", {f"model.layers.{i}.mlp.weight": torch.zeros(2) for i in range(50)}, {"format": "pt"})
    save("safetensors_shard", {"lm_head.weight": torch.zeros(4, 2)}, {"format": "pt"}, "model-00001-of-00002.safetensors")
    (folder / "safetensors_numpy").mkdir()
    safetensors.numpy.save_file({"a": numpy.ones((2, 2), "f4")}, folder / "safetensors_numpy/model.safetensors")


def networks(folder: Path) -> None:
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def save(name: str, nodes, weights=(), opset: int = 17, **options) -> None:
        (folder / name).mkdir(parents=True)
        value = lambda label: helper.make_tensor_value_info(label, TensorProto.FLOAT, [None, 4])  # noqa: E731 - used once
        graph = helper.make_graph(nodes, "main_graph", [value("x")], [value("y")], [numpy_helper.from_array(array, label) for label, array in weights])
        model = helper.make_model(graph, producer_name="pytorch", producer_version="2.3.0", opset_imports=[helper.make_opsetid("", opset)])
        onnx.save(model, folder / name / "model.onnx", **options)

    weight = numpy.ones((4, 4), "f4")
    for op in ("Relu", "Sigmoid", "Softmax", "Tanh", "Identity"):
        save("onnx_" + op.lower(), [helper.make_node(op, ["x"], ["y"])])
    save("onnx_matmul", [helper.make_node("MatMul", ["x", "w"], ["y"])], [("w", weight)])
    save("onnx_gemm", [helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1), helper.make_node("Relu", ["h"], ["y"], name="/layers.0/act/Relu")], [("w", weight), ("b", weight[0])])
    save("onnx_external", [helper.make_node("MatMul", ["x", "w"], ["y"])], [("w", numpy.ones((4, 4), "f4"))], save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    save("onnx_half", [helper.make_node("Cast", ["x"], ["h"], to=10), helper.make_node("Cast", ["h"], ["y"], to=1)])
    save("onnx_attributes", [helper.make_node("Clip", ["x", "l"], ["y"])], [("l", numpy.array(0, "f4"))])
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "then", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [None, 4])])
    save("onnx_if", [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], [("c", numpy.array(True))])


def gguf_files(folder: Path) -> None:
    import gguf
    import numpy

    template = "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor %}"
    for name, arch in (("llama", "llama"), ("qwen2", "qwen2"), ("bert", "bert"), ("gemma", "gemma"), ("t5", "t5"), ("plain", "gpt2")):
        for dtype in ("f4", "f2"):
            path = folder / f"gguf_{name}_{dtype}"
            path.mkdir(parents=True)
            writer = gguf.GGUFWriter(path / "model.gguf", arch)
            writer.add_name("Tiny " + name)
            writer.add_description("A test. See https://example.com for details.")
            writer.add_context_length(128)
            writer.add_block_count(1)
            writer.add_tokenizer_model("gpt2")
            writer.add_token_list(["<s>", "</s>", "a", "\u0120b", "{{", "os.system", "__init__", "import"])
            writer.add_token_merges(["a \u0120b"])
            writer.add_float32("general.rope", 1.5)
            if name != "plain":
                writer.add_chat_template(template)
            writer.add_tensor("token_embd.weight", numpy.zeros((8, 4), dtype))
            writer.add_tensor("blk.0.attn_q.weight", numpy.zeros((4, 4), "f4"))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()


def pictures(folder: Path) -> None:
    from PIL import Image

    for ending in ("png", "jpg", "gif"):
        (folder / ("picture_" + ending)).mkdir(parents=True)
        Image.new("RGB", (8, 6), (200, 30, 30)).save(folder / ("picture_" + ending) / ("logo." + ending))


def events(folder: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard/runs")) as writer:
        writer.add_scalar("loss", 0.5, 1)


RECIPES: Dict[str, Callable[[Path], None]] = {
    "arrays": arrays, "checkpoints": checkpoints, "tensors": tensors, "networks": networks, "gguf_files": gguf_files,
    "pictures": pictures, "events": events,
    "texts": benign_texts.texts, "configurations": benign_texts.configurations,
}


def main() -> None:
    corpus, wanted = Path(sys.argv[1]), sys.argv[2:]

    def chosen(name: str) -> bool:
        return not wanted or name.startswith(tuple(wanted))

    for name, recipe in RECIPES.items():
        if chosen(name):
            part = corpus / "benign.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            try:
                recipe(part)
            except Exception as error:
                print(f"left out from here: {name}: {error}")
                traceback.print_exc()
            for made in part.iterdir():
                target = corpus / "benign" / made.name
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                made.rename(target)
            part.rmdir()
    made = []
    for name, make in benign_repositories.repositories().items():
        if chosen(name):
            target = corpus / "repos" / name
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            try:
                make(target)
                made.append(name)
            except Exception as error:
                shutil.rmtree(target)
                print(f"left out: {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    # Each kind of file in the repositories is also a single case.
    kinds: Dict[str, List[Path]] = {}
    for path in sorted((corpus / "repos").rglob("*")) if not wanted or made else []:
        if path.is_file() and path.suffix in (".json", ".md", ".model", ".txt", ".jinja", ".yaml", ".bin", ".pt"):
            kinds.setdefault(path.name, []).append(path)
    for file, paths in kinds.items():
        # JSON has the most names, and shall be no more than a quarter of all files.
        most = 5 if file == "config.json" else 1 if file.endswith(".json") else 3
        for path in paths[:: max(1, len(paths) // most)][:most]:
            target = corpus / "benign" / ("from_" + "_".join(path.relative_to(corpus / "repos").parts).replace(".", "_")) / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for kind in ("benign", "repos"):
        print(f"{kind}: {sum(1 for _ in (corpus / kind).glob('*'))}")
    print(json.dumps({"files": sum(path.is_file() for path in (corpus / "benign").rglob("*"))}))


if __name__ == "__main__":
    main()
