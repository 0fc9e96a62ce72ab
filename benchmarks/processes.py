# SPDX-License-Identifier: Apache-2.0
"""Trainings that are timed, each in a process of its own."""

import json
import os
import subprocess
import tempfile


def run_child(python, script, words, package):
    """What `script --child WORDS FOLDER PACKAGE` prints as its last line, JSON. FOLDER is empty, and goes; PACKAGE, or "", is
    what PYTHONPATH is set to."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if package:
        environment["PYTHONPATH"] = package
    with tempfile.TemporaryDirectory(prefix="msprobe_bench_") as folder:
        command = [python, "-W", "ignore", script, "--child", *words, folder, package or ""]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{', '.join(words)}: status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])
