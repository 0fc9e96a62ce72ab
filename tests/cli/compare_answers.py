#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The answers of compare on small models: parallel layouts, sentences with two numbers, rows that no rule explains.

usage: compare_answers.py MSPROBE
"""

import re

import report_file
from dumps import call, tensor, write_rank
from harness import check, check_equal, main_of_script, run

LAYERS = [(32, 16), (32, 32), (32, 32)]
LAYOUTS_DIFFER = "two parallel layouts: "
MERGE = "--merge-ranks compares the ranks as one model"
NUMBER = r"[\d.]+(?:e[-+]\d+)?"
# Two numbers of which the sentence says that they differ.
BETWEEN = "(?: there, |, more than (?:the |errors of )| from inputs |[,;] (?:everything|all) [a-z ]*at most )"
COMPARED = re.compile(rf"(?:differs by|error) ({NUMBER}){BETWEEN}({NUMBER})")


def sized(size, shape=(64, 64), error=0.0, rough=0.0):
    """A tensor whose values spread around 0. `error` is that of all elements, `rough` that of the largest alone."""
    size *= 1 + error
    return tensor((2 * size * (1 + rough), -1.9 * size, 0.0123 * size, 64 * size), shape, requires_grad=True)


def compared(msprobe, scratch, target, golden, *options):
    return run(msprobe, ["compare", "-tp", target, "-gp", golden, "-o", "out", *options], scratch).stdout


def is_silent(said):
    return said.startswith("no culprit")


# ---------------------------------------------------------------------- layouts

def write_layout(folder, sharded, unwritten=None, kernel=0.0, copied=0.0):
    """A step of two ranks: three layers, their gradients, SGD. Ranks that are `sharded` hold half of each parameter: they copy
    it into a buffer, whose values are `unwritten` before, and update it. `kernel`: the error of the second layer's output;
    `copied`: of the values in its buffer."""
    for rank in range(2):
        data, parents = {}, {}

        def add(name, entry, parent=None, data=data, parents=parents):
            data[name], parents[name] = entry, parent

        def part(layer, size, rank=rank):
            rows, columns = LAYERS[layer]
            return sized(size * (0.7 + 0.05 * rank), (rows // 2, columns)) if sharded else sized(size, (rows, columns))

        taken = sized(1 + rank, (8, 16))
        for layer, (rows, columns) in enumerate(LAYERS):
            weight = sized(0.5 + layer, (rows, columns))
            if unwritten is not None:
                half = (rows * columns // 2,)
                buffer = tensor(unwritten, half)
                own = sized(0.5 + layer + rank / 8, half)
                add(f"Tensor.narrow.{layer}.forward", call([tensor(unwritten, (rows * columns,))], [buffer]))
                written = sized(0.5 + layer + rank / 8, half, copied if layer == 1 else 0)
                add(f"Tensor.copy_.{layer}.forward", call([buffer, own], [written]))
            given = sized(2 + layer + rank, (8, rows), kernel if layer == 1 else 0)
            add(f"Functional.linear.{layer}.forward", call([taken, weight], [given]))
            taken = given
        for layer in (2, 1, 0):
            add(f"Functional.linear.{layer}.backward", {"input": [sized(0.3 + layer + rank, (8, 32))],
                                                        "output": [sized(0.2 + layer + rank, (8, LAYERS[layer][1]))]})
        for layer in range(3):
            add(f"Tensor.add_.{layer}.forward",
                call([part(layer, 0.5 + layer), part(layer, 0.04 + layer)], [part(layer, 0.49 + layer)],
                     input_kwargs={"alpha": {"type": "float", "value": -0.1}}), "optimizer")
        write_rank(folder / "step0" / f"rank{rank}", data, parents)


def layouts(msprobe, scratch):
    """Optimizers that update parts of parameters, as FSDP2's, against those that update the whole, as DDP's."""
    write_layout(scratch / "whole", False)
    write_layout(scratch / "parts", True)
    for target, golden, of_parts in (("parts", "whole", "this run"), ("whole", "parts", "golden")):
        said = compared(msprobe, scratch, target, golden)
        check(is_silent(said), said)
        check(f"{LAYOUTS_DIFFER}the optimizer of {of_parts} updates parts of parameters" in said and MERGE in said, said)
    said = compared(msprobe, scratch, "parts", "parts")
    check(is_silent(said) and LAYOUTS_DIFFER not in said, said)
    write_layout(scratch / "wrong", True, kernel=0.2)
    said = compared(msprobe, scratch, "wrong", "whole")
    check(said.startswith("culprit: Functional.linear.1.forward, step 0, rank 0, 1"), said)
    check(LAYOUTS_DIFFER in said and MERGE in said, said)


def unwritten_buffers(msprobe, scratch):
    """NaN and other values in a buffer that no call has written yet, on one side or in one layout alone."""
    nan = float("nan")
    write_layout(scratch / "whole", False)
    write_layout(scratch / "nan", True, nan)
    write_layout(scratch / "zeros", True, 0.0)
    write_layout(scratch / "large", True, 5e20)
    of_one_layout = [("nan", "zeros"), ("zeros", "nan"), ("nan", "large"), ("large", "zeros")]
    for target, golden in (*of_one_layout, ("nan", "whole"), ("whole", "nan")):
        said = compared(msprobe, scratch, target, golden)
        check(is_silent(said), f"{target} against {golden}: {said}")
        check("has NaN" not in said, f"{target} against {golden}: {said}")
    write_layout(scratch / "wrong", True, nan, copied=0.3)
    said = compared(msprobe, scratch, "wrong", "zeros")
    check(said.startswith("culprit: Tensor.copy_.1.forward, step 0, rank 0, 1"), said)


# ---------------------------------------------------------------------- numbers

def write_chain(folder, error, rough, at_input, before):
    """Six layers with errors: of `before` in the first three, of the others from the fourth layer's input or output on."""
    data = {}
    for i in range(6):
        def is_late(behind, i=i):
            return i > 3 or (i == 3 and (behind or at_input))
        sides = [(error, rough) if is_late(behind) else (before, 0) for behind in (False, True)]
        data[f"Functional.linear.{i}.forward"] = call(
            [sized(1.37 + i, (64, 64), *sides[0]), sized(0.1 + i / 7)], [sized(2.37 + i, (64, 64), *sides[1])])
    write_rank(folder, data, level="L1")


