# SPDX-License-Identifier: Apache-2.0
"""Pickles that would run something, and pickles as frameworks write them, each in the containers it is met in.

All are put together here, opcode by opcode or with Python's own pickle module; no framework is needed. What would run
is without harm: a process number is asked for, or an environment variable is read.
"""

import bz2
import gzip
import io
import lzma
import pickle
import struct
import tarfile
import zipfile
import zlib
from typing import NamedTuple

LEGACY_MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
LEGACY_START = LEGACY_MAGIC + b"\x80\x02M\xe9\x03." + b"\x80\x02}X\x0d\x00\x00\x00little_endian\x88s."

# Modules and names that lead to code, processes, files or the network: one of each kind of way.
CALLS = [
    # Directly.
    ("posix", "getpid"), ("os", "getpid"), ("nt", "getpid"), ("os.path", "exists"), ("posixpath", "expandvars"),
    ("subprocess", "getoutput"), ("subprocess", "Popen"), ("_posixsubprocess", "fork_exec"), ("pty", "spawn"),
    ("commands", "getoutput"), ("popen2", "popen3"), ("pipes", "Template"), ("platform", "popen"),
    ("builtins", "eval"), ("__builtin__", "eval"), ("builtins", "exec"), ("builtins", "compile"),
    ("builtins", "__import__"), ("builtins", "getattr"), ("builtins", "map"), ("builtins", "open"),
    ("builtins", "help"), ("builtins", "iter"), ("__builtin__", "apply"), ("__builtin__", "reduce"),
    ("__builtin__", "execfile"), ("__builtin__", "raw_input"), ("builtins", "breakpoint"), ("builtins", "license"),
    ("runpy", "run_path"), ("code", "interact"), ("codeop", "compile_command"), ("timeit", "timeit"),
    ("cProfile", "run"), ("profile", "runctx"), ("bdb", "Bdb.run"), ("pdb", "run"), ("trace", "Trace.run"),
    ("doctest", "debug_script"), ("pydoc", "pipepager"), ("venv", "create"), ("ensurepip", "_run_pip"),
    ("idlelib.run", "Executive.runcode"), ("lib2to3.pgen2.grammar", "Grammar.loads"), ("test.support", "run_code"),
    ("importlib", "import_module"), ("importlib.machinery", "SourceFileLoader"), ("pkgutil", "resolve_name"),
    ("imp", "load_source"), ("_imp", "create_dynamic"), ("_frozen_importlib", "_load"), ("zipimport", "zipimporter"),
    ("_frozen_importlib_external", "SourceFileLoader"), ("ihooks", "ModuleLoader"), ("site", "addsitedir"),
    ("ctypes", "CDLL"), ("_ctypes", "dlopen"), ("cffi", "FFI"), ("dl", "open"), ("marshal", "loads"),
    ("types", "FunctionType"), ("types", "CodeType"), ("new", "function"), ("compiler", "compile"),
    ("_interpreters", "run_string"), ("_xxsubinterpreters", "run_string"), ("atexit", "register"),
    ("compileall", "compile_dir"), ("py_compile", "compile"), ("gc", "get_objects"), ("inspect", "getattr_static"),
    ("sys", "settrace"), ("_thread", "start_new_thread"), ("threading", "Timer"), ("signal", "signal"),
    ("multiprocessing", "Process"), ("concurrent.futures", "ThreadPoolExecutor"), ("asyncio", "run"),
    # Functions and types that call an argument, or return an attribute of one.
    ("operator", "attrgetter"), ("_operator", "methodcaller"), ("operator", "call"), ("_operator", "call"),
    ("functools", "partial"), ("_functools", "reduce"), ("itertools", "imap"), ("itertools", "starmap"),
    ("copyreg", "add_extension"), ("copyreg", "pickle"), ("contextlib", "ExitStack"), ("weakref", "finalize"),
    ("enum", "Enum"), ("dataclasses", "make_dataclass"), ("collections", "namedtuple"), ("typing", "get_type_hints"),
    # Files and the network.
    ("io", "open"), ("_io", "FileIO"), ("_io", "open_code"), ("_pyio", "open"), ("codecs", "open"), ("tempfile", "mkstemp"),
    ("shutil", "rmtree"), ("glob", "glob"), ("fileinput", "input"), ("linecache", "getline"), ("logging", "FileHandler"),
    ("pathlib", "PosixPath.write_text"), ("zipfile", "ZipFile"), ("tarfile", "open"), ("sqlite3", "connect"),
    ("shelve", "open"), ("dbm", "open"), ("mmap", "mmap"), ("socket", "create_connection"), ("ssl", "get_server_certificate"),
    ("SocketServer", "TCPServer"), ("BaseHTTPServer", "HTTPServer"), ("urllib.request", "urlopen"), ("urllib2", "urlopen"),
    ("http.client", "HTTPConnection"), ("httplib", "HTTPConnection"), ("xmlrpclib", "ServerProxy"), ("ftplib", "FTP"),
    ("smtplib", "SMTP"), ("imaplib", "IMAP4_stream"), ("webbrowser", "open"), ("antigravity", "webbrowser.open"),
    ("_winreg", "SetValue"), ("winreg", "SetValue"), ("uuid", "_get_command_stdout"), ("netrc", "netrc"),
    ("_osx_support", "_read_output"), ("_aix_support", "_read_cmd_output"), ("_pyrepl.pager", "pipe_pager"),
    # More pickles.
    ("pickle", "loads"), ("_pickle", "Unpickler"), ("cPickle", "loads"), ("dill", "loads"), ("joblib", "load"),
    ("cloudpickle.cloudpickle", "_make_function"), ("numpy", "load"), ("numpy.lib.npyio", "load"), ("pandas", "read_pickle"),
    ("pandas.io.pickle", "read_pickle"), ("torch", "load"), ("torch.serialization", "load"),
    ("torch.storage", "_load_from_bytes"), ("torch.jit", "load"), ("torch.hub", "load"), ("keras.models", "load_model"),
    # Frameworks.
    ("torch", "compile"), ("torch._dynamo.guards", "GuardBuilder.get"), ("torch._inductor.codecache", "compile_file"),
    ("torch.fx.graph_module", "reduce_graph_module"), ("torch.jit.unsupported_tensor_ops", "execWrapper"),
    ("torch.utils.collect_env", "run"), ("torch.utils.bottleneck.__main__", "run_cprofile"),
    ("torch.utils._config_module", "ConfigModule.load_config"), ("torch.utils.cpp_extension", "load_inline"),
    ("torch.utils.data.datapipes.utils.decoder", "basichandlers"), ("torch.distributed.rpc", "rpc_sync"),
    ("torch.package", "PackageImporter"), ("torch.ops", "load_library"), ("torch", "ops.load_library"),
    ("torch.storage", "UntypedStorage.from_file"), ("torch.fx.experimental.symbolic_shapes", "ShapeEnv.evaluate_guards_expression"),
    ("numpy.f2py.crackfortran", "myeval"), ("numpy.testing._private.utils", "runstring"), ("numpy.distutils.exec_command", "exec_command"),
    ("numpy.core", "_ufunc_reconstruct"), ("numpy", "ndarray.tofile"), ("numpy.ctypeslib", "load_library"),
    ("pandas", "eval"), ("scipy.io", "loadmat"), ("transformers.dynamic_module_utils", "get_class_from_dynamic_module"),
    ("yaml", "unsafe_load"), ("six.moves", "builtins.eval"), ("pip", "main"), ("setuptools", "setup"),
    # Through something that has imported it.
    ("random", "_os.getpid"), ("codecs", "builtins.eval"), ("torch", "os.getpid"), ("torch.serialization", "os.getpid"),
    ("numpy", "os.getpid"), ("datetime", "sys.exit"), ("collections", "_sys.exit"), ("argparse", "_os.getpid"),
    ("numpy", "__builtins__"), ("collections", "OrderedDict.__init__.__globals__"), ("numpy.core.numeric", "pickle.loads"),
    ("decimal", "_sys.exit"), ("mypackage.tools", "subprocess.Popen"), ("mypackage.os", "getpid"),
    ("torch.nn.modules.module", "Module.__getattr__"), ("torch._utils", "sys.exit"),
]  # fmt: skip


