#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archive with the static command: what is in it, and that it works where nothing else is.

usage: archive.py DIST VERSION MACHINE [EMULATOR]     EMULATOR: a static qemu, for an archive of another machine
"""

import pathlib
import re
import shutil
import struct
import sys
import tarfile

import roots
from roots import harness


def interpreter(path):
    """The dynamic linker that an ELF file asks for; None if it is static."""
    data = path.read_bytes()
    harness.check(data[:6] == b"\x7fELF\x02\x01", f"{path.name} is no ELF file of 64 bits")
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        kind, _, begin, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + number * size)
        if kind == 3:  # PT_INTERP
            return data[begin:begin + length].rstrip(b"\0").decode()
    return None


def unpack(archive, folder):
    with tarfile.open(archive) as file:
        file.extractall(folder)
    root, = folder.iterdir()
    return root


def make_tests(dist, version, machine, *emulator):
    archive = pathlib.Path(dist) / f"msprobe-{version}-linux-{machine}.tar.gz"
    if not archive.exists():
        return [roots.absent(archive.name)]

    def contents(scratch):
        root = unpack(archive, scratch)
        harness.check_equal("folder", root.name + ".tar.gz", archive.name)
        names = sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())
        pages = [name for name in names if name.startswith("share/man/man1/msprobe")]
        harness.check("share/man/man1/msprobe-compare.1" in pages and len(pages) >= 9, f"pages: {pages}")
        for name in ("bin/msprobe", "share/bash-completion/completions/msprobe", "share/zsh/site-functions/_msprobe",
                     "share/fish/vendor_completions.d/msprobe.fish", "share/doc/msprobe/licences/msprobe.txt",
                     "share/doc/msprobe/licences/libtbb-dev.txt", "share/doc/msprobe/licences/libc6-dev.txt",
                     "share/doc/msprobe/README.md", "share/doc/msprobe/docs/getting-started.md"):
            harness.check(name in names, f"{name} is missing")
        harness.check_equal("dynamic linker", interpreter(root / "bin/msprobe"), None)
        if not emulator:
            done = harness.run(str(root / "bin/msprobe"), ["docs", "getting-started"], scratch)
            harness.check(done.stdout.startswith("# Getting started\n"), done.stderr)

    def empty_root(scratch):
        root = unpack(archive, scratch) / "bin"
        shutil.copytree(roots.SAMPLES, root / "samples")
        program = ["/msprobe"]
        if emulator:
            shutil.copy(emulator[0], root / "emulator")
            program = ["/emulator", "/msprobe"]
        told = roots.run(root, [*program, "--version"])
        harness.check_equal("exit status of --version", told.returncode, 0)
        first, *lines = told.stdout.splitlines()
        harness.check_equal("version", first, f"msprobe {version}")
        facts = dict(line.split(maxsplit=1) for line in lines)
        harness.check_equal("linked", facts["linked"], "statically")
        kernels = {"x86_64": ("sse2", "avx2", "avx512"), "aarch64": ("neon",)}[machine]
        harness.check(facts["arithmetic"].split(" (")[0] in kernels, f"kernels: {facts['arithmetic']}")
        done = roots.run(root, [*program, "compare", "-tp", "/samples/tile", "-gp", "/samples/golden", "-o", "/out",
                                "--format", "csv,xlsx,html"])
        roots.check_compared(done, root / "out")

    def same_results(scratch):
        other = pathlib.Path(dist) / f"msprobe-{version}-linux-x86_64.tar.gz"
        if not emulator or not other.exists():
            raise harness.Skip("for an archive of another machine than x86_64, with that one beside it")
        results = []
        for name, file, before in (("here", other, []), ("there", archive, emulator)):
            (scratch / name).mkdir()
            program = unpack(file, scratch / name) / "bin/msprobe"
            out = scratch / name / "out"
            done = harness.run(str((before or [program])[0]), [*([str(program)] if before else []), "compare", "-tp",
                               str(roots.SAMPLES / "tile"), "-gp", str(roots.SAMPLES / "golden"), "-o", str(out),
                               "--format", "csv,jsonl,md"], scratch)
            harness.check_equal("exit status", done.returncode, 0)
            files = {re.sub(r"\d{14}", "", str(one.relative_to(out))): one.read_bytes() for one in out.rglob("*") if one.is_file()}
            results.append({**files, "said": re.sub(r"\d{14}", "", done.stdout + done.stderr).replace(str(out), "").encode()})
        harness.check_equal("files", sorted(results[1]), sorted(results[0]))
        for name, text in results[0].items():
            harness.check(results[1][name] == text, f"{name} differs")
        harness.check(sum(map(len, results[0].values())) > 50000, "too little was compared")

    return [("what the archive holds", contents), ("the command in an empty root", empty_root),
            ("the same results as on x86_64", same_results)]


if __name__ == "__main__":
    sys.exit(harness.tap(make_tests(*sys.argv[1:])))
