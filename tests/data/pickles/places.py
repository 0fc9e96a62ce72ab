# SPDX-License-Identifier: Apache-2.0
"""Where a file or a folder may hide what runs when it is loaded: in members of archives, in archives within them, in
programs, in texts that configure a loader. All is put together here; nothing of it does harm.
"""

import gzip
import json
import lzma
import pathlib
import struct
import zipfile
import zlib

import recipe
from recipe import Made, Name

GETPID = b"cposix\ngetpid\n)R"
# One pickle per protocol and opcode, since a scanner may look for one of them only.
PICKLES = {
    "protocol_0": b"cposix\ngetpid\n(tR.",
    "instance": b"(iposix\ngetpid\n.",
    "protocol_2": b"\x80\x02cposix\ngetpid\n)R.",
    "protocol_4": b"\x80\x04\x8c\x05posix\x8c\x06getpid\x93)R.",
    "behind_another": b"N." + b"cposix\ngetpid\n(tR.",
}
PLAIN = b"\x80\x02}."
NOTHING = ("archive/data.pkl", PLAIN)
DEFLATED = zipfile.ZIP_DEFLATED


def beside(name, data, method=zipfile.ZIP_STORED):
    return recipe.zip_of([NOTHING, (name, data)], method)


def exported(name, data):
    """As torch.export.save() of PyTorch 2.8 and later writes it, but without its mark, which is a separate reason."""
    return recipe.zip_of([("model/models/model.json", b"{}"), ("model/data/weights/weight_0", bytes(8)), (name, data)])


def deep(depth, data, method=zipfile.ZIP_STORED):
    for _ in range(depth):
        data = recipe.zip_of([("archive/data.pkl", PLAIN), ("archive/inner.pt", data)], method)
    return data


def npz(name, data, method=zipfile.ZIP_STORED):
    return recipe.zip_of([("good.npy", recipe.npy(bytes(4), "<f4")), (name, data)], method)


def series(*archives):
    """As torch.distributed.checkpoint writes its files: one archive behind the other."""
    return b"".join(archives)


def wide(archive):
    """The archive with the end records of zip64."""
    size, offset = struct.unpack("<II", archive[-10:-2])
    count = struct.unpack("<H", archive[-12:-10])[0]
    body = archive[:-22]
    record = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, offset)
    return body + record + struct.pack("<IIQI", 0x07064B50, 0, len(body), 1) + archive[-22:]


PLACES = {
    "element": lambda data: beside("archive/data/0", data),
    "element_deflated": lambda data: beside("archive/data/0", data, DEFLATED),
    "package_storage": lambda data: beside("archive/.data/0.storage", data),
    "exported_weights": lambda data: exported("model/data/weights/weights.pt", recipe.torch_zip(data)),
    "exported_constants": lambda data: exported("model/data/constants/constants.pt", recipe.torch_zip(data)),
    "exported_inputs": lambda data: exported("model/data/sample_inputs/model.pt", recipe.torch_zip(data)),
    "exported_bare": lambda data: exported("model/data/weights/weight_1", data),
    "old_exported": lambda data: recipe.zip_of([("version", b"8"), ("serialized_state_dict.pt", recipe.torch_zip(data))]),
    "zip_in_element": lambda data: beside("archive/data/1", recipe.torch_zip(data)),
    "zip_two_deep": lambda data: deep(2, recipe.torch_zip(data)),
    "zip_deflated_three_deep": lambda data: deep(3, recipe.torch_zip_deflated(data), DEFLATED),
    "zip_twenty_deep": lambda data: deep(20, recipe.torch_zip(data)),
    "npz_in_zip": lambda data: beside("archive/inner.npz", npz("bad.npy", recipe.npy(data))),
    "objects_in_element": lambda data: beside("archive/data/0", recipe.npy(data)),
    "objects_in_deflated_element": lambda data: beside("archive/data/0", recipe.npy(data), DEFLATED),
    "objects_deflated": lambda data: npz("bad.npy", recipe.npy(data), DEFLATED),
    "objects_in_member": lambda data: npz("notes", recipe.npy(data), DEFLATED),
    "pickle_named_npy": lambda data: npz("bad.npy", data),
    "pickle_in_npz": lambda data: npz("readme.txt", data),
    "legacy_in_zip": lambda data: beside("archive/old.bin", recipe.legacy(data)),
    "appended_in_member": lambda data: beside("archive/notes.txt", b"notes\n" + recipe.torch_zip(data)),
    "tar_in_zip": lambda data: beside("archive/old.tar", recipe.legacy_tar(data)),
    "gzip_in_zip": lambda data: beside("archive/model.pkl.gz", gzip.compress(data)),
    "xz_in_zip": lambda data: beside("archive/model.joblib", lzma.compress(data)),
    "second_of_series": lambda data: series(recipe.torch_zip(PLAIN), recipe.torch_zip(data)),
    "first_of_series": lambda data: series(recipe.torch_zip(data), recipe.torch_zip(PLAIN), recipe.torch_zip(PLAIN)),
    "wide_series": lambda data: series(wide(recipe.torch_zip(PLAIN)), wide(recipe.torch_zip(data))),
    "hidden_name": lambda data: beside("archive/.hidden", data),
    "no_suffix_deflated": lambda data: beside("archive/weights", data, DEFLATED),
    "safetensors_in_zip": lambda data: beside("archive/model.safetensors", recipe.safetensors_face(b"\x80\x02" + data)),
}


