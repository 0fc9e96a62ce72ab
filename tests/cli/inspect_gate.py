#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate `inspect --fail-on`: whatever hides a name behind something that msprobe does not understand, the file is
never clean. What Python would name is asked of Python itself, with a find_class that imports nothing and calls nothing.

usage: inspect_gate.py MSPROBE
"""

import io
import json
import pickle
import random
import struct
import tarfile
import warnings
import zipfile

import harness
import tensor_files

CALL = b"cposix\nsystem\n(U\x04truetR"
LEGACY_MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
LEGACY_START = LEGACY_MAGIC + b"\x80\x02M\xe9\x03." + b"\x80\x02}X\x0d\x00\x00\x00little_endian\x88s."
STORAGE = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x02tQ"
MODULE = b"(U\x06modulecargparse\nNamespace\nU\x01fU\x04texttQ"


class Stub:
    """Stands for whatever a pickle names, and for what its calls give."""

    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return Stub()

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def add(self, item):
        pass

    def __setitem__(self, key, value):
        pass

    def __setstate__(self, state):
        pass


def computed(*_args):
    return "posix"


def names_by_python(data, reader):
    """The names that find_class gets before the reader is done or gives up."""
    names = []

    class Reader(reader):
        def find_class(self, module, name):
            names.append((module, name))
            return computed if name == "str" else Stub

        def persistent_load(self, saved_id):
            return saved_id[1] if isinstance(saved_id, tuple) and len(saved_id) > 1 else Stub()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that later Pythons refuse
            Reader(io.BytesIO(data), encoding="utf-8").load()
    except Exception:  # broken pickles are what this is about
        pass
    return names


def legacy(data):
    """A legacy PyTorch file with one storage of two elements."""
    return LEGACY_START + b"\x80\x02" + data + b"." + b"\x80\x02]U\x010a." + struct.pack("<Q2f", 2, 0, 0)


def never_clean(msprobe, scratch, name, data, level="dangerous"):
    """A file that is not clean at the level dangerous is not clean at the level unknown."""
    (scratch / name).write_bytes(data)
    result = harness.run(msprobe, ["inspect", "--fail-on", level, name], scratch)
    output = result.stdout + result.stderr
    harness.check(result.returncode in (1, 2), f"{name}: --fail-on {level} ends with {result.returncode}: {output}")
    return output


def names_call(msprobe, scratch, name, data):
    """Not clean, and the table has the name as dangerous."""
    output = never_clean(msprobe, scratch, name, data)
    found = [line for line in output.splitlines() if line.split()[:2] == ["dangerous", "posix.system"]]
    harness.check(found, f"{name}: posix.system is not in {output}")


# Pickles that Python accepts, and our reader of values does not, or did not once.
ODD = {
    "int_with_blanks": b"I 5 \n0",
    "int_in_hexadecimal": b"I0x1_f\n0",
    "int_beyond_64_bits": b"I123456789012345678901234567890\n0",
    "long_beyond_64_bits": b"L123456789012345678901234567890L\n0",
    "long_of_bytes": b"\x8a\x09\1\2\3\4\5\6\7\x08\x090",
    "float_with_exponent": b"F1e400\n0",
    "get_with_sign": b"Np7\n0g+7\n0",
    "get_with_zero_byte": b"Np7\n0g7\0garbage\n0",
    "put_with_underscore": b"Np1_0\n0h\x0a0",
    "build_on_a_global": b"cargparse\nNamespace\n(N}tb0",
    "append_to_bytes": b"\x96\x00\x00\x00\x00\x00\x00\x00\x00K\x01a0",
    "tuple_of_range": b"cbuiltins\ntuple\ncbuiltins\nrange\nK\x01\x85R\x85R0",
    "called_module": MODULE + b")R0",
    "dict_of_a_call": b"cbuiltins\ndict\ncbuiltins\nlist\n)R\x85R0",
    "values_left_over": b"NNN",
    "frame_too_short": b"\x95\x01\0\0\0\0\0\0\0NN00",
    "frames_in_a_frame": b"\x95\x20\0\0\0\0\0\0\0\x95\x01\0\0\0\0\0\0\0N0",
    "bytes_as_callable": b"C\x00)R0",
}


def behind_what_is_odd(msprobe, scratch):
    for name, odd in ODD.items():
        for before in (STORAGE, MODULE, b"]"):
            data = b"\x80\x02" + before + b"0" + odd + CALL + b"."
            names_call(msprobe, scratch, f"{name}.pkl", data)
            names_call(msprobe, scratch, f"{name}.pt", legacy(data[2:-1]))
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr("a/data.pkl", data)
                archive.writestr("a/data/0", bytes(8))
            names_call(msprobe, scratch, f"{name}_zip.pt", buffer.getvalue())


def behind_many_pickles(msprobe, scratch):
    for count in (1, 4, 5, 6, 15, 16, 17, 9_990):
        names_call(msprobe, scratch, f"{count}.pkl", b"N." * count + CALL + b".")
        names_call(msprobe, scratch, f"{count}.pt", LEGACY_START + b"N." * count + CALL + b".")
    never_clean(msprobe, scratch, "more.pkl", b"N." * 20_000 + CALL + b".")
    # Behind the storages there is nothing that PyTorch reads, so nothing else may be there.
    names_call(msprobe, scratch, "behind_storages.pt", legacy(b"}U\x01w" + STORAGE + b"s") + b"\x80\x02" + CALL + b".")
    # Python goes on where the frame ends, wherever STOP was.
    framed = b"\x80\x04\x95\x40\0\0\0\0\0\0\0N."
    names_call(msprobe, scratch, "behind_a_frame.pkl", framed + b"\0" * (0x40 - 2) + CALL + b".")


def in_other_members(msprobe, scratch):
    for name in ("a/DATA.PKL", "a/code.Pickle", "a/note", "a/data/evil.pkl"):
        for beside in ("a/data.pkl", "x.npy", "a/other.pkl"):
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr(beside, tensor_files.npy("<f4", (1,), bytes(4)) if beside.endswith("npy") else b"\x80\x02}.")
                archive.writestr(name, b"N0" + CALL + b".")
            names_call(msprobe, scratch, "other.zip", buffer.getvalue())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}.")
        archive.writestr("a/data/0", b"\x80\x04N0" + CALL + b".")
    names_call(msprobe, scratch, "elements.pt", buffer.getvalue())


def in_arrays(msprobe, scratch):
    for name, odd in ODD.items():
        array = tensor_files.npy("|O", (1,), b"\x80\x02" + odd + CALL + b".")
        names_call(msprobe, scratch, f"{name}.npy", array)
        for member in ("a.npy", "a"):
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr("good.npy", tensor_files.npy("<f4", (1,), bytes(4)))
                archive.writestr(member, array)
            names_call(msprobe, scratch, f"{name}.npz", buffer.getvalue())


def in_second_archives(msprobe, scratch):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + CALL + b".")
    packed = buffer.getvalue()
    # A string to a reader of pickles, an archive with a comment of one byte to a reader of archives.
    harmless = b"\x80\x02X" + struct.pack("<I", len(packed)) + packed[:-2] + b"\x01\x00."
    harness.check_equal("names", names_by_python(harmless, pickle.Unpickler), [])
    with zipfile.ZipFile(io.BytesIO(harmless)) as archive:
        harness.check_equal("members", archive.namelist(), ["a/data.pkl"])
    names_call(msprobe, scratch, "string.pkl", harmless)
    names_call(msprobe, scratch, "appended.pkl", b"\x80\x02N." + packed)
    names_call(msprobe, scratch, "appended.npy", tensor_files.npy("<f4", (1,), bytes(4)) + packed)
    for name in ("none.safetensors", "first.pt"):
        data = struct.pack("<Q", 8) + b"{}      " if name.endswith("tensors") else legacy(b"}")
        never_clean(msprobe, scratch, name, data + packed)
    # PyTorch looks for a tar archive before it looks for pickles.
    block = bytearray(tarfile.TarInfo("name").tobuf(tarfile.GNU_FORMAT))
    block[:7] = b"\x80\x02X" + struct.pack("<I", 1536 - 7)
    block[148:156] = b" " * 8
    for checksum in (b"%06o\0 " % sum(block), b" 0o%o" % sum(block), b"\x80" + sum(block).to_bytes(7, "big")):
        block[148:156] = checksum.ljust(8)
        data = bytes(block) + bytes(1536 - len(block)) + b"."
        harness.check_equal("names", names_by_python(data, pickle.Unpickler), [])
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            harness.check_equal("members", len(archive.getmembers()), 1)
        never_clean(msprobe, scratch, "tar.pkl", data)


def as_second_face(msprobe, scratch):
    # The reader in C loses what is left of the frame, and then the string ends where it likes.
    lost = b"\x95\3\0\0\0\0\0\0\0X\0\0" + struct.pack("<I", 0) + b"0" + CALL + b"."
    harness.check_equal("names", names_by_python(lost, pickle.Unpickler), [("posix", "system")])
    never_clean(msprobe, scratch, "lost.pkl", lost)
    # The length of a header that is a string as a pickle.
    for opcode in (b"X", b"T", b"B"):
        data = opcode + struct.pack("<I", 1 << 16) + bytes(1 << 16) + b"0" + CALL + b"."
        never_clean(msprobe, scratch, "face.bin", data.ljust(1 << 25, b"\0"))


def with_hidden_names(msprobe, scratch):
    spelt = {
        "backslashes": b"\x80\x04V\\u0070osix\nVsystem\n\x93)R.",
        "not_an_escape": b"\x80\x04Vposix\n\x94V\\\\u0041\n\x940\x8c\x06system\x93.",
        "octal": b"\x80\x04S'\\160osix'\nS\"syst\\x65m\"\n\x93)R.",
        "computed": b"\x80\x04cbuiltins\nstr\nC\x05posix\x8c\x05ascii\x86R\x8c\x06system\x93)R.",
        "from_an_id": b"\x80\x04(U\x06moduleU\x05posixU\0U\0tQ\x8c\x06system\x93)R.",
        # Entry 1 is set twice, so that MEMOIZE makes entry 2, and not 3.
        "memo_count": b"\x80\x04\x8c\x0bcollectionsq\x01q\x00q\x01q\x020\x8c\x05posixr\x02\0\0\x000h\x02\x8c\x06system\x93.",
        "memo_sparse": b"\x80\x04Nq\x01q\x00q\x010\x8c\x0bcollections\x85q\x03\x8c\x05posix\x940h\x02\x8c\x06system\x93.",
        "memo_of_the_one_before": b"\x80\x04\x8c\x05posix\x94.\x80\x04\x8c\x0bcollections\x94h\0\x8c\x06system\x93.",
        "extension": b"\x80\x02\x82\x01)R.",
        "split": b"\x80\x04\x8c\x05numpy\x8c\x10f2py.diagnose.os\x93.\x80\x04N.",
    }
    for name, data in spelt.items():
        never_clean(msprobe, scratch, f"{name}.pkl", data)


IMPORTABLE = ("posix", "system", "os", "collections", "OrderedDict", "str", "builtins")
TEXTS = [name.encode() for name in IMPORTABLE]


def a_text(pick):
    text = pick.choice(TEXTS)
    spellings = [
        b"U" + bytes([len(text)]) + text,
        b"\x8c" + bytes([len(text)]) + text,
        b"X" + struct.pack("<I", len(text)) + text,
        b"T" + struct.pack("<I", len(text)) + text,
        b"\x8d" + struct.pack("<Q", len(text)) + text,
        b"S'" + text + b"'\n",
        b"S'\\x%02x" % text[0] + text[1:] + b"'\n",
        b"V" + text + b"\n",
        b"V\\u%04x" % text[0] + text[1:] + b"\n",
        b"V\\\\u%04x" % text[0] + text[1:] + b"\n",
    ]
    return pick.choice(spellings)


def a_key(pick, put):
    key = pick.randrange(5)
    line = pick.choice([b"%d", b" %d ", b"+%d", b"0%d", b"%d\0x", b"0_%d", b"\t%d\r"]) % key
    long = b"r" if put else b"j"
    return pick.choice(
        [(b"p" if put else b"g") + line + b"\n", (b"q" if put else b"h") + bytes([key]), long + struct.pack("<I", key)]
    )


def a_pickle(pick):
    """Opcodes that mostly fit, so that Python comes far."""
    makers = [
        (14, lambda: a_text(pick)),
        (8, lambda: a_key(pick, True)),
        (6, lambda: b"\x94"),
        (8, lambda: a_key(pick, False)),
        (10, lambda: a_text(pick) + a_text(pick) + b"\x93"),
        (6, lambda: b"\x93"),
        (4, lambda: b"c" + pick.choice(TEXTS) + b"\n" + pick.choice(TEXTS) + b"\n"),
        (3, lambda: b"(" + a_text(pick) + b"i" + pick.choice(TEXTS) + b"\n" + pick.choice(TEXTS) + b"\n"),
        (3, lambda: b"(c" + pick.choice(TEXTS) + b"\nstr\n" + a_text(pick) + b"o"),
        (4, lambda: b")R"),
        (2, lambda: b")\x81"),
        (2, lambda: b")}\x92"),
        (2, lambda: b"}b"),
        (2, lambda: b"cbuiltins\nstr\nN\x85R"),
        (6, lambda: b"0"),
        (5, lambda: b"2"),
        (4, lambda: b"("),
        (3, lambda: b"1"),
        (2, lambda: pick.choice([b"t", b"l", b"\x85", b"\x86", b"\x87", b"d", b"\x91"])),
        (2, lambda: pick.choice([b"]", b"}", b"\x8f"]) + pick.choice([b"Na", b"(NNe", b"(\x90", b"NNs", b"(NNu"])),
        (3, lambda: pick.choice([b"I 7 \n", b"I0x7\n", b"L9999999999999999999999L\n", b"F1.5\n", b"I01\n", b"N", b"\x88"])),
        (1, lambda: b"\x95" + struct.pack("<Q", pick.randrange(60))),
        (1, lambda: b"\x80" + bytes([pick.randrange(6)])),
        (1, lambda: a_text(pick) + b"\x85Q"),
        (1, lambda: b"(N" + a_text(pick) + b"tQ"),
        (1, lambda: b"\x96" + struct.pack("<Q", 2) + b"ab"),
        (1, lambda: b"."),
    ]
    weights = [weight for weight, _ in makers]
    parts = [make() for _, make in pick.choices(makers, weights, k=pick.randrange(2, 30))]
    return pick.choice([b"\x80\x04", b"\x80\x02", b""]) + b"".join(parts) + b"."


def what_python_names(msprobe, scratch):
    """Random pickles in both of Python's readers: each name that either comes to is in the table, or the table says
    that there is one that cannot be told: frames that lie make the reader in C skip bytes. A file that names nothing but what no Python could import may pass for no
    pickle at all; it is refused then."""
    pick = random.Random(1)
    named = 0
    for _ in range(40):
        files = {}
        for number in range(100):
            data = a_pickle(pick)
            if pick.randrange(4) == 0:
                at = pick.randrange(len(data))
                data = data[:at] + bytes([pick.randrange(256)]) + data[at + 1 :]
            (scratch / f"{number}.pkl").write_bytes(data)
            files[f"{number}.pkl"] = data
        result = harness.run(msprobe, ["inspect", "--json", *files], scratch)
        for facts in json.loads(result.stdout):
            data = files[facts["path"]]
            globals_ = facts["file"].get("globals", [])
            told = {entry["name"] for entry in globals_}
            hidden = any("?" in entry["name"] and entry["rating"] != "ok" for entry in globals_)
            for reader in (pickle.Unpickler, pickle._Unpickler):
                names = names_by_python(data, reader)
                if facts["problems"] == ["not a file type that msprobe recognizes"]:
                    names = [(m, n) for m, n in names if m in IMPORTABLE]
                named += len(names)
                missing = [f"{m}.{n}" for m, n in names if f"{m}.{n}" not in told]
                hidden = hidden or any("beyond its frame" in problem for problem in facts["problems"])
                harness.check(not missing or hidden, f"{data!r}: {missing} is not among {told}")
    harness.check(named > 1000, f"only {named} names in all")


def of_dumps_with_tensors(msprobe, scratch):
    """With the gate every file below is rated, without it none is."""
    rank = scratch / "dump" / "step0" / "rank0"
    (rank / "dump_tensor_data").mkdir(parents=True)
    (rank / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch", "data": {}}))
    statuses = [harness.run(msprobe, ["inspect", "--fail-on", "unknown", "dump"], scratch).returncode]
    (rank / "dump_tensor_data" / "x.pt").write_bytes(b"\x80\x02" + CALL + b".")
    for arguments in (["--fail-on", "dangerous"], ["--fail-on", "unknown"], []):
        statuses.append(harness.run(msprobe, ["inspect", *arguments, "dump"], scratch).returncode)
    harness.check_equal("statuses", statuses, [0, 1, 1, 0])


harness.main_of_script()
