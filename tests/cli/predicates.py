# SPDX-License-Identifier: Apache-2.0
"""How the tables of `msprobe compare` differ from those of 26.x: one predicate a kind of difference. Each names the
items of docs/differences/compare.md, the number of cells of the golden cases that it covers, the columns or the message
it may touch, what 26.x and msprobe print there, and when. A cell that differs and that no predicate covers is a failure; so
is a predicate with another number of cells, because then a difference that we want is gone, or one came that we do not want.
"""

import json
import math
import pathlib
import re

import harness
import result_cells

METRICS = "Cosine|EucDist|MaxAbsErr|MaxRelativeErr|(One|Five) Thousandths? Err Ratio"
STATISTICS = "(NPU|Bench) (max|min|mean|l2norm)"
RELATIVE = "(Max|Min|Mean)RelativeErr|NormRelativeErr"
INFINITE = {"inf", "-inf"}


class Row:
    """One row of 26.x, ours, and the table of 26.x around it."""

    def __init__(self, theirs, ours, table=(), folder=None):
        self.theirs, self.ours, self.table, self.folder = theirs, ours, table, folder

    def __getitem__(self, column):
        return self.theirs[column]

    def differing(self):
        return [c for c in self.theirs if not result_cells.cells_equal(c, self.ours[c], self[c])]

    def same(self, what):
        return self["NPU " + what] == self["Bench " + what]

    @property
    def renamed(self):
        return self["NPU Name"] != self.ours["Bench Name"]

    @property
    def files(self):
        return re.findall(r"'([^']*)'", self["Data_name"]) if "Data_name" in self.theirs else []

    def is_output(self, later=False):
        return re.search(r"\.output\.[1-9]" if later else r"\.output\.", self["NPU Name"]) is not None

    def inputs(self):
        """The relative errors of the norms that this entry's inputs and parameters have."""
        entry = entry_of(self["NPU Name"])
        rows = [row for row in self.table if entry_of(row["NPU Name"]) == entry]
        return [number(row["NormRelativeErr"]) for row in rows if ".output." not in row["NPU Name"]]

    def grows(self):
        return self.is_output() and number(self["NormRelativeErr"]) > 10 * max(self.inputs(), default=math.inf)

    def infinite_input(self):
        return self.is_output() and math.inf in map(abs, self.inputs())

    def ratio(self):
        return number(self.ours["One Thousandth Err Ratio"])


def entry_of(name):
    return re.sub(r"\.(input|output|parameters)\..*", "", name)


def number(cell):
    """The value of a share, a percentage or an infinity; other text gives NaN."""
    try:
        return float(cell[:-1]) / 100 if cell.endswith("%") else float(cell)
    except ValueError:
        return math.nan


class Predicate:
    def __init__(self, items, cells, *texts, when=lambda row, *groups: True):
        self.items, self.cells, self.texts, self.when = items.split(), cells, texts, when
        self.covered = 0

    def __str__(self):
        return f"{' '.join(self.items)}: {', '.join(str(text) for text in self.texts)}"

    def groups(self, *words):
        """The matches of the parentheses in the texts, or None."""
        matches = [re.fullmatch(text, word, re.DOTALL) for text, word in zip(self.texts, words)]
        return None if None in matches else [group for match in matches for group in match.groups() if group]


class Cell(Predicate):
    """Columns, cell of 26.x, our cell."""

    def covers(self, column, row):
        words = column, row[column], row.ours[column]
        return self.groups(*words) is not None and self.when(row, column)


class Added(Predicate):
    """A message that only we print."""


class Removed(Predicate):
    """A message that only 26.x prints."""


class Changed(Predicate):
    """A message of 26.x, and ours in its place."""


class Paired(Predicate):
    """A row that has another partner than in 26.x, by the beginnings of both names. It is equal to its partner."""

    def partner(self, row):
        own = row["NPU Name"]
        begin = next((begin for begin in self.texts[0] if own.startswith(begin + ".")), None)
        return begin and self.texts[0][begin] + own.removeprefix(begin)

    def covers(self, row):
        ours = row.ours
        if ours["Bench Name"] != self.partner(row) or not self.when(row):
            return False
        for column, cell in ours.items():
            twin = ours.get(column.replace("Bench", "NPU").replace("BENCH", "NPU"))
            if re.fullmatch(".* diff|" + RELATIVE, column) and cell != "0":
                return False
            if re.fullmatch(f"{STATISTICS}|Bench Tensor Shape|BENCH MD5", column) and (cell != twin or cell in ("", "N/A")):
                return False
            if column == "NPU MD5" and cell != "12345678":
                return False
        return ours["Bench Dtype"] == "torch.float32"


