# SPDX-License-Identifier: Apache-2.0
"""The guides are true: their scripts and commands run, page by page, in an empty folder, with the output that is shown.

A block of Python whose first line is `# NAME.py` is written to that file first, because a page begins with its commands. In a
block that begins with `$ `, each such line is run, and its output is compared with the lines after it. A line of dots stands for
any lines; without lines only the status counts, which is 0 unless `$?` is asked for next. Digits of errors, times and process
numbers may differ. With MSPROBE_TEST_ACCEPT=1 outputs that differ are written to the page; an output with dots becomes the first
paragraph, or the first line where only that was shown. A Chinese page shows the same scripts and commands.
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
# The pages that explain a task. Each begins with a command and its output.
TASKS = ("agents", "checkpoints", "ci", "cluster", "collector", "gallery", "inspect", "loss-differs", "monitor", "monitor-report",
         "nan", "online-check", "operations", "pairing", "porting", "precheck", "python", "response-anomaly", "status-0",
         "training-checks")
COMPILED = ("compiled",)  # tasks that need torch.compile with operators that have effects
PAGES = ("getting-started", *TASKS, "../README.zh", "../skills/msprobe/SKILL")
TRANSLATED = [page for page in ("getting-started", *TASKS, *COMPILED) if (ROOT / f"docs/zh/{page}.md").exists()]
MOST_WORDS_BEFORE = 12  # the title
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
    line = re.sub(r"PyTorch \d\S*\w", "PyTorch V", line)
    return re.sub(r"\d\.\d+e[+-]\d+|\d+\.\d{3,}", "N", line)


class Shell:
    """Commands one by one, each told the status of the one before."""

    def __init__(self, folder):
        self.folder, self.status = folder, 0
        folder.mkdir()
        for name in ("data", "docs"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "bin").mkdir()
        (folder / "bin/msprobe").symlink_to(command.find())
        (folder / "bin/python").write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
        (folder / "bin/python").chmod(0o755)
        (folder / "bin/python3").symlink_to("python")
        self.environment = dict(os.environ, PATH="%s:%s" % (folder / "bin", os.environ["PATH"]), LC_ALL="C.UTF-8",
                                PYTHONDONTWRITEBYTECODE="1", MSPROBE_LOG_LEVEL="3")

    def run(self, line):
        done = subprocess.run(["bash", "-c", "(exit %d)\n%s" % (self.status, line)], check=False, cwd=str(self.folder), env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.status = done.returncode
        return done.stdout.splitlines()


def is_tried(fence):
    """Whether a block is a script with a name, or has commands."""
    return re.match(r"```python\n# \S+\.py\n|```\n\$ ", fence[0]) is not None


def tried_of(text):
    return [fence[0] for fence in FENCE.finditer(text) if is_tried(fence)]


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
    """The lines of an output to show, in the form in which it was shown."""
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

        for language, block in FENCE.findall(text):
            name = re.match(r"# (\S+\.py)\n", block)
            if language == "python" and name:
                (shell.folder / name[1]).write_text(block, "utf-8")

        def one(fence):
            language, block = fence.groups()
            if language == "" and block.startswith("$ "):
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
        for page in (*PAGES, *(COMPILED if VERSION >= (2, 6) else ())):
            shell = self.run_page(page)
            if (shell.folder / "megatron_steps.py").exists():
                self.run_with_megatron_double(shell)

    def test_tasks_begin_with_a_command_and_its_output(self):
        for page in (*TASKS, *COMPILED):
            with self.subTest(page=page):
                text = (ROOT / f"docs/{page}.md").read_text("utf-8")
                first = FENCE.search(text)
                self.assertLess(len(text[:first.start()].split()), MOST_WORDS_BEFORE)
                self.assertTrue(first[2].startswith("$ "), first[2])
                self.assertTrue(any(shown for _, shown in parts(first[2])), first[2])

    def test_chinese_pages_show_the_same_commands(self):
        for page in TRANSLATED:
            english, path = (ROOT / f"docs/{page}.md").read_text("utf-8"), ROOT / f"docs/zh/{page}.md"
            blocks, chinese = tried_of(english), path.read_text("utf-8")
            with self.subTest(page=page):
                if os.environ.get("MSPROBE_TEST_ACCEPT") == "1" and len(tried_of(chinese)) == len(blocks):
                    again = iter(blocks)
                    path.write_text(FENCE.sub(lambda fence: next(again) if is_tried(fence) else fence[0], chinese), "utf-8")
                else:
                    self.assertEqual(tried_of(chinese), blocks)

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
