# SPDX-License-Identifier: Apache-2.0
"""Code that the tests of packages share: programs run with a folder as their root, and what the sample dumps compare to."""

import csv
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import harness

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLES = SOURCE / "data" / "samples"


def absent(name):
    """A test that says that nothing was made."""

    def skip(_):
        raise harness.Skip("not in dist/: scripts/package makes it")

    return name, skip


def check_compared(done, out):
    """A comparison of the samples, as csv, xlsx and html, told and wrote what is known of them."""
    harness.check_equal("exit status", (done.returncode, done.stderr if done.returncode else ""), (0, ""))
    said = done.stdout + done.stderr
    harness.check("culprit: Functional.linear.6.forward, step 0, rank 1   certain\n" in said, said)
    harness.check("210 rows: 116 equal, 78 rounding, 1 introduced, 15 propagated, 0 not compared\n" in said, said)
    kinds = sorted(one.suffix for one in out.rglob("*") if one.is_file())
    harness.check_equal("files", kinds, [".csv", ".csv", ".html", ".xlsx", ".xlsx"])
    table = next(out.rglob("compare_result_rank1_*.csv"))
    with open(table, encoding="utf-8-sig", newline="") as file:
        introduced = [row["NPU Name"] for row in csv.DictReader(file) if row["Origin"] == "introduced"]
    harness.check_equal("introduced", introduced, ["Functional.linear.6.forward.output.0"])


def check_description(path):
    """The index accepts the metadata of a wheel or an sdist, and shows its description."""
    if shutil.which("twine") is None:
        raise harness.Skip("no twine")
    done = subprocess.run(["twine", "check", "--strict", path], capture_output=True, text=True, timeout=120, check=False)
    harness.check_equal("twine check", done.returncode, 0)


def enter(root):
    """The beginning of a command line that runs what follows with `root` as /. Skip if that is not allowed here."""
    if os.geteuid() == 0:
        return ["chroot", str(root)]
    allowed = subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True, check=False)
    if allowed.returncode != 0:
        raise harness.Skip("neither root nor user namespaces")
    return ["unshare", "--map-root-user", f"--root={root}"]


def run(root, command, **more):
    return subprocess.run(
        [*enter(root), *command],
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/", "LC_ALL": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=harness.TIME_LIMIT_S,
        check=False,
        **more,
    )