def numbers(msprobe, scratch):
    """Sentences about two sizes print two numbers, also where they are close to each other or to a limit."""
    write_chain(scratch / "golden", 0, 0, False, 0)
    seen = 0
    for at_input in (False, True):
        for before in (1e-5, 1e-3, 0.1):
            for times in (1.01, 1.5, 9, 11):
                for error, rough in ((before * times, 0), (before, before * times)):
                    write_chain(scratch / "target", error, rough, at_input, before)
                    said = run(msprobe, ["compare", "-tp", "target", "-gp", "golden", "--format", "jsonl", "-o", "-"], scratch)
                    for first, second in COMPARED.findall(said.stderr):
                        seen += 1
                        check(float(first) != float(second), said.stderr)
    check(seen > 10, f"{seen} sentences that compare two numbers")


# ---------------------------------------------------------------------- the page

def write_block(folder, other=5.0, scaled=6.0):
    """A module that takes one tensor more than its calls; what follows it."""
    linear, module, mul = "Functional.linear.0.forward", "Module.block.Block.forward.0", "Torch.mul.0.forward"
    write_rank(folder, {linear: call([tensor(2.0)], [tensor(3.0)]), module: call([tensor(2.0), tensor(other)], [tensor(3.0)]),
                        mul: call([tensor(3.0)], [tensor(scaled)])}, {linear: module, module: None, mul: None})


def unclear_page(msprobe, scratch):
    """The terminal and the page report a row that no rule explains, before the culprit and without one."""
    write_block(scratch / "golden")
    write_block(scratch / "both", 5.5, 7.0)
    write_block(scratch / "unclear", 5.5)
    write_block(scratch / "clear", scaled=7.0)
    unclear = "1 row{} differs by more than rounding explains, and no rule could judge it"
    cases = [("both", True, unclear.format(" before it")), ("unclear", False, unclear.format("")), ("clear", True, None)]
    for target, culprit, words in cases:
        said, page, rows = report_file.compared(msprobe, scratch, scratch / target, scratch / "golden")
        check_equal(f"{target}: the page's text", report_file.summary_of(page).rstrip(), report_file.said_without_files(said))
        for text in (said, report_file.summary_of(page)):
            check_equal(f"{target}: a culprit", text.startswith("culprit: Torch.mul.0.forward"), culprit)
            check(words in text if words else "no rule could judge" not in text, text)
            check_equal(f"{target}: names the row", "Module.block.Block.forward.0" in text, words is not None)
        check_equal(f"{target}: rows", [row["NPU Name"] for row in rows if row["Origin"] == "unexplained"],
                    ["Module.block.Block.forward.0.input.1"] if words else [])


if __name__ == "__main__":
    main_of_script()
