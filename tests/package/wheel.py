#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel: what is in it, and that pip alone makes it work, in a fresh environment on a PATH without compiler.

usage: wheel.py DIST VERSION MACHINE [EMULATOR]     with an emulator, as the wheel is for another machine, pip is left out
"""

import base64
import csv
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import roots
from roots import harness


BASE = "/usr/bin/python3"  # with NumPy and PyTorch of Debian's


def make_tests(dist, version, machine, *emulator):
    found = sorted(pathlib.Path(dist).resolve().glob(f"msprobe*-{version}-cp38-abi3-*_{machine}.whl"))
    if not found:
        return [roots.absent("wheel")]
    wheel, = found

    def contents(_):
        glibc = re.search(r"-manylinux_2_(\d+)_", wheel.name)
        harness.check(glibc is not None and int(glibc[1]) <= 28, f"tag of {wheel.name}")
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
            distribution = wheel.name.split("-")[0]
            info = f"{distribution}-{version}.dist-info/"
            rows = list(csv.reader(file.read(info + "RECORD").decode().splitlines()))
            harness.check_equal("files in RECORD", [row[0] for row in rows], names)
            for name, kind, size in rows[:-1]:
                data = file.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                harness.check_equal(name, (kind, size), ("sha256=" + digest, str(len(data))))
            told = file.read(info + "METADATA").decode()
        harness.check(f"\nVersion: {version}\nSummary: " in told and "\nRequires-Dist: numpy\n" in told, told[:500])
        for name in ("msprobe/_native.abi3.so", f"{distribution}-{version}.data/scripts/msprobe",
                     f"{distribution}-{version}.data/data/share/man/man1/msprobe.1", info + "licenses/msprobe.txt"):
            harness.check(name in names, f"{name} is missing")

    def environment(scratch, packages):
        """A fresh environment with the wheel, and what a program in it sees: no compiler, nothing of the source tree."""
        made = subprocess.run([BASE, "-m", "venv", *packages, scratch / "venv"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise harness.Skip(f"no virtual environments: {made.stdout.strip() or made.stderr.strip()}")
        see = {"PATH": str(scratch / "venv/bin"), "HOME": str(scratch), "LC_ALL": "C.UTF-8"}
        for compiler in ("cc", "gcc", "c++", "g++", "clang"):
            harness.check(not (scratch / "venv/bin" / compiler).exists(), compiler)
        # Its dependencies are in the base, or not needed: the test asks no network.
        deps = [] if packages else ["--no-deps"]
        run(see, scratch, "pip", "install", "--no-index", *deps, wheel)
        return see

    def run(see, scratch, program, *arguments):
        done = subprocess.run([scratch / "venv/bin" / program, *arguments], cwd=scratch, env=see, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
        harness.check(done.returncode == 0, f"{program} {arguments}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def command(scratch):
        see = environment(scratch, [])
        harness.check_equal("version", run(see, scratch, "msprobe", "--version").stdout.splitlines()[0], f"msprobe {version}")
        done = run(see, scratch, "msprobe", "compare", "-tp", roots.SAMPLES / "tile", "-gp", roots.SAMPLES / "golden",
                   "-o", scratch / "out", "--format", "csv,xlsx,html")
        roots.check_compared(done, scratch / "out")
        harness.check((scratch / "venv/share/man/man1/msprobe-compare.1").exists(), "no manual page")
        told = run(see, scratch, "msprobe", "docs", "getting-started").stdout
        harness.check(told.startswith("# Getting started\n"), "the documents are not found")
        told = run(see, scratch, "msprobe", "docs", "skill").stdout
        harness.check(told.startswith("---\nname: msprobe\n"), "the skill is not found")

    def recording(scratch):
        if subprocess.run([BASE, "-c", "import torch, numpy"], capture_output=True, check=False).returncode != 0:
            raise harness.Skip(f"{BASE} has no PyTorch")
        see = environment(scratch, ["--system-site-packages"])
        where = run(see, scratch, "python", "-c", "import msprobe; print(msprobe.__file__)").stdout.strip()
        harness.check(where.startswith(str(scratch / "venv")), f"msprobe is {where}")
        for name, gelu in (("exact", "none"), ("tanh", "tanh")):
            run(see, scratch, "python", roots.SOURCE / "docs/record.py", scratch / name, gelu)
        # From Python, which finds the command that pip put beside it.
        program = (
            "import sys\n"
            "from msprobe.pytorch import compare\n"
            "compare({'npu_path': sys.argv[1], 'bench_path': sys.argv[2]}, 'out', auto_analyze=False, format='csv')\n"
        )
        dumps = [next((scratch / name / "step0").glob("*/dump.json")) for name in ("tanh", "exact")]
        run(see, scratch, "python", "-c", program, *dumps)
        table, = (scratch / "out").rglob("*.csv")
        with open(table, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        introduced = [row["NPU Name"] for row in rows if row["Origin"] == "introduced"]
        harness.check(introduced and "gelu" in introduced[0].lower(), f"introduced: {introduced}")

    def described(_):
        roots.check_description(wheel)

    def audited(_):
        program = shutil.which("auditwheel")
        if program is None:
            raise harness.Skip("no auditwheel")
        done = subprocess.run([program, "show", wheel], capture_output=True, text=True, timeout=120, check=False)
        tag = wheel.name.split("-")[-1].removesuffix(".whl")
        said = " ".join(done.stdout.split())
        harness.check(f'is consistent with the following platform tag: "{tag}".' in said, done.stdout + done.stderr)

    if emulator:
        return [("what the wheel holds", contents), ("twine check", described), ("auditwheel", audited)]
    return [("what the wheel holds", contents), ("twine check", described), ("auditwheel", audited), ("the command from the wheel", command),
            ("a recording and its comparison from the wheel", recording)]


if __name__ == "__main__":
    sys.exit(harness.tap(make_tests(*sys.argv[1:])))