def operation(row):
    return row["NPU Name"].split(".")[1]


def zero_d(row):
    return re.fullmatch(r"\[(1(, 1)*)?\]", row["NPU Tensor Shape"]) is not None


def is_complex(row, *_):
    return row["NPU Dtype"] == "torch.complex64"


def shares(row, text, side):
    """The statistics that only one side has, as a message lists them."""
    names = ["Max", "Min", "Mean", "L2norm"]
    other = "Bench" if side == "NPU" else "NPU"
    return text == ", ".join(
        name for name in names if row[f"{other} {name.lower()}"] == "None" != row[f"{side} {name.lower()}"]
    )


def in_config(row, side, matrix, direction):
    """Does the case's config.yaml multiply this row by the matrix?"""
    place = {}
    for line in (pathlib.Path(row.folder) / "config.yaml").read_text(encoding="utf-8").splitlines():
        depth = len(line) - len(line.lstrip())
        key, colon, rest = line.strip().replace('"', "").partition(":")
        if colon:
            place[depth] = key
        names = re.findall(r"[\w.]+\.pt", rest if colon else key)
        if row["NPU Name"] + ".pt" not in names or place[4] != matrix:
            continue
        side_of = "NPU" if "target" in place[2] else "Bench"
        direction_of = place[0] if place[0] != "left_right_matmul" else place[2]
        if side_of == side and direction_of.startswith(direction):
            return True
    return False


def no_file(row, side):
    """26.x writes -1 where an entry has no file. Where neither has one, the message names the target."""
    return row.files[0 if side == "NPU" else 1] == "-1" and (side == "NPU" or row.files[0] != "-1")


def zeros_in(row, side):
    return row[f"{side} max"] == row[f"{side} min"] == "0.0" and not row.same("max")


def broken(row, name, side, reason):
    """In `tensor_metrics` the name of the operation says which side's file is missing or not a tensor."""
    fault = {
        "missnpu": ("target", "No such file or directory"),
        "missbench": ("golden", "No such file or directory"),
        "missboth": ("target", "No such file or directory"),
        "corrupt": ("target", "not a .npy, .npz, .safetensors or .pt file, by its first bytes"),
        "notensor": ("target", "it contains a list, not one tensor"),
    }
    return fault.get(operation(row)) == (side, reason) and row["NPU Name"] == name and name + ".pt" in row.files


def size(row, side):
    return math.prod(json.loads(row[f"{side} Tensor Shape"]))


VALID_LENGTH = {"NPU.npu_grouped_matmul.0.forward.output.0": "3", "NPU.npu_dequant_swiglu_quant.0.forward.output.0": "2"}
NOT_COMPARABLE = {"i": "torch.uint8", "scalar": "<class 'float'>", "dtypegrp": "torch.int64", "i32f32": "torch.float32"}
POSITION = r"warning: The position of inf or nan in NPU and bench Tensor do not match\. "
RATIO = r"error: The input/parameters of One Thousandth Err Ratio > 0\.9 while the output < "
NORM_ERROR = r"error: The NormRelativeErr of output is greater than 0\.5\."
NORM_GROWTH = r"warning: The norm relative error of output is 10 times that of input\."
DTYPE = r"error: The dtype of NPU and Bench are inconsistent\."
ZERO_D = (
    r"This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One Thousandth Err Ratio' and "
    r"'Five Thousandths Err Ratio'\."
)
UNMATCHED = "N/A"

