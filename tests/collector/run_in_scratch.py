# SPDX-License-Identifier: Apache-2.0
"""usage: run_in_scratch.py FILE-THAT-MUST-BE-THERE... -- COMMAND [ARGUMENT...]

Runs a command in a scratch folder, in which "{}" of its arguments stands for that folder, and looks for files
(patterns) that it must leave there.
"""

import pathlib
import subprocess
import sys
import tempfile


def main():
    split = sys.argv.index("--")
    patterns, command = sys.argv[1:split], sys.argv[split + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        command = [str(pathlib.Path(command[0]).resolve())] + [word.replace("{}", folder) for word in command[1:]]
        result = subprocess.run(command, check=False, cwd=folder)
        if result.returncode != 0:
            sys.exit(f"{command[0]} ended with {result.returncode}")
        missing = [pattern for pattern in patterns if not list(pathlib.Path(folder).glob(pattern))]
        if missing:
            sys.exit(f"not written: {', '.join(missing)}")


main()
