#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/gallery.md: of each script the mistake, and what msprobe prints about its wrong run against its right one.

usage: make.py MSPROBE SCRATCH      with the collector and PyTorch at hand; scripts/gallery calls it
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "gallery.md"

# In the order of the page: the entry that has to be named, and the kind of the finding.
MISTAKES = {
    "zero_grad": ("Module.2.Linear.parameters_grad.0", "gradient"),
    "accumulation": ("Tensor.__truediv__.0.forward", "removed"),
    "clipping": ("optimizer", "optimizer"),
    "weight_decay": ("optimizer", "optimizer"),
    "dropout": ("Functional.dropout.0.forward", "argument"),
    "epsilon": ("Functional.layer_norm.0.forward", "argument"),
    "scale": ("Tensor.__truediv__.0.forward", "argument"),
    "mask": ("Tensor.masked_fill.0.forward", "unrecorded"),
    "labels": ("Functional.cross_entropy.0.forward", "unrecorded"),
    "load_state": ("Functional.linear.1.forward", "parameter"),
    "data_order": ("Functional.linear.0.forward", "data"),
    "detach": ("Tensor.__mul__.0.forward", "requires_grad"),
}

INTRODUCTION = """# Twelve usual mistakes, and what msprobe prints about them

```
$ python docs/gallery/epsilon.py right
$ python docs/gallery/epsilon.py wrong wrong
$ msprobe compare -tp wrong -gp right -o out | head -n 2
culprit: module 1 > Functional.layer_norm.0.forward, step 0, rank 0   certain
   argument eps (input.4) is 0.001, golden 1e-05; output error 1.5e-03 from inputs 0
```

Each script makes two runs, a right one and one with the mistake that `WRONG` turns on. Both are recorded with task `tensor`,
level `mix`. Below the part of the script that has the mistake is the first paragraph of `msprobe compare -tp wrong -gp right`.
The scripts import `record()` from [recording.py](gallery/recording.py), which calls the debugger around each step.

The answer names the first place where the runs differ, which is not always the line with the mistake: a mask or labels, which
only move data, are named where they are used, and changed gradients at the optimizer.
"""


def code_of(name):
    """The heading, which leads to the script, and its paragraph with the mistake."""
    text = (HERE / f"{name}.py").read_text("utf-8")
    title = re.search(r'^"""(.+)\."""\n', text, re.MULTILINE)
    parts = re.split(r"\n{2,}", text[title.end():].strip("\n"))
    (code,) = (part for part in parts[1:] if "WRONG" in part)  # the first part imports it
    return f"[{title[1]}](gallery/{name}.py)", textwrap.dedent(code)


def run_script(script, *arguments):
    subprocess.run([sys.executable, script, *arguments], check=True, capture_output=True,
                   env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, timeout=300)


def record(name, scratch, run_script=run_script):
    """Records both runs, as rank 0, and returns their folders: wrong, right."""
    for run in ("wrong", "right"):
        run_script(HERE / f"{name}.py", scratch / name / run, run)
        for folder in (scratch / name / run).glob("step*/proc*"):
            folder.rename(folder.with_name("rank0"))
    return scratch / name / "wrong", scratch / name / "right"


def compare(msprobe, wrong, right, *options):
    done = subprocess.run([msprobe, "compare", "-tp", wrong, "-gp", right, *options], capture_output=True, text=True, timeout=300,
                          check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.stdout, done.stderr


def named(msprobe, wrong, right):
    """Entry and kind of the first finding."""
    told, _ = compare(msprobe, wrong, right, "--format", "jsonl", "-o", "-")
    first = next(one for one in map(json.loads, told.splitlines()) if one["kind"] != "row")
    return first["entry"] or first["golden_entry"], first["kind"]


def answer(msprobe, wrong, right):
    """The first paragraph that people see."""
    told = "".join(compare(msprobe, wrong, right, "-o", wrong.parent / "out"))
    return told.strip("\n").split("\n\n")[0].replace(f"{HERE}/", "")


def page(msprobe, scratch):
    parts = [INTRODUCTION]
    for name in MISTAKES:
        title, code = code_of(name)
        said = answer(msprobe, *record(name, scratch))
        parts.append(f"## {title}\n\n```python\n{code}\n```\n\n```\n{said}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(sys.argv[1], pathlib.Path(sys.argv[2]).resolve()), "utf-8")
    print(f"written: docs/{PAGE.name}")
