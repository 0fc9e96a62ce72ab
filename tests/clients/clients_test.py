#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the calls that public programs make of msprobe, each in a separate process, and compares their output and the files
that they leave with expected/.

usage: clients_test.py PACKAGE [CASE...]    PACKAGE: the folder for PYTHONPATH
       clients_test.py --write PACKAGE [CASE...]

cases/NN_name.py makes the calls of one program, which its docstring names, with a tiny model in place of its engine. Those
up to 20 were found first, those from 21 on by a later search. expected/ is what the Python tool 26.2 leaves, but for lines
with a remark behind ` # `, which say what it leaves in their place.
"""

import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from prepared import Script

# The lines that a case shows, without warnings of PyTorch and lines of msprobe itself.
SHOWN = re.compile(r"^(  [A-Za-z0-9_./]+[:(/ ]|OK|FAIL|LACK|logged|one inst|two inst|   )")
NOT_SHOWN = re.compile(r"warnings\.warn|site-packages|dist-packages|loss\.backward|File \"|grad = |return |torch\.autograd|  Loss:")
# Needs torch.compile.
OF_PYTORCH_2 = re.compile(r"^(  (pass|-) |  RESULT|(OK|FAIL) +compile)")


def shown(text, out):
    lines = []
    for line in text.splitlines():
        if not SHOWN.match(line) or NOT_SHOWN.search(line):
            continue
        line = line.replace(out, "OUT")
        line = re.sub(r"<.*? object at 0x[0-9a-f]+>", "<object>", line)
        line = re.sub(r"\(\d+ bytes\)", "(bytes)", line)
        lines.append(re.sub(r"^(FAIL\s+[^:]*):.*", r"\1", line).rstrip())
    return lines


def run(case):
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out")
        done = Script(case, out, folder=scratch, quiet=True, merged=True, timeout=300).end()
        return shown(done.stdout, out), done


def main():
    arguments = sys.argv[1:]
    write = arguments[:1] == ["--write"]
    package, *wanted = arguments[1 if write else 0:]
    package = os.path.abspath(package)
    # The process that imports PyTorch has these, and so do the cases.
    os.environ.update(OMP_NUM_THREADS="1", PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    try:
        import torch
    except ImportError:
        print("SKIPPED: PyTorch is not installed (python3-torch)")
        return 77
    compiles = hasattr(torch, "compile")
    meets = torch.distributed.is_available() and getattr(torch.distributed, "is_gloo_available", lambda: True)()
    cases = [case for case in sorted((HERE / "cases").glob("[0-9]*.py"))
             if not wanted or any(case.name.startswith(one) for one in wanted)]
    if not meets:
        print("without gloo: cases of two ranks are left out")
        cases = [case for case in cases if "two_ranks" not in case.stem]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (ours, done) in zip(cases, pool.map(run, cases)):
            path = HERE / "expected" / f"{case.stem}.txt"
            if write:
                path.write_text("".join(line + "\n" for line in ours), encoding="utf-8")
                continue
            expected = [line.partition(" # ")[0].rstrip() for line in path.read_text(encoding="utf-8").splitlines()]
            if not compiles:
                ours, expected = ([line for line in lines if not OF_PYTORCH_2.match(line)] for lines in (ours, expected))
            good = ours == expected and done.returncode == 0
            failed += not good
            print(f"{case.stem}: {'as expected' if good else 'differs'}{'' if compiles or '11' not in case.stem else ', without torch.compile'}")
            if not good:
                for line in expected:
                    print("    - " + line if line not in ours else "      " + line)
                for line in ours:
                    if line not in expected:
                        print("    + " + line)
                print(done.stdout[-2000:])
    print(f"{len(cases) - failed} of {len(cases)} cases agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
