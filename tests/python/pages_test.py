# SPDX-License-Identifier: Apache-2.0
"""What the guides show is what happens: their scripts and commands run, page by page, in an empty folder.

A block of Python whose first line is `# NAME.py` is written to that file. Of a block that begins with `$ `, each such line is
run, and what follows it is what it says; behind a line of dots lines may have been left out, and a line without output promises
nothing but its status, which is 0 unless `$?` is asked for next. Digits of errors, times and process numbers may differ. With MSPROBE_TEST_ACCEPT=1 what is not so any more is written anew; of an output with dots, the first
paragraph, or the first line where only that was shown.
"""

import ast
import json
import pathlib
import re
import subprocess
import sys

from helpers import *
from msprobe.core import command

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ("getting-started", "collector", "training-checks", "nan", "checkpoints", "ci", "agents",
         "zh/getting-started", "zh/loss-differs", "zh/nan", "zh/ci", "zh/checkpoints", "zh/training-checks", "zh/collector",
         "../README.zh", "../skills/msprobe/SKILL")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)
try:
    torch.nn.GELU(approximate="tanh")
except TypeError:
    print("SKIPPED: this PyTorch has no approximate GELU, which the pages use")
    sys.exit(77)


def masked(line):
    line = re.sub(r"\d{14}", "TIME", line)
    line = re.sub(r"\bproc\d+", "procN", line)
    line = re.sub(r"\d+\.\d kB", "N kB", line)
    return re.sub(r"\d\.\d+e[+-]\d+|\d+\.\d{3,}", "N", line)


class Shell:
    """Commands one by one, each told the status of the one before."""

    def __init__(self, folder):
        self.folder, self.status = folder, 0
        folder.mkdir()
        (folder / "data").symlink_to(ROOT / "data")
        (folder / "bin").mkdir()
        (folder / "bin/msprobe").symlink_to(command.find())
        (folder / "bin/python").write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
        (folder / "bin/python").chmod(0o755)
        self.environment = dict(os.environ, PATH="%s:%s" % (folder / "bin", os.environ["PATH"]), LC_ALL="C.UTF-8",
                                PYTHONDONTWRITEBYTECODE="1", MSPROBE_LOG_LEVEL="3")

    def run(self, line):
        done = subprocess.run(["bash", "-c", "(exit %d)\n%s" % (self.status, line)], check=False, cwd=str(self.folder), env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.status = done.returncode
        return done.stdout.splitlines()


def parts(block):
    """(command, lines shown of what it says)"""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def shown_of(said, shown):
    """What is to be shown of it, in the form that it was shown in."""
    if not shown:
        return []
    if "…" not in shown:
        return said
    if shown[0] == "…" and shown[-1] != "…":
        return ["…", *said[1 - len(shown):]]
    paragraph = said[:said.index("")] if "" in said else said
    return [*(["…"] if shown[0] == "…" else []), *paragraph[:1 if len(shown) == 2 else None], "…"]


class Pages(Case):
    def check_said(self, said, shown):
        place, gap = 0, False
        said = [masked(line) for line in said]
        for line in map(masked, shown):
            if line == "…":
                gap = True
                continue
            if gap:
                self.assertIn(line, said[place:])
                place = said.index(line, place)
                gap = False
            self.assertEqual(said[place] if place < len(said) else None, line)
            place += 1
        if shown and not gap:
            self.assertEqual(said[place:], [])

    def run_page(self, page):
        path = ROOT / "docs" / (page + ".md")
        text = path.read_text("utf-8")
        shell = Shell(pathlib.Path(self.folder) / page.replace("/", "-").replace("..", ""))

        def one(fence):
            language, block = fence.groups()
            first = block.partition("\n")[0]
            if language == "python" and first.startswith("# ") and first.endswith(".py"):
                (shell.folder / first[2:]).write_text(block, "utf-8")
            elif language == "" and block.startswith("$ "):
                lines, typed_later = [], [typed for typed, _ in parts(block)[1:]]
                for typed, shown in parts(block):
                    said = shell.run(typed)
                    if typed_later[:1] != ["echo $?"]:
                        self.assertEqual(shell.status, 0, f"{page}: {typed}: {said}")
                    del typed_later[:1]
                    try:
                        self.check_said(said, shown)
                    except AssertionError as error:
                        if os.environ.get("MSPROBE_TEST_ACCEPT") == "1":
                            shown = shown_of(said, shown)
                        else:
                            with self.subTest(page=page, command=typed):
                                raise error
                    lines += ["$ " + typed, *shown]
                return "```\n%s\n```" % "\n".join(lines)
            return fence[0]

        again = FENCE.sub(one, text)
        if os.environ.get("MSPROBE_TEST_ACCEPT") == "1":
            path.write_text(again, "utf-8")
        return shell

    def test_pages(self):
        for page in PAGES:
            shell = self.run_page(page)
            if (shell.folder / "megatron_steps.py").exists():
                self.run_with_megatron_double(shell)

    def run_with_megatron_double(self, shell):
        """With a function in place of Megatron's, called as that calls it."""
        folder = shell.folder / "megatron"
        (folder / "training").mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "training/__init__.py").write_text("")
        (folder / "training/training.py").write_text(
            "import torch\n\n\ndef train_step(forward_step, data, model, optimizer):\n    model[0](data).sum().backward()\n\n\n"
            "def pretrain(model):\n    train_step(None, torch.ones(1, 4), model, None)\n")
        (shell.folder / "config.json").write_text('{"task": "statistics", "level": "mix", "dump_path": "./dump"}')
        (shell.folder / "use.py").write_text("import torch, megatron_steps\nfrom megatron.training import training\n"
                                             "training.pretrain([torch.nn.Sequential(torch.nn.Linear(4, 2))])\n")
        self.assertEqual(shell.run("rm -rf dump; python use.py"), [])
        header, = (shell.folder / "dump/step0").glob("*/dump.json")
        self.assertTrue([entry for entry in json.loads(header.read_text())["data"] if entry.startswith("Module.")])

    def test_code_of_all_pages_can_be_read(self):
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
            for language, block in FENCE.findall(path.read_text("utf-8")):
                with self.subTest(page=path.name, block=block):
                    if language == "python":
                        ast.parse(block)
                    elif language == "json":
                        json.loads(block)

    def test_record_is_the_script_of_the_demo(self):
        block = next(one for one in FENCE.finditer((ROOT / "docs/getting-started.md").read_text("utf-8")) if one[1] == "python")
        self.assertEqual(block[2].replace("# record.py\n", ""),
                         re.sub(r'^(#.*\n|""".*?"""\n)*', "", (ROOT / "docs/record.py").read_text("utf-8"), flags=re.DOTALL))


if __name__ == "__main__":
    unittest.main()