def hidden():
    """(file name, contents): each pickle in each place."""
    for place, packed in PLACES.items():
        for kind, data in PICKLES.items():
            yield f"{place}-{kind}", packed(data)


def programs():
    """(file name, contents): archives whose code runs when they are loaded, as torch.jit, torch.package, torch.export
    and AOTInductor write them."""
    model = ("package/model/model.pkl", recipe.pickled({"w": recipe.tensor("0", 1)}))
    sources = [("package/collections.py", b"import os\n"), ("package/.data/extern_modules", b"torch\n")]
    yield "package.pt", recipe.zip_of([model, *sources])
    yield "package_deflated.pt", recipe.zip_of([model, *sources], DEFLATED)
    yield "package_compiled.pt", recipe.zip_of([model, ("package/m.pyc", b"\xa7\r\r\n" + bytes(12))])
    yield "package_library.pt", recipe.zip_of([model, ("package/lib/m.so", b"\x7fELF" + bytes(60))])
    yield "library_without_name.pt", recipe.zip_of([model, ("package/extra/m", b"\x7fELF" + bytes(60))])
    yield "package_in_zip.pt", beside("archive/extra/inner.zip", recipe.zip_of([model, *sources]))
    yield "package_in_element.pt", beside("archive/data/0", recipe.zip_of([model, *sources]))
    yield "exported.pt2", recipe.zip_of([("m/archive_format", b"pt2"), ("m/models/model.json", b"{}"), ("m/data/weights/w", bytes(4))])
    yield "old_exported.pt2", recipe.zip_of([("version", b"8"), ("serialized_exported_program.json", b"{}")])
    yield "inductor.pt2", recipe.zip_of([("data/aotinductor/model/k.cubin", b"\x7fELF" + bytes(60)), ("archive_format", b"pt2")])
    yield "script.pt", recipe.torchscript(PLAIN)
    yield "script_in_zip.pt", beside("archive/extra/traced.pt", recipe.torchscript(PLAIN))
    yield "main.zip", recipe.zip_of([("__main__.py", b"print(1)\n")])