class Name(NamedTuple):
    """A value that is pickled as a name."""

    module: str
    name: str


class Made(NamedTuple):
    """A value that is pickled as the result of a call."""

    callee: Name
    args: tuple = ()
    state: object = None


class Storage(NamedTuple):
    kind: str
    key: str
    count: int


class Writer(pickle._Pickler):
    """Writes names and calls of what is not there."""

    def save(self, obj, *args):
        if isinstance(obj, Name):
            if self.proto >= 4:
                super().save(obj.module)
                super().save(obj.name)
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(f"c{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Made):
            self.save(obj.callee)
            super().save(tuple(obj.args))
            self.write(pickle.REDUCE)
            if obj.state is not None:
                self.save(obj.state)
                self.write(pickle.BUILD)
        elif isinstance(obj, Storage):
            self.save(("storage", Name("torch", obj.kind), obj.key, "cpu", obj.count))
            self.write(pickle.BINPERSID)
        else:
            super().save(obj, *args)


def pickled(value, protocol=2):
    buffer = io.BytesIO()
    Writer(buffer, protocol).dump(value)
    return buffer.getvalue()


# --- containers ---------------------------------------------------------------------------------------------------


def bare(data):
    return data


def zip_of(members, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def torch_zip(data):
    return zip_of([("archive/data.pkl", data), ("archive/version", b"3\n")])


def torch_zip_deflated(data):
    return zip_of([("archive/data.pkl", data), ("archive/version", b"3\n")], zipfile.ZIP_DEFLATED)


def upper_case_member(data):
    return zip_of([("archive/data.pkl", b"\x80\x02}."), ("archive/DATA.PKL", data)])


def member_without_suffix(data):
    return zip_of([("archive/data.pkl", b"\x80\x02}."), ("archive/extra/notes.txt", data)])


def two_data_pkl(data):
    return zip_of([("archive/data.pkl", b"\x80\x02}."), ("other/data.pkl", data)])


def twin_data_pkl(data):
    twin = zip_of([("archive/data.pkl", b"\x80\x02}."), ("archive/dbtb.pkl", data)])
    return twin.replace(b"dbtb.pkl", b"data.pkl")


def torchscript(data):
    return zip_of([("archive/constants.pkl", b"\x80\x02)."), ("archive/data.pkl", data), ("archive/code/a.py", b"")])


def legacy(data):
    return LEGACY_START + data + b"\x80\x02]."


def legacy_system(data):
    """The first pickle is the one that is meant to give the byte order."""
    return LEGACY_MAGIC + b"\x80\x02M\xe9\x03." + data + b"\x80\x02}." + b"\x80\x02]."


def legacy_keys(data):
    return LEGACY_START + b"\x80\x02}." + data


def behind_the_storages(data):
    return LEGACY_START + b"\x80\x02}." + b"\x80\x02]." + data


def behind_16_pickles(data):
    return b"\x80\x02N." * 16 + data


def legacy_tar(data):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in (("sys_info", b"\x80\x02}."), ("pickle", data), ("storages", b"\x80\x02K\0."), ("tensors", b"")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def npy(data, descr="|O"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(data):
    return zip_of([("good.npy", npy(bytes(4), "<f4")), ("bad.npy", npy(data))])


def npz_deflated(data):
    return zip_of([("good.npy", npy(bytes(4), "<f4")), ("bad.npy", npy(data))], zipfile.ZIP_DEFLATED)


def npz_with_pickle(data):
    return zip_of([("good.npy", npy(bytes(4), "<f4")), ("model.pkl", data)])


def zip_behind_pickle(data):
    return b"\x80\x02N." + torch_zip(data)


def pickle_behind_zip(data):
    return torch_zip(b"\x80\x02}.") + data


def zip_in_zip(data):
    return zip_of([("archive/data.pkl", b"\x80\x02}."), ("archive/inner.pt", torch_zip(data))])


def zip_in_deflated_zip(data):
    return zip_of([("archive/data.pkl", b"\x80\x02}."), ("model.bin", torch_zip(data))], zipfile.ZIP_DEFLATED)


def array_between(data):
    """As joblib writes an array: its bytes are in the middle of the opcodes."""
    wrapper = pickled([Name("joblib.numpy_pickle", "NumpyArrayWrapper")])[:-1]
    return wrapper + b"0" + b"\x03" + b"\xff" * 3 + struct.pack("<4d", 0.5, 1.0, 2.0, -1.0) + data[2:]


def safetensors_face(data):
    """A header whose length is a text to a reader of pickles."""
    opcodes = struct.pack("<BI", 0x58, 11) + bytes(3)
    header = b"{}" + b" " * 6
    return opcodes + header + b"0" + data[2:]


CONTAINERS = [
    bare, torch_zip, torch_zip_deflated, upper_case_member, member_without_suffix, two_data_pkl, twin_data_pkl,
    torchscript, legacy, legacy_system, legacy_keys, behind_the_storages, behind_16_pickles, legacy_tar, npy, npz,
    npz_deflated, npz_with_pickle, zip_behind_pickle, pickle_behind_zip, zip_in_zip, zip_in_deflated_zip, array_between,
    safetensors_face,
]  # fmt: skip

# Formats that joblib, torch and others unpack before they look.
COMPRESSED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "z": zlib.compress}


# --- tricks -------------------------------------------------------------------------------------------------------


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


GETPID = b"cposix\ngetpid\n)R"
AS_TEXTS = text("posix") + text("getpid") + b"\x93)R"
MODULE_ID = b"(U\x06modulecargparse\nNamespace\nU\x04f.pyU\x06source" + b"tQ"

# Name to opcodes between PROTO and STOP. Each has posix.getpid called by Python.
TRICKS = {
    "inst": b"(iposix\ngetpid\n",
    "obj": b"(cposix\ngetpid\no",
    "stack_global": AS_TEXTS,
    "from_the_memo": text("posix") + b"q\x000" + text("getpid") + b"q\x010h\x00h\x01\x93)R",
    "doubled": text("getpid") + b"q\x000" + text("posix") + b"20" + b"h\x00\x93)R",
    "memo_overwritten": text("collections") + b"q\x000" + text("posix") + b"q\x000h\x00" + text("getpid") + b"\x93)R",
    "memo_far_out": text("posix") + b"r\x11\x22\x01\x000j\x11\x22\x01\x00" + text("getpid") + b"\x93)R",
    "memoize_counts": b"Nq\x010" + text("posix") + b"\x940h\x01" + text("getpid") + b"\x93)R",
    "get_with_sign": b"Np7\n0g+7\n0" + GETPID,
    "put_with_blanks": text("posix") + b"p 3 \n0g\t3\n" + text("getpid") + b"\x93)R",
    "integer_with_blanks": b"I 5 \n0" + GETPID,
    "integer_beyond_64_bits": b"I123456789012345678901234567890\n0" + GETPID,
    "long_beyond_64_bits": b"\x8a\x09\1\2\3\4\5\6\7\x08\x090" + GETPID,
    "build_on_a_global": b"cargparse\nNamespace\n}b0" + GETPID,
    "append_to_bytes": b"\x96" + struct.pack("<Q", 0) + b"K\x01a0" + GETPID,
    "tuple_of_range": b"c__builtin__\ntuple\nc__builtin__\nrange\nK\x01\x85R\x85R0" + GETPID,
    "escaped_text": b"V\\u0070osix\nV\\u0067etpid\n\x93)R",
    "octal_text": b"S'\\160osix'\nS'getp\\x69d'\n\x93)R",
    "long_texts": b"\x8d" + struct.pack("<Q", 5) + b"posix\x8d" + struct.pack("<Q", 6) + b"getpid\x93)R",
    "text_of_old_python": b"U\x05posixU\x06getpid\x93)R",
    "behind_a_mark": b"(((" + GETPID + b"1NN1NN10",
    "popped": GETPID + b"0N",
    "in_a_dict": b"}" + text("weight") + GETPID + b"s",
    "in_a_tuple": GETPID + b"\x85",
    "newobj_state": b"cargparse\nNamespace\n)\x81}" + text("x") + GETPID + b"sb",
    "frame": b"\x95" + struct.pack("<Q", len(GETPID)) + GETPID,
    "second_protocol": b"\x80\x02" + GETPID,
    "extra_values": b"NNN" + GETPID,
    "reduced_twice": b"c__builtin__\ngetattr\ncposix\ngetpid\nU\x08__call__\x86R)R",
}

# Python comes to no name here that is written in the file, or needs PyTorch for it.
HIDDEN = {
    "module_id": MODULE_ID + b"0" + GETPID,
    "text_from_an_id": b"(U\x06moduleU\x05posixU\0U\0tQ" + text("getpid") + b"\x93)R",
    "computed_text": b"c__builtin__\nstr\nC\x05posix" + text("ascii") + b"\x86R" + text("getpid") + b"\x93)R",
    "decoded_text": b"c_codecs\nencode\n" + text("posix") + text("latin1") + b"\x86R" + text("getpid") + b"\x93)R",
    "extension_1": b"\x82\x01)R",
    "extension_2": b"\x83\x01\x01)R",
    "extension_4": b"\x84\x01\x00\x01\x00)R",
    "pickle_in_pickle": b"c_pickle\nloads\nC" + bytes([len(GETPID) + 1]) + GETPID + b".\x85R",
    "torch_in_pickle": b"ctorch.storage\n_load_from_bytes\nC" + bytes([len(GETPID) + 1]) + GETPID + b".\x85R",
    "next_buffer": b"\x970" + GETPID,
    "unknown_opcode": b"\xfe" + GETPID,
    "lying_frame": b"\x95\x03" + bytes(7) + b"X\0\0" + struct.pack("<I", 0) + b"0" + GETPID,
    "broken_number": b"Iabc\n0" + GETPID,
    "missing_memo": b"h\x630" + GETPID,
    "missing_mark": b"t0" + GETPID,
}


def call(module, name, protocol):
    args = () if (module, name) == ("posix", "getpid") else ("HOME",)
    return pickled(Made(Name(module, name), args), protocol)


def calls():
    """(file name, contents, module, name): each way in a container, by turns, and two of them in every one."""
    for number, (module, name) in enumerate(CALLS):
        protocol = 4 if "." in name else (2, 4)[number % 2]
        container = CONTAINERS[number % len(CONTAINERS)]
        yield f"call_{number}_{container.__name__}", container(call(module, name, protocol)), module, name
    for module, name in (("posix", "getpid"), ("random", "_os.getpid")):
        for container in CONTAINERS:
            yield f"{name}_{container.__name__}", container(call(module, name, 4)), module, name


def tricks():
    """(file name, contents): as a pickle, in a zip archive and in a legacy file."""
    for name, opcodes in {**TRICKS, **HIDDEN}.items():
        for container in (bare, torch_zip, legacy, npy):
            yield f"{name}_{container.__name__}", container(b"\x80\x04" + opcodes + b".")


def compressed():
    for suffix, compress in COMPRESSED.items():
        yield f"compressed.{suffix}", compress(call("posix", "getpid", 2))


# --- files that mean no harm -----------------------------------------------------------------------------------------


def tensor(key, *shape, kind="FloatStorage"):
    count = 1
    strides = []
    for length in reversed(shape):
        strides.insert(0, count)
        count *= length
    return Made(
        Name("torch._utils", "_rebuild_tensor_v2"),
        (Storage(kind, key, count), 0, tuple(shape), tuple(strides), False, Made(Name("collections", "OrderedDict"))),
    )


def parameter(key, *shape):
    return Made(Name("torch._utils", "_rebuild_parameter"), (tensor(key, *shape), True, Made(Name("collections", "OrderedDict"))))


def array(count):
    """As NumPy pickles it."""
    dtype = Made(Name("numpy", "dtype"), ("f8", False, True), (3, "<", None, None, None, -1, -1, 0))
    empty = Made(Name("numpy.core.multiarray", "_reconstruct"), (Name("numpy", "ndarray"), (0,), b"b"))
    return empty._replace(state=(1, (count,), dtype, False, bytes(8 * count)))


def of_class(module, name, state, *args):
    return Made(Name("copyreg", "_reconstructor"), (Name(module, name), Name("builtins", "object"), None), state)


def member(module, name, value):
    """A member of an enumeration."""
    return Made(Name(module, name), (value,))


def module_state(**more):
    return {
        "training": True, "_parameters": {}, "_buffers": {}, "_modules": {}, "_backward_hooks": {}, "_forward_hooks": {}, **more
    }  # fmt: skip


def layer(module, name, **more):
    return of_class("torch.nn.modules." + module, name, module_state(**more))


def values():
    """Values that checkpoints hold, by the program that writes them."""
    linear = layer("linear", "Linear", _parameters={"weight": parameter("0", 2, 3), "bias": None}, in_features=3)
    state_dict = Made(Name("collections", "OrderedDict"))
    adam = {"state": {0: {"step": tensor("1"), "exp_avg": tensor("2", 2, 3)}}, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0]}]}
    yield "state_dict", {"weight": tensor("0", 2, 3), "bias": tensor("1", 2), "_extra": state_dict}
    yield "half_precision", {"a": tensor("0", 4, kind="HalfStorage"), "b": tensor("1", 4, kind="BFloat16Storage")}
    yield "training", {"model": {"w": tensor("0", 2, 3)}, "optimizer": adam, "epoch": 3, "best": 0.5, "big": 1 << 70}
    yield "scheduler", {"last_epoch": 3, "_step_count": 4, "base_lrs": [0.1], "milestones": Made(Name("collections", "Counter"), ({30: 1},))}
    yield "linear", linear
    yield "sequential", layer("container", "Sequential", _modules={"0": linear, "1": layer("activation", "ReLU", inplace=False)})
    yield "activation", of_class("torch.nn.modules.transformer", "TransformerEncoderLayer", module_state(activation=Name("torch.nn.functional", "relu"), other=Name("torch._C._nn", "gelu")))
    yield "convolution", layer("conv", "Conv2d", _parameters={"weight": parameter("0", 1, 1, 3, 3)}, padding_mode="zeros")
    yield "quantised", {"w": Made(Name("torch._utils", "_rebuild_qtensor"), (Storage("QInt8Storage", "0", 4), 0, (4,), (1,), (Name("torch", "per_tensor_affine"), 0.5, 0), False, Made(Name("collections", "OrderedDict"))))}
    yield "sparse", {"w": Made(Name("torch._utils", "_rebuild_sparse_tensor"), (Name("torch", "sparse_coo"), (tensor("0", 1, 2, kind="LongStorage"), tensor("1", 2), (3,))))}
    yield "devices", {"device": Made(Name("torch", "device"), ("cuda", 0)), "dtype": Name("torch", "bfloat16"), "size": Made(Name("torch", "Size"), ((2, 3),))}
    yield "megatron", {
        "args": of_class("argparse", "Namespace", {"exit_signal": member("signal", "Signals", 15), "model_type": member("megatron.core.enums", "ModelType", 1), "params_dtype": Name("torch", "bfloat16")}),
        "iteration": 100, "checkpoint_version": 3.0, "model": {"language_model": {"w": tensor("0", 2)}},
        "rng_state": [{"np_rng_state": ("MT19937", array(4), 4, 0, 0.0), "torch_rng_state": tensor("1", 8, kind="ByteStorage")}],
    }  # fmt: skip
    yield "transformer_engine", {"layer._extra_state": Made(Name("_io", "BytesIO"), (b"scales",))}
    yield "transformers_arguments", of_class("transformers.training_args", "TrainingArguments", {"output_dir": "out", "lr_scheduler_type": member("transformers.trainer_utils", "SchedulerType", "linear"), "optim": member("transformers.training_args", "OptimizerNames", "adamw_torch"), "hub_strategy": member("transformers.trainer_utils", "HubStrategy", "every_save")})
    yield "transformers_config", of_class("transformers.models.bert.configuration_bert", "BertConfig", {"hidden_size": 8})
    yield "lightning", {"state_dict": {"w": tensor("0", 2)}, "callbacks": {Name("pytorch_lightning.callbacks.model_checkpoint", "ModelCheckpoint"): {"best_model_score": tensor("1")}}, "hyper_parameters": of_class("pytorch_lightning.utilities.parsing", "AttributeDict", {"a": 1})}
    yield "omegaconf", of_class("omegaconf.dictconfig", "DictConfig", {"_metadata": of_class("omegaconf.base", "ContainerMetadata", {"ref_type": Name("typing", "Any"), "object_type": Name("builtins", "dict")}), "_content": {"a": of_class("omegaconf.nodes", "AnyNode", {"_val": 1})}})
    yield "deepspeed", {"module": {"w": tensor("0", 2)}, "optimizer": {"loss_scaler": of_class("deepspeed.runtime.fp16.loss_scaler", "LossScaler", {"cur_scale": 1.0}), "zero_stage": 1, "ds_version": "0.9"}}
    yield "distributed_metadata", of_class("torch.distributed.checkpoint.metadata", "Metadata", {"state_dict_metadata": {"w": of_class("torch.distributed.checkpoint.metadata", "TensorStorageMetadata", {"size": Made(Name("torch", "Size"), ((2,),))})}})
    yield "distributed_tensor", of_class("torch.distributed.tensor", "DTensor", {"_spec": of_class("torch.distributed.tensor._dtensor_spec", "DTensorSpec", {"mesh": of_class("torch.distributed.device_mesh", "DeviceMesh", {"mesh": tensor("0", 2)})})})
    yield "numpy_array", array(3)
    yield "numpy_values", {"scalar": Made(Name("numpy.core.multiarray", "scalar"), (Name("numpy", "float64"), b"12345678")), "list": [array(1)] * 3}
    yield "numpy_random", {"old": Made(Name("numpy.random._pickle", "__randomstate_ctor"), ("MT19937",)), "new": Made(Name("numpy.random._pickle", "__generator_ctor"), ("PCG64",)), "bits": Made(Name("numpy.random._pickle", "__bit_generator_ctor"), ("PCG64",))}
    yield "pandas_frame", of_class("pandas.core.frame", "DataFrame", {"_mgr": Made(Name("pandas.core.internals.managers", "BlockManager"), ((Made(Name("pandas._libs.internals", "_unpickle_block"), (array(2), slice(0, 1), 2)),), [Made(Name("pandas.core.indexes.base", "_new_Index"), (Name("pandas.core.indexes.range", "RangeIndex"), {"start": 0}))]))})
    yield "sklearn_model", of_class("sklearn.linear_model._logistic", "LogisticRegression", {"coef_": array(3), "classes_": array(2)})
    yield "sklearn_tree", of_class("sklearn.tree._classes", "DecisionTreeClassifier", {"tree_": Made(Name("sklearn.tree._tree", "Tree"), (3, array(1), 1), {"nodes": array(2)})})
    yield "xgboost_model", of_class("xgboost.core", "Booster", {"handle": bytearray(b"binf")})
    yield "detection_model", {"model": of_class("models.yolo", "DetectionModel", module_state(stride=tensor("0", 3))), "ema": None, "date": "2024-05-01T10:00:00"}
    yield "timm_model", {"arch": "resnet50", "state_dict": {"w": tensor("0", 2)}, "args": of_class("argparse", "Namespace", {"lr": 0.1})}
    yield "dictionary", of_class("fairseq.data.dictionary", "Dictionary", {"symbols": ["<s>"], "count": [1], "indices": {"<s>": 0}})
    yield "tokenizer", of_class("transformers.models.gpt2.tokenization_gpt2", "GPT2Tokenizer", {"pat": Made(Name("regex._regex", "compile"), ("a+", 0, [])), "added": Made(Name("tokenizers", "AddedToken"), ("x",))})
    yield "plain_values", {"when": Made(Name("datetime", "datetime"), (b"\x07\xe8\x05\x01\x0a\0\0\0\0\0",)), "price": Made(Name("decimal", "Decimal"), ("1.5",)), "third": Made(Name("fractions", "Fraction"), ("1/3",)), "pattern": Made(Name("re", "_compile"), ("a+", 32))}
    yield "paths", {"out": Made(Name("pathlib", "PosixPath"), ("a", "b")), "id": Made(Name("uuid", "UUID"), (), {"int": 1 << 100})}
    yield "containers", {"deque": Made(Name("collections", "deque"), ([1, 2], 10)), "default": Made(Name("collections", "defaultdict"), (Name("builtins", "list"),)), "set": {1, 2}, "frozen": frozenset("ab")}
    yield "python_values", [1, -1, 1 << 70, -(1 << 70), 0.5, True, None, "text", b"bytes", (1, (2, (3,))), {"a": {"b": {}}}]
    yield "own_class", of_class("__main__", "TrainState", {"step": 1, "w": tensor("0", 2)})
    yield "ascend_tensor", {"w": Made(Name("torch_npu.utils.storage", "_rebuild_npu_tensor"), (Storage("FloatStorage", "0", 2), 0, (2,), (1,), False, Made(Name("collections", "OrderedDict")), (2,)))}
    yield "errors", {"last": Made(Name("builtins", "ValueError"), ("no step",))}
    yield "old_python", {"a": Made(Name("__builtin__", "set"), ([1],)), "b": Made(Name("copy_reg", "_reconstructor"), (Name("__main__", "Options"), Name("__builtin__", "object"), None))}


