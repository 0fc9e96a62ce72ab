# SPDX-License-Identifier: Apache-2.0
"""Timed trainings, each in a separate process."""

import json
import mmap
import os
import subprocess
import tempfile


# It goes with this process: ext4 passes over every inode that was freed in the last minutes before a new file gets one, so a
# run behind one whose files are removed takes several times as long.
_folders = tempfile.TemporaryDirectory(prefix="msprobe_bench_")


def run_child(python, script, words, package):
    """The last line, JSON, that `script --child WORDS FOLDER PACKAGE` prints. FOLDER is empty, and what is written there is
    cut to nothing; PACKAGE, or "", is what PYTHONPATH is set to."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if package:
        environment["PYTHONPATH"] = package
    folder = tempfile.mkdtemp(dir=_folders.name)
    command = [python, "-W", "ignore", script, "--child", *words, folder, package or ""]
    done = subprocess.run(command, check=False, env=environment, cwd=folder, capture_output=True, text=True)
    for base, _, names in os.walk(folder):
        for name in names:
            os.truncate(os.path.join(base, name), 0)
    if done.returncode != 0:
        raise SystemExit(f"{', '.join(words)}: status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def touch_memory(size):
    """Writes to as many GiB. The host of a virtual machine may have taken free memory back; pages that have to come from there
    again make a run several times as slow, and not always the same one."""
    with mmap.mmap(-1, size << 30) as memory:
        for offset in range(0, size << 30, mmap.PAGESIZE):
            memory[offset] = 1