# A cell has its messages in this order; those of the rules come after them.
STATED = [
    Added("D2", 34, r"warning: Bench api/module unmatched\.", when=lambda r: r["Bench Name"] == UNMATCHED),
    Added("D2", 2, r"warning: NPU api/module unmatched\.", when=lambda r: r["NPU Name"] == UNMATCHED),
    Added(
        "D2", 4, r"warning: Bench has this api/module, but not this item\.", when=lambda r: r["Bench Name"] == UNMATCHED
    ),
    Added(
        "D2",
        6,
        r"warning: Unmatched, because the dtypes cannot be compared \(Bench: (.*)\)\.",
        when=lambda r, dtype: r["Bench Name"] == UNMATCHED and NOT_COMPARABLE.get(operation(r)) == dtype,
    ),
    Added("D16", 1, r"warning: Neither side recorded a checksum\.", when=lambda r: r["NPU MD5"] == "00000000"),
    Added("D106", 26, r"Not compared: (.*) \(only in (NPU|Bench)\)\.", when=shares),
    Added("D42", 18, r"Fuzzy matching data, the comparison accuracy may be affected\.", when=lambda r: r.renamed),
    Added("D98", 8, r"Paired by operation and position: Bench has it under another name\.", when=lambda r: r.renamed),
    Added(
        "D108",
        4,
        r"NPU elements from \[(\d+)\] on were taken as 0: they are beyond the valid length of the call\.",
        when=lambda r, length: VALID_LENGTH.get(r["NPU Name"]) == length,
    ),
    Added("D24", 14, r"(NPU|Bench) tensor multiplied by (.*) from the (left|right)\.", when=in_config),
    Added(
        "D24",
        1,
        r"(NPU) tensor not multiplied: (matrices/missing\.npy): No such file or directory\.",
        when=lambda r, side, matrix: in_config(r, side, matrix, "right"),
    ),
    Added(
        "D24",
        1,
        r"(NPU) tensor not multiplied: (matrices/wrong\.npy): \[2, 3, 4\] times \[7, 7\]: the shapes do not fit\.",
        when=lambda r, side, matrix: in_config(r, side, matrix, "right"),
    ),
    Added(
        "D1",
        19,
        ZERO_D,
        when=zero_d,
    ),
    Added(
        "D1", 31, r"(NPU) does not have data file\.", when=lambda r, side: no_file(r, side) and "torch" not in r["NPU Dtype"]
    ),
    Added("D1", 2, r"This is empty data, can not compare\.", when=lambda r: size(r, "NPU") == size(r, "Bench") == 0),
    Added(
        "D1",
        6,
        r"Dtype of NPU and bench tensor do not match\.",
        when=lambda r: not r.same("Dtype") or in_config(r, "NPU", "matrices/back.npy", "right"),
    ),
    Added(
        "D1 D24",
        1,
        r"Dtype of NPU and bench tensor do not match\.",
        when=lambda r: r["NPU Dtype"] == "torch.int64" and in_config(r, "NPU", "matrices/two4.npy", "right"),
    ),
    Added(
        "D1",
        3,
        r"Cannot compare by Cosine Similarity, All the data is Zero in (npu|Bench) dump data\.",
        when=lambda r, side: zeros_in(r, side.replace("npu", "NPU")),
    ),
    Added("D11", 3, r"Complex tensors are compared as pairs of real numbers\.", when=is_complex),
    Added(
        "D3",
        9,
        r"warning: (NPU|Bench) does not have data file\.",
        when=lambda r, side: no_file(r, side) and "torch" in r["NPU Dtype"],
    ),
    Added(
        "D3",
        5,
        r"warning: Dump file: (.*)\.pt not found or read failed\. "
        r"\(GOLDEN/compare/tensor_metrics/(target|golden)/dump_tensor_data/\1\.pt: (.*)\)",
        when=broken,
    ),
    Added(
        "D3",
        7,
        r"warning: Shape of NPU and bench tensor do not match\. Skipped\.",
        when=lambda r: r.ours["Cosine"] == "shape unmatched",
    ),
    Added(
        "D3",
        1,
        r"warning: This is empty data, can not compare\.",
        when=lambda r: (size(r, "NPU") == 0) != (size(r, "Bench") == 0),
    ),
    Added("D3 D14", 5, POSITION + r"\(1 of (\d) elements\)", when=lambda r, count: int(count) == size(r, "NPU")),
    Added(
        "D12 D14",
        1,
        POSITION + r"\(1 infinities of opposite sign\)",
        when=lambda r: r["NPU max"] == " inf" and r["Bench min"] == " -inf",
    ),
]

