# SPDX-License-Identifier: Apache-2.0
"""Real dumps of two runs of a model, for the checks that compare what both tools make of them."""

import contextlib
import pathlib
import subprocess
import tempfile

VARIANTS = ("statistics-mix", "md5-mix", "tensor-mix")
SHOWN = 20


@contextlib.contextmanager
def recorded_pairs(python, dumps=None):
    """A scratch folder, and (variant, target, golden) for each pair in a folder that make_real_dumps.py wrote; without
    one it is written by that Python."""
    with tempfile.TemporaryDirectory(prefix="msprobe-pairs-") as scratch:
        scratch = pathlib.Path(scratch)
        if dumps is None:
            dumps = scratch / "dumps"
            recorder = pathlib.Path(__file__).with_name("make_real_dumps.py")
            only = [word for name in VARIANTS for word in ("--only", name)]
            subprocess.run([python, "-W", "ignore", recorder, dumps, *only], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=True)
        yield scratch, [(name, *(str(pathlib.Path(dumps) / name / side) for side in ("target", "golden")))
                        for name in VARIANTS]


def tell(name, what, found):
    """Prints what differs; whether there is something."""
    print(f"{'FAILED' if found else 'ok'} {name}: {what}, {len(found)} differ", flush=True)
    for line in found[:SHOWN]:
        print(f"  {line}", flush=True)
    return bool(found)
