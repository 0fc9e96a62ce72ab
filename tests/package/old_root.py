#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The static command and the wheel in the root file system of an older distribution, which has Python and its venv:
    debootstrap --variant=minbase --include=python3-venv,locales bullseye ROOT

usage: old_root.py DIST VERSION MACHINE ROOT
"""

import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tarfile

import roots
from roots import harness


def talk(command, environment, text):
    """The output of the command on a terminal after `text` was typed; its exit status, negative for a signal."""
    here, there = pty.openpty()
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=environment, close_fds=True)
    os.close(there)
    os.write(here, text)
    said = b""
    while True:
        try:
            block = os.read(here, 4096)
        except OSError:  # the terminal's other end is closed
            break
        if not block:
            break
        said += block
    os.close(here)
    return process.wait(harness.TIME_LIMIT_S), said.decode(errors="replace")


def make_tests(dist, version, machine, root):
    dist = pathlib.Path(dist)
    root = pathlib.Path(root)
    archive = dist / f"msprobe-{version}-linux-{machine}.tar.gz"
    wheels = sorted(dist.glob(f"msprobe*-{version}-cp38-abi3-*_{machine}.whl"))
    if not archive.exists() or not wheels:
        return [roots.absent("archive or wheel")]
    work = root / "tmp/msprobe-test"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    shutil.copytree(roots.SAMPLES, work / "samples")
    with tarfile.open(archive) as file:
        file.extractall(work)
    shutil.copy(wheels[0], work)
    inside = f"/tmp/msprobe-test/{archive.name.removesuffix('.tar.gz')}/bin/msprobe"

    def compares(program, name):
        done = roots.run(root, [program, "compare", "-tp", "/tmp/msprobe-test/samples/tile", "-gp",
                                "/tmp/msprobe-test/samples/golden", "-o", f"/tmp/msprobe-test/{name}", "--format",
                                "csv,xlsx,html"])
        roots.check_compared(done, work / name)

    def command(_):
        compares(inside, "static")

    def wheel(_):
        for arguments in (["python3", "-m", "venv", "/tmp/msprobe-test/venv"],
                          ["/tmp/msprobe-test/venv/bin/pip", "install", "--no-index", "--no-deps",
                           f"/tmp/msprobe-test/{wheels[0].name}"]):
            done = roots.run(root, arguments)
            harness.check(done.returncode == 0, done.stdout + done.stderr)
        compares("/tmp/msprobe-test/venv/bin/msprobe", "pip")
        done = roots.run(root, ["/tmp/msprobe-test/venv/bin/python", "-c",
                                "import msprobe._native; from msprobe.core import command; print(command.find())"])
        harness.check_equal("module and command", (done.stdout.strip(), done.stderr),
                            ("/tmp/msprobe-test/venv/bin/msprobe", ""))

    def encoding(_):
        made = roots.run(root, ["localedef", "-i", "zh_CN", "-f", "GBK", "zh_CN.GBK"])
        if made.returncode != 0:
            raise harness.Skip("the root cannot make the locale zh_CN.GBK")
        see = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp/msprobe-test", "LC_ALL": "zh_CN.gbk", "TERM": "dumb"}
        status, said = talk([*roots.enter(root), inside, "parse"], see, b"help\n\xc4\xe3\nexit\n")
        harness.check(status == 0 and "Converts the kernel dumps" in said, f"status {status}\n{said}")

    return [("the static command", command), ("the wheel", wheel), ("a terminal in another encoding than UTF-8", encoding)]


if __name__ == "__main__":
    sys.exit(harness.tap(make_tests(*sys.argv[1:])))