RULES = [
    Changed("D5", 9, RATIO + r"0\.6\.", RATIO + r"0\.1\.", when=lambda r: r.is_output() and r.ratio() < 0.1),
    Added("D5 D7", 1, RATIO + r"0\.1\.", when=lambda r: r.is_output(later=True) and r.ratio() < 0.1),
    Removed("D7", 1, RATIO + r"0\.6\.", when=lambda r: r.is_output() and r.ratio() >= 0.1),
    Added("D7", 5, NORM_GROWTH, when=lambda r: r.is_output(later=True) and r["NormRelativeErr"] not in INFINITE and r.grows()),
    Removed("D7", 1, NORM_GROWTH, when=lambda r: not r.infinite_input() and not r.grows()),
    Added("D8", 5, NORM_GROWTH, when=lambda r: r["NormRelativeErr"] in INFINITE),
    Removed("D8", 2, f"{NORM_GROWTH}|{NORM_ERROR}", when=lambda r: r.infinite_input()),
    Added("D6", 2, DTYPE, when=lambda r: re.search("qkv|gate_up", r["Bench Name"]) and not r.same("Dtype")),
    Removed("D4", 59, DTYPE, when=lambda r: r["Bench Dtype"] == "torch." + r["NPU Dtype"].lower()),
    Added("D100", 1, DTYPE, when=lambda r: r["NPU Dtype"] == "torch.float64" and r.ours["Bench Dtype"] == "torch.float32"),
    Removed(
        "D42", 6, r"error: The CRC-32 value of NPU differs from that of the bench\.", when=lambda r: r["NPU MD5"] == ""
    ),
]

# 26.x compares the real parts of the complex tensors, we compare the pairs: the numbers of both.
COMPLEX = {
    ("Cosine", "1.0"): "0.325395686728",
    ("EucDist", "0.0"): "5.656854249492381",
    ("MaxAbsErr", "0.0"): "4.0",
    ("MaxRelativeErr", "0.0"): "2.0|0.8",
    ("One Thousandth Err Ratio", "1.0"): "0.5",
    ("Five Thousandths Err Ratio", "1.0"): "0.5",
    ("Cosine", "0.9838699101"): "0.989949493661",
    ("One Thousandth Err Ratio", "0.5"): "0.75",
    ("Five Thousandths Err Ratio", "0.5"): "0.75",
}


def complex_value(row, column):
    return is_complex(row) and re.fullmatch(COMPLEX.get((column, row[column]), ""), row.ours[column])


def not_finite(row):
    return row["NPU max"].strip().lower() in ("inf", "nan")


def equal_statistic(row, column):
    """The statistic of a column of relative errors is the same number on both sides."""
    name = next(statistic for _, relative, statistic in result_cells.DIFFERENCES if relative == column)
    return float(row["NPU " + name]) == float(row["Bench " + name])


