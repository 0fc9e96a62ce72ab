# SPDX-License-Identifier: Apache-2.0
"""Programs run with a folder as their root: by chroot for root, else in a user namespace."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import harness  # noqa: E402


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
