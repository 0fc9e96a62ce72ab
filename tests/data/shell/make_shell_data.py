# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of the shell's tests beside this script, and what the Python tool answers to peer.json.

usage: python make_shell_data.py    (needs numpy, rich and a mindstudio-probe of 1.x to 8.3.x)
"""

import contextlib
import csv
import io
import json
import os
import pathlib
import re
import shutil
import tempfile

import numpy

HERE = pathlib.Path(__file__).parent
TIME = "1636595794731103"
COMMANDS = [
    "pt -n left.npy",
    "pt -n whole.npy",
    "pt -n half.npy",
    "cn -m left.npy -g right.npy -p 5",
    "cn -m half.npy -g double.npy -s",
    "cn -m left.npy -g left.npy",
    "cn -m whole.npy -g whole.npy -al 1 -rl 0.5 -p 3",
    "cn -m left.npy -g shifted.npy -al 0.06 -rl 0.1",
]


def make_inputs():
    random = numpy.random.default_rng(3)
    left = random.normal(size=(3, 10)).astype("f4")
    right = left.copy()
    right[0, 5] += 0.1
    right[2, 3] = numpy.nan
    right[1, 1] = numpy.inf
    numpy.save("left.npy", left)
    numpy.save("right.npy", right)
    numpy.save("shifted.npy", left + numpy.float32(0.125))
    numpy.save("half.npy", random.normal(size=7).astype("f2"))
    numpy.save("double.npy", random.normal(size=5))
    numpy.save("whole.npy", numpy.arange(-3, 9).reshape(3, 4))
    for side in ("mine", "golden"):
        for operation in ("add", "mul"):
            folder = pathlib.Path(side, operation, TIME)
            folder.mkdir(parents=True, exist_ok=True)
            for number, dtype in enumerate(("f4", "f2", "f8")):
                array = numpy.random.default_rng(number).normal(size=(4, 5)).astype(dtype)
                if side == "golden":
                    array = (array * (1 + 0.01 * (operation == "mul"))).astype(dtype)
                    array.flat[0] = 0
                numpy.save(folder / f"X.{operation}.1.2.{TIME}.input.{number}.npy", array)
            factor = 2 if (side, operation) == ("golden", "mul") else 1
            numpy.save(folder / f"X.{operation}.1.2.{TIME}.output.0.npy", numpy.arange(6, dtype="i4") * factor)


def rows_of(text):
    """Cells of the tables that rich draws, one list a line."""
    return [[cell.strip() for cell in re.split("[│┃]", line) if cell.strip()] for line in text.splitlines()]


def ask(shell, command):
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        shell.onecmd(command)
    text = screen.getvalue()
    specs = re.findall(r"(\[Shape: .*?\]) (\[Dtype: .*?\]) \[Max: (.*?)\] \[Min: (.*?)\] \[Mean: (.*?)\]", text)
    values = dict(re.findall(r"(NumCnt|AllClose|CosSim|ErrorPer): +(.*?) *│", text))
    data = [row[1] for row in rows_of(text) if len(row) >= 2 and row[0].isdigit() and command.startswith("pt")]
    return {"specs": specs, "data": data, **values}


def main():
    os.chdir(HERE)
    make_inputs()
    for alias, name in (("unicode_", "str_"), ("float_", "float64")):
        if not hasattr(numpy, alias):  # the tool is older than NumPy 2
            setattr(numpy, alias, getattr(numpy, name))
    os.environ["COLUMNS"] = "400"
    from msprobe.pytorch.parse_tool.lib.interactive_cli import InteractiveCli

    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(HERE, scratch, dirs_exist_ok=True)
        os.chdir(scratch)
        shell = InteractiveCli()
        answers = {command: ask(shell, command) for command in COMMANDS}
        shell.onecmd("vc -m mine -g golden -out result")
        (table,) = pathlib.Path("result").glob("*.csv")
        with open(table, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        texts = {name: pathlib.Path(name).read_text(encoding="utf-8") for name in ("left.npy.txt", "half.npy.txt")}
    document = {"answers": answers, "vc": rows, "texts": texts}
    (HERE / "peer.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


main()