CELLS = [
    Cell("D10", 4, "MaxAbsErr|MaxRelativeErr", "Nan", r"0\.0", when=lambda r, _: zero_d(r) and not_finite(r) and r.same("max")),
    Cell(
        "D10",
        12,
        METRICS,
        "unsupported|Nan| inf",
        "N/A",
        when=lambda r, _: zero_d(r) and not_finite(r) and not r.same("max"),
    ),
    Cell(
        "D10",
        2,
        "MaxAbsErr",
        r"255\.0|127\.0",
        ".*",
        when=lambda r, c: zero_d(r)
        and "int8" in r["NPU Dtype"]
        and r.ours[c] == str(abs(float(r["NPU max"]) - float(r["Bench max"]))),
    ),
    # A golden value of 0 counts as the smallest number relative to 1: 2^-23 in float32, 2^-52 in float64.
    Cell("D10", 1, "MaxRelativeErr", r"8388608\.0", r"4503599627370496\.0", when=lambda r, _: r["NPU Dtype"] == "torch.bool"),
    Cell("D11", 10, METRICS, ".*", ".*", when=complex_value),
    Cell("D12", 6, METRICS, r"1\.0|0\.0", "N/A", when=lambda r, _: r["NPU max"] == " inf" and r["Bench min"] == " -inf"),
    Cell(
        "D13",
        2,
        "EucDist|MaxAbsErr",
        r"0\.0",
        r"1\.0",
        when=lambda r, _: r["NPU Dtype"] == "torch.int64" and int(r["NPU max"]) - int(r["Bench max"]) == 1,
    ),
    Cell("D15", 8, RELATIVE, "inf", "0", when=equal_statistic),
    Cell("D16", 2, "NPU MD5|BENCH MD5", "00000000", "N/A", when=lambda r, _: r["NPU MD5"] == r["BENCH MD5"]),
]
PAIRS = [
    Paired("D41", 52, {"Torch.a.0": "Torch.z.0", "Torch.a.1": "Torch.z.1"}, when=lambda r: ".backward." in r["NPU Name"]),
    Paired(
        "D41",
        30,
        {"Functional.flash_attention_score.1": "NPU.npu_fusion_attention.1"},
        when=lambda r: ".backward." in r["NPU Name"],
    ),
    Paired("D42", 102, {"Torch.a.0": "Torch.a.3", "Torch.a.1": "Torch.a.4", "Torch.c.0": "Torch.c.7"}),
    Paired("D43", 15, {"Cell.network_with_loss.net.attention": "Module.module.net.self_attention"}),
    Paired("D100", 15, {"Torch.dtypegrp.0": "Torch.dtypegrp.0"}, when=lambda r: r["NPU Dtype"] == "torch.float64"),
]
REFUSED = Predicate("D19", 4, "26.x refuses the input")
CRASHED = Predicate("D40", 3, "26.x ends with a traceback")
SURPLUS = Predicate("D42", 1, "a row after golden's end")
TABLES = [*STATED, *RULES, *CELLS, *PAIRS, REFUSED, CRASHED, SURPLUS]


SCALAR = "This is type of scalar data, can not compare.\n"
NO_DUMP = r"Dump file of (NPU|Bench) not found\."


def absent(row, column):
    """The side that this column belongs to has no such entry."""
    return row[column.split()[0] + " Name"] == ""


def not_compared(row, _):
    return re.fullmatch(NO_DUMP + "|.* do not match\\.( Skipped\\.)?", row.ours["Err_message"])


def statistic_of(column):
    for difference, relative, statistic in result_cells.DIFFERENCES:
        if column in (difference, relative):
            return statistic
    return None


def both_nan(row, column):
    return row["NPU Name"] and row["Bench Name"] and row.same(column.split()[1])


def scalar_value(row, column):
    """Target 1, golden 0: their difference, and 1 divided by 2^-23."""
    return row["Err_message"] == SCALAR and row.ours[column] == {"MaxAbsErr": "1.0", "MaxRelativeErr": "8388608.0"}[column]


def same_scalar(row, column):
    return row["Err_message"] == SCALAR and row.same(statistic_of(column))


# Dumps without dump.json.
CELLS_OF_RELATIVES = [
    Cell("D60", 30, f"{STATISTICS}|(NPU|Bench) (Name|Dtype|Tensor Shape|CSV File)", "|nan|None", "N/A", when=absent),
    Cell("D60", 56, f"{METRICS}|{RELATIVE}|.* diff", "", "N/A", when=not_compared),
    Cell(
        "D60 D64",
        4,
        "Err_message",
        r"Dump file is not ndarray\.\n|Tensor shapes do not match\.\nDtype of .* Skipped\.\n",
        NO_DUMP,
        when=lambda r, c: absent(r, r.ours[c].split()[3]),
    ),
    Cell("D61", 12, STATISTICS, "", "Nan", when=both_nan),
    Cell("D61", 2, "(Max|Min) diff", "", r"0\.0", when=lambda r, c: r[f"NPU {c[:3].lower()}"] == ""),
    Cell("D61", 4, "(Max|Min)RelativeErr", "Nan|N/A", r"0\.0%", when=lambda r, c: r.same(c[:3].lower())),
    Cell("D63", 4, ".* diff", "", r"0\.0", when=same_scalar),
    Cell("D63", 4, RELATIVE, "", r"0\.0%", when=lambda r, c: statistic_of(c) and same_scalar(r, c)),
    Cell("D63", 2, "Accuracy Reached or Not", "", "Yes", when=lambda r, _: r["Err_message"] == SCALAR),
    Cell("D63", 4, "Cosine|EucDist|.* Err Ratio", "", "unsupported", when=lambda r, _: r["NPU Tensor Shape"] == "[]"),
    Cell("D63", 2, "MaxAbsErr|MaxRelativeErr", "", r"1\.0|8388608\.0", when=scalar_value),
    Cell("D63 D64", 1, "Err_message", SCALAR, "", when=lambda r, _: r["NPU Tensor Shape"] == ""),
    Cell("D63 D64", 1, "Err_message", SCALAR, ZERO_D, when=lambda r, _: r["NPU Tensor Shape"] == "[]"),
    Cell("D64", 4, "Err_message", r".* do not match\.( Skipped\.)?\n", ".*", when=lambda r, c: r[c] == r.ours[c] + "\n"),
    Cell("D67", 3, ".*(百分比|占比)\\(%\\)", r"66\.66666666666666", r"100\.0"),
    Cell("D67", 1, "最大绝对误差", "", r"0\.0"),
    Cell("D67", 1, "首个不匹配元素索引", "1", ""),
]