def safetensors(metadata):
    header = json.dumps({"__metadata__": metadata, "w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(2)


TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"

# Name in a folder, contents, whether it is dangerous; else it is unknown.
TEXTS = [
    ("apply.yaml", "a: !!python/object/apply:posix.getpid []\n", True),
    ("apply_quoted.yaml", '"a": !!python/object/apply:posix.getpid\n- 1\n', True),
    ("new.yml", "!!python/object/new:subprocess.Popen [[ls]]\n", True),
    ("name.yaml", "f: !!python/name:builtins.eval ''\n", True),
    ("module.yaml", "f: !!python/module:posix ''\n", True),
    ("object.yaml", "cfg: !!python/object:mypackage.config.Config\n  a: 1\n", False),
    ("verbatim.yaml", "a: !<tag:yaml.org,2002:python/object/apply:posix.getpid> []\n", True),
    ("escaped.yaml", "a: !!p%79thon/object/apply:posix.getpid []\n", True),
    ("handle.yaml", "%TAG !p! tag:yaml.org,2002:py\n---\na: !p!thon/object/apply:posix.getpid []\n", True),
    ("handle_escaped.yaml", "%TAG !p! tag%3Ayaml.org,2002:py\n---\na: !p!thon/object/apply:posix.getpid []\n", True),
    ("handle_own.yaml", "%TAG !p! tag:example.com,2020:\n---\na: !p!thing 1\n", False),
    ("verbatim_escaped.yaml", "a: !<tag:yaml.org,2002:%70ython/object/apply:posix.getpid> []\n", True),
    ("verbatim_colon.yaml", "a: !<tag%3Ayaml.org,2002:python/name:posix.getpid> ''\n", True),
    ("verbatim_org.yaml", "a: !<tag:yaml.%6Frg,2002:python/object/apply:posix.getpid> []\n", True),
    ("hydra_hex.yaml", '"\\x5ftarget_": posix.getpid\n', True),
    ("hydra_long.yaml", '"\\U0000005ftarget_": posix.getpid\n', True),
    ("hydra_anchor.yaml", "x: &k _target_\na:\n  *k : posix.getpid\n", True),
    ("hydra_resolver.yaml", 'a: "${oc.create:${oc.decode:\'{${t}et_: posix.getpid}\'}}"\n', False),
    ("hydra_value.yaml", '_target_: "o\\x73.getpid"\n', True),
    ("hydra_tagged.yaml", "_target_: !!str posix.getpid\n", True),
    ("attention_dict.json", '{"attn_implementation": {"": "someone/kernels"}}', False),
    ("hydra_continued.yaml", '"_tar\\\n  get_": posix.getpid\n', False),
    ("experts.json", '{"experts_implementation": "someone/kernels"}', False),
    ("peft.json", '{"auto_mapping": {"parent_library": "evil"}}', False),
    ("model_index.json", '{"unet": ["evilmod", "X"]}', False),
    ("modules.json", '[{"idx": 0, "name": "0", "path": "", "type": "someone/code--evil.X"}]', False),
    ("dense.json", '{"activation_function": "evilmod.X"}', False),
    ("cross.json", '{"sbert_ce_default_activation_function": "posix.getpid"}', True),
    ("adapter_config.json", '{"auto_mapping": {"base_model_class": "X", "parent_library": "evil.module"}}', False),
    ("pipelines.json", '{"custom_pipelines": {"x": {"impl": "someone/code--pipeline.X"}}}', False),
    ("evil.pth", "import os; os.getpid()\n", False),
    ("Makefile", "all:\n\ttrue\n", False),
    ("pyproject.toml", '[build-system]\nbuild-backend = "evil"\n', False),
    ("chat_joined.jinja", "{{ lipsum['__glob'+'als__'].os.getpid() }}", False),
    ("chat_attr.jinja", "{{ cycler|attr('__in'~'it__') }}", False),
    ("chat_escape.jinja", "{{ x['\\x5f\\x5finit'] }}", False),
    ("chat_words.jinja", "{{ x['@@globals@@'|replace('@','_')] }}", False),
    ("no_suffix", "a: !!python/object/apply:posix.getpid []\n", True),
    ("hydra.yaml", "model:\n  _target_: posix.getpid\n", True),
    ("hydra_eval.yaml", "_target_: builtins.exec\n_args_: ['1']\n", True),
    ("hydra_own.yaml", "model:\n  _target_: mypackage.models.Net\n", False),
    ("hydra_folded.yaml", "_target_: >-\n  posix.getpid\n", True),
    ("hydra.json", '{"model": {"_target_" :\n "posix.getpid"}}', True),
    ("hydra_escaped.json", '{"model": {"\\u005ftarget_": "posix.getpid"}}', True),
    ("hydra.toml", '_target_ = "posix.getpid"\n', True),
    ("config.json", '{"auto_map": {"AutoModel": "modeling_own.Model"}}', False),
    ("config_elsewhere.json", '{"auto_map": {"AutoModel": "someone/code--modeling.Model"}}', False),
    ("config_escaped.json", '{"auto_\\u006dap": {"AutoModel": "modeling_own.Model"}}', False),
    ("attention.json", '{"_attn_implementation_internal": "someone/kernels"}', False),
    ("attention_of_hub.json", '{"attn_implementation": "someone/kernels:flash"}', False),
    ("tokenizer_config.json", json.dumps({"chat_template": "{{ x.__class__.__mro__ }}"}), True),
    ("chat_template.jinja", "{{ cycler['__init__']['__globals__'].os.getpid() }}", True),
    ("chat_filter.jinja", "{% set a = x|attr('__subclasses__') %}", True),
    ("lambda.json", json.dumps({"class_name": "Lambda", "config": {"function": "4wEAAAA="}}), False),
    ("lambda_3.json", json.dumps({"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}), True),
    ("keras_module.json", json.dumps({"module": "posix", "class_name": "function", "config": "getpid"}), True),
    ("keras_own.json", json.dumps({"module": "mypackage.layers", "class_name": "Own", "config": {}}), False),
    ("modeling_own.py", "import torch\n", False),
    ("setup.sh", "true\n", False),
    ("run", "#!/bin/sh\ntrue\n", False),
    ("man.1", ".TH TQDM 1\n.SH NAME\ncode\n", False),
    ("kernel.json", '{"argv": ["python", "-c", "1"], "display_name": "x"}', False),
    ("requirements.txt", "evil-package\n", False),
    ("class.pkl", "ccollections\nOrderedDict\n(dS'append'\ncposix\ngetpid\nsb.\n", True),
    ("card.md", "---\nx: !!python/object/apply:posix.getpid []\n---\n# A model\n", True),
    ("prompt.txt", "${open('x')}\n", False),
    ("carriage.yaml", "# a\r!!python/object:own.Config {}\n", False),
    ("interpolated.yaml", "a: ${b}\n", False),
    ("old.txt", "cposix\ngetpid\n(tR.", True),
    ("model.json", "(iposix\ngetpid\n.", True),
]

# Neither tensors nor pickles nor text.
OTHERS = {
    "pytorch_model.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4900000000\n",
    "model.h5": b"\x89HDF\r\n\x1a\n" + bytes(60),
    "model.onnx": b"\x08\x08\x12\x07pytorch" + bytes(range(200, 256)),
    "saved_model.pb": b"\x08\x01\x12\x04\x0a\x02\x12\x00" + b"\xff\xfe",
    "weights.bin": bytes(range(256)),
    "model.tar.gz": gzip.compress(b"a"),
    "libcustom.so": b"\x7fELF" + bytes(60),
    "module.pyc": b"\xa7\r\r\n" + bytes(12),
    "kernel": b"\x7fELF" + bytes(60),
    "tool.exe": b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0",
    "flax_model.msgpack": b"\x81\xa6params\x81\xa1w\xc4\x02\xff\xfe",
    "module.wasm": b"\0asm" + bytes(4),
    "cut.png": b"\x89PNG\r\n\x1a\n" + bytes(range(128, 160)),
    "padded.gguf": b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(40),
    "commented.npz": recipe.zip_of([("a.npy", recipe.npy(bytes(4), "<f4"))])[:-2] + b"\x01\x00!",
    "brace.npy": recipe.npy(b"text", "<f4").replace(b"'<f4'", b"'|O'#}"),
}


def piece(text, score):
    inner = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", score)
    return b"\x0a" + bytes([len(inner)]) + inner


def png():
    """One black pixel."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(2))) + chunk(b"IEND", b"")


# Files as in the folder of a model, a checkpoint or a dump.
HARMLESS = {
    "README.md": b"# A model\n\ncos\nsystem of equations, `__globals__`, {{ braces }}\n",
    "config.json": b'{"architectures": ["LlamaForCausalLM"], "attn_implementation": "sdpa", "hidden_size": 64}',
    "generation_config.json": b'{"eos_token_id": 2}',
    "tokenizer_config.json": json.dumps({"chat_template": TEMPLATE}).encode(),
    "vocab.json": json.dumps({"\u0120the": 1, "caf\u00e9": 2, "\x00": 3}).encode(),
    "merges.txt": "#version: 0.2\nc a\n\u0120 t\n".encode(),
    "vocab.txt": b"cat\nsat\nmat\n[PAD]\n",
    "tokens.json": b'{"_target_": 1, "auto_map": 2, "!!": 3, "&": 4}',
    "comment.yaml": b"# !!python/object/apply:posix.getpid and _target_: os.system\na: 1\n",
    "model_index.json": b'{"_class_name": "X", "unet": ["diffusers", "UNet2DConditionModel"]}',
    "texts.npy": recipe.npy(b"a\0\0\0b\0\0\0", "<U2"),
    "regex.json": b'{"pattern": "\\\\x41\\\\u0042"}',
    "top_level.txt": b"isympy\nsympy\n",
    "a_list.csv": b"NPU Name,Bench Name\nModule.a.forward.0,Module.a.forward.0\n",
    "chat_template.jinja": TEMPLATE.encode(),
    "hparams.yaml": b"betas: !!python/tuple [0.9, 0.99]\nlr: 0.1\n",
    "ordered.yaml": b"a: !!python/object/apply:collections.OrderedDict [[]]\n",
    ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
    "picture.png": png(),
    "tokenizer.model": piece(b"<unk>", 0.0) + piece("\u2581the".encode(), -3.5) + b"\x12\x02\x20\x01",
    "model.safetensors": safetensors({"format": "pt"}),
    "weights.npy": recipe.npy(struct.pack("<f", 1.5), "<f4"),
    "weights.npz": npz("b.npy", recipe.npy(bytes(8), "<f8"), DEFLATED),
    "pytorch_model.bin": recipe.saved({"w": recipe.tensor("0", 2, 3)}, True, 2),
    "legacy.pth": recipe.saved({"w": recipe.tensor("0", 2, 3)}, False, 2),
    "__0_0.distcp": series(*(recipe.saved(recipe.tensor("0", 2), True, 2) for _ in range(3))),
    "empty": b"",
    "dump.json": b'{"task": "statistics", "level": "L1", "dump_data_dir": null, "data": {}}',
    # A storage that begins like a pickle, by chance.
    "chance.pt": recipe.zip_of([NOTHING, ("archive/data/0", b"\x80\x02\x82\x82\x0f\x93" + bytes(range(90)))]),
    "letters.pt": recipe.zip_of([NOTHING, ("archive/data/0", b"cat\nsat\nmat\n"), ("archive/data/1", b"N" * 1000)]),
}


def numpy_type(name, flags=0, fields=None):
    names = tuple(fields) if fields else None
    return Made(Name("numpy", "dtype"), (name, False, True), (3, "|", None, names, fields, -1, -1, flags))


def as_array(dtype, data, count=1):
    empty = Made(Name("numpy.core.multiarray", "_reconstruct"), (Name("numpy", "ndarray"), (0,), b"b"))
    return empty._replace(state=(1, (count,), dtype, False, data))


def object_array():
    return as_array(numpy_type("O8", 63), ["text"])


def numpy_tricks():
    """Values whose elements are pointers that the pickle chooses."""
    pointers = bytes(8)
    frombuffer = Name("numpy.core.numeric", "_frombuffer")
    return {
        "cleared": as_array(numpy_type("O8"), pointers),
        "pretended": as_array(numpy_type("u8", 63), pointers),
        "in_a_field": as_array(numpy_type("V8", 0, {"a": (numpy_type("O8", 63), 0)}), pointers),
        "cleared_field": as_array(numpy_type("V8", 27, {"a": (numpy_type("O8", 0), 0)}), pointers),
        "pretended_record": as_array(numpy_type("V8", 27, {"a": (numpy_type("u8"), 0)}), pointers),
        "view": Made(Name("numpy", "ndarray"), ((1,), numpy_type("u8"), object_array())),
        "view_of_bytes": Made(Name("numpy", "ndarray"), ((1,), numpy_type("O8", 63), b"12345678")),
        "buffer": Made(frombuffer, (object_array(), numpy_type("u8"), (1,), "C")),
        "scalar": Made(Name("numpy.core.multiarray", "scalar"), (numpy_type("O8"), pointers)),
    }


def packed(value):
    """As a pickle, as the members of archives, in a legacy file of PyTorch."""
    data = recipe.pickled(value, 4)
    return {"pkl": data, "pt": recipe.torch_zip(data), "legacy": recipe.legacy(data), "keys": recipe.legacy_keys(data),
            "npy": recipe.npy(data), "zip": beside("archive/data/0", data)}  # fmt: skip


METADATA = [
    ({"config": json.dumps({"_target_": "posix.getpid"})}, True),
    ({"__init__": json.dumps({"encoder": {"_target_": "builtins.exec"}})}, True),
    ({"_target_": "posix.getpid"}, True),
    ({"config": json.dumps({"_target_": "mypackage.Net"})}, False),
    ({"config": json.dumps({"auto_map": {"AutoModel": "a.B"}})}, False),
]


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def cache_snapshot(root, files):
    """As huggingface_hub lays a model out. The folder that a loader is given."""
    blobs = root / "models--someone--model" / "blobs"
    snapshot = root / "models--someone--model" / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    write(blobs, {f"{number:040x}": data for number, data in enumerate(files.values())})
    for number, name in enumerate(files):
        (snapshot / name).symlink_to(pathlib.Path("../../blobs") / f"{number:040x}")
    return snapshot
