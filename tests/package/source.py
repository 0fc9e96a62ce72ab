#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source archive: it builds where there is no network, with none of the system's libraries, and what it builds works.
That for pip: pip builds it, where it can get what that takes.

usage: source.py DIST VERSION MACHINE
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import roots
from roots import harness


def make_tests(dist, version, _machine):
    archive = pathlib.Path(dist).resolve() / f"msprobe-{version}.tar.gz"
    if not archive.exists():
        return [roots.absent(archive.name)]

    def builds(scratch):
        with tarfile.open(archive) as file:
            file.extractall(scratch)
        tree = scratch / f"msprobe-{version}"
        allowed = subprocess.run(["unshare", "--map-root-user", "--net", "true"], capture_output=True, check=False)
        alone = ["unshare", "--map-root-user", "--net"] if allowed.returncode == 0 else []
        if not alone:
            raise harness.Skip("no namespace without a network")
        see = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
        for command in (
            ["meson", "setup", "build", "--wrap-mode=forcefallback", "-Dtests=false", "-Dbuildtype=plain", "-Doptimization=0",
             "-Db_ndebug=true", "-Dunity=on", "-Dunity_size=24"],
            ["ninja", "-C", "build", "src/msprobe"],
        ):
            done = subprocess.run([*alone, *command], cwd=tree, env=see, capture_output=True, text=True, check=False)
            harness.check(done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:])
        needed = subprocess.run(["readelf", "--dynamic", tree / "build/src/msprobe"], capture_output=True, text=True,
                                check=True).stdout
        for library in ("tbb", "expat", "libedit", "yaml", "libz."):
            harness.check(library not in needed, f"the system's {library} was taken")
        done = harness.run(str(tree / "build/src/msprobe"),
                           ["compare", "-tp", str(roots.SAMPLES / "tile"), "-gp", str(roots.SAMPLES / "golden"), "-o",
                            str(scratch / "out"), "--format", "csv,xlsx,html"], scratch)
        roots.check_compared(done, scratch / "out")
        shutil.rmtree(tree)

    sdist = archive.with_name(f"msprobe_native-{version}.tar.gz")

    def described(_):
        roots.check_description(sdist)

    def pip(scratch):
        subprocess.run(["/usr/bin/python3", "-m", "venv", scratch / "venv"], check=True)
        got = subprocess.run([scratch / "venv/bin/pip", "download", "--no-deps", "--dest", scratch, "meson-python"],
                             capture_output=True, text=True, check=False)
        if got.returncode != 0:
            raise harness.Skip("pip gets no meson-python here")
        done = subprocess.run([scratch / "venv/bin/pip", "wheel", "--no-deps", "--wheel-dir", scratch / "made", sdist],
                              capture_output=True, text=True, check=False)
        harness.check(done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:])
        wheel, = (scratch / "made").iterdir()
        harness.check(wheel.name.startswith(f"msprobe_native-{version}-"), wheel.name)
        roots.check_description(wheel)

    return [("twine check of the sdist", described), ("pip builds the sdist", pip), ("the source archive builds without a network", builds)]


if __name__ == "__main__":
    sys.exit(harness.tap(make_tests(*sys.argv[1:])))