def cover(predicates, test):
    """Counts the cell for the first predicate that covers it."""
    found = next((predicate for predicate in predicates if test(predicate)), None)
    if found:
        found.covered += 1
    return found is not None


def matches(predicate, kind, row, *words):
    if not isinstance(predicate, kind):
        return False
    groups = predicate.groups(*words)
    return groups is not None and bool(predicate.when(row, *groups))


def place_in_cell(message):
    stated = next((i for i, predicate in enumerate(STATED) if predicate.groups(message) is not None), len(STATED))
    return stated, message.startswith("warning: ") if stated == len(STATED) else message.startswith("Bench")


def unexplained_messages(row):
    """Lines on our messages, and on the verdict that follows from them."""
    theirs, ours = json.loads(row["Err_message"]), json.loads(row.ours["Err_message"])
    problems, kept = [], []
    for message in theirs:
        if message in ours:
            kept.append(message)
            continue
        change = [other for other in ours if cover(RULES, lambda p, o=other: matches(p, Changed, row, message, o))]
        kept += change
        if not change and not cover(RULES, lambda p, m=message: matches(p, Removed, row, m)):
            problems.append(f"no item explains why {message!r} is gone")
    for message in ours:
        if message not in kept and not cover(STATED + RULES, lambda p, m=message: matches(p, Added, row, m)):
            problems.append(f"no item explains {message!r}")
    if [message for message in ours if message in kept] != kept or ours != sorted(ours, key=place_in_cell):
        problems.append(f"the messages are in another order: {ours}")
    level = next((level for level in ("error", "warning") if any(m.startswith(level + ": ") for m in ours)), "pass")
    if row.ours["Result"] != level:
        problems.append(f"Result is {row.ours['Result']}, by the messages it is {level}")
    return problems


def unexplained_cells(row, columns, predicates):
    return [
        f"{column}: {row.ours[column]!r} where 26.x has {row[column]!r}: no item explains this"
        for column in columns
        if not cover(predicates, lambda p, c=column: p.covers(c, row))
    ]


def unexplained(row):
    """Lines on the cells of a row of `compare` that differ from 26.x without a predicate that covers them."""
    differing = row.differing()
    problems = []
    if "Err_message" in differing:
        problems += unexplained_messages(row)
        differing = [column for column in differing if column not in ("Err_message", "Result")]
    elif "Result" in differing:
        problems.append("Result differs, and the messages do not")
        differing.remove("Result")
    if "Bench Name" in differing or ("NPU MD5" in differing and row["NPU MD5"] == ""):
        pair = next((predicate for predicate in PAIRS if predicate.covers(row)), None)
        if pair is None:
            return [*problems, f"{row.ours['Bench Name']!r} is a partner that no item explains, or differs from it"]
        pair.covered += len(differing)
        return problems
    return problems + unexplained_cells(row, differing, CELLS)


def wrong(predicates, page):
    """Lines on the predicates whose number of cells is wrong, or whose item the page does not have."""
    lines = [
        f"{predicate}: covers {predicate.covered} cells, expected {predicate.cells}"
        for predicate in predicates
        if predicate.covered != predicate.cells or predicate.cells == 0
    ]
    items = {item for predicate in predicates for item in predicate.items}
    return lines + [f"{page} has no item {item}" for item in sorted(items - set(harness.items_of(page)))]