def storages_of(value, found):
    if isinstance(value, Storage):
        found[value.key] = value
    elif isinstance(value, dict):
        for pair in value.items():
            storages_of(pair, found)
    elif isinstance(value, (tuple, list)):
        for each in value:
            storages_of(each, found)
    return found


ITEM_SIZE = {"FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "ByteStorage": 1, "LongStorage": 8, "QInt8Storage": 1}


def saved(value, is_zip, protocol):
    """As torch.save writes it."""
    storages = storages_of(value, {})
    contents = {key: bytes(storage.count * ITEM_SIZE[storage.kind]) for key, storage in storages.items()}
    data = pickled(value, protocol)
    if is_zip:
        members = [("archive/data.pkl", data), *((f"archive/data/{key}", content) for key, content in contents.items())]
        return zip_of([*members, ("archive/version", b"3\n")])
    tail = b"".join(struct.pack("<Q", storages[key].count) + content for key, content in contents.items())
    return LEGACY_START + data + pickled(list(contents), 2) + tail


def harmless():
    """(file name, contents)"""
    for number, (name, value) in enumerate(values()):
        yield f"{name}.pt", saved(value, True, (2, 4)[number % 2])
        yield f"{name}_legacy.pt", saved(value, False, (4, 2)[number % 2])
        if not storages_of(value, {}):
            for protocol in (0, 5):
                yield f"{name}_{protocol}.pkl", pickled(value, protocol)
            yield f"{name}.npy", npy(pickled([value], 4))
