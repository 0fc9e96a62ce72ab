#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: what they hold and depend on, lintian's opinion, and both installed by dpkg -i, used and removed.

usage: deb.py DIST VERSION MACHINE
"""

import gzip
import os
import pathlib
import shutil
import subprocess
import sys

import roots
from roots import harness

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def say(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **more)


def make_tests(dist, version, machine):
    folder = pathlib.Path(dist)
    packages = {name: folder / f"{name}_{version}_{ARCHITECTURES[machine]}.deb" for name in ("msprobe", "python3-msprobe")}
    if not all(path.exists() for path in packages.values()):
        return [roots.absent("deb")]

    def contents(scratch):
        if shutil.which("dpkg-deb") is None:
            raise harness.Skip("no dpkg")
        depends = {}
        for name, path in packages.items():
            fields = say("dpkg-deb", "--field", path, "Version", "Depends").stdout
            harness.check(f"Version: {version}\n" in fields, fields)
            depends[name] = {one.split()[0] for one in fields.partition("Depends: ")[2].strip().split(", ")}
            subprocess.run(["dpkg-deb", "--extract", path, scratch / name], check=True)
        harness.check_equal("what the command depends on", depends["msprobe"],
                            {"libc6", "libedit2", "libexpat1", "libgcc-s1", "libsqlite3-0", "libstdc++6", "libtbb12",
                             "libyaml-0-2", "zlib1g"})
        harness.check_equal("what the front end depends on", depends["python3-msprobe"],
                            {"libc6", "libgcc-s1", "python3", "python3-numpy"})
        for name, file in (("msprobe", "bin/msprobe"), ("msprobe", "share/man/man1/msprobe-parse.1.gz"),
                           ("msprobe", "share/doc/msprobe/docs/getting-started.md"),
                           ("python3-msprobe", "lib/python3/dist-packages/msprobe/_native.abi3.so")):
            harness.check((scratch / name / "usr" / file).is_file(), f"{file} is missing")
        for name in packages:
            told = gzip.decompress((scratch / name / f"usr/share/doc/{name}/changelog.gz").read_bytes()).decode()
            harness.check(told.startswith(f"{name} ({version}) ") and "    - msprobe compare: " in told, told[:200])

    def lint(_):
        if shutil.which("lintian") is None:
            raise harness.Skip("no lintian")
        # Not for Debian's archive: the package was not announced there, and no release of Debian is named.
        known = "initial-upload-closes-no-bugs,bad-distribution-in-changes-file"
        done = say("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", known, *packages.values())
        harness.check_equal("lintian", (done.returncode, done.stdout), (0, ""))

    def installed(scratch):
        if os.geteuid() != 0 or shutil.which("dpkg") is None:
            raise harness.Skip("not root, or no dpkg")
        for name in packages:
            if say("dpkg-query", "--show", name).returncode == 0:
                raise harness.Skip(f"{name} is installed already")
        done = say("dpkg", "-i", *packages.values())
        try:
            harness.check(done.returncode == 0, done.stdout + done.stderr)
            see = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "LC_ALL": "C.UTF-8"}
            done = say("/usr/bin/msprobe", "compare", "-tp", roots.SAMPLES / "tile", "-gp", roots.SAMPLES / "golden",
                       "-o", scratch / "out", "--format", "csv,xlsx,html", env=see, cwd=scratch)
            roots.check_compared(done, scratch / "out")
            done = say("/usr/bin/msprobe", "docs", "getting-started", env=see, cwd=scratch)
            harness.check(done.stdout.startswith("# Getting started\n"), done.stderr)
            done = say("/usr/bin/python3", "-c", "import msprobe._native; from msprobe.core import command; print(command.find())",
                       env=see, cwd=scratch)
            harness.check_equal("command that Python finds", (done.returncode, done.stdout.strip()), (0, "/usr/bin/msprobe"))
        finally:
            done = say("dpkg", "--purge", *packages)
        harness.check_equal("removal", done.returncode, 0)
        harness.check(not os.path.exists("/usr/lib/python3/dist-packages/msprobe/_native.abi3.so"), "files are left")

    return [("what the packages hold", contents), ("lintian", lint), ("dpkg -i", installed)]


if __name__ == "__main__":
    sys.exit(harness.tap(make_tests(*sys.argv[1:])))
