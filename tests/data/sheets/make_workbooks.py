#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the workbooks of this folder with openpyxl, another program's idea of the format.

usage: make_workbooks.py [FOLDER]

cells.xlsx: every kind of cell, gaps, several sheets, texts with markup and control characters.
"""

import datetime
import pathlib
import sys

import openpyxl
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont


def cells():
    book = openpyxl.Workbook()
    first = book.active
    first.title = "Sheet1"
    first.append(["name", "number", "flag"])
    first.append(["a<b>&\"'", 1.5, True])
    first.append(["a<b>&\"'", -2, False])
    first.append([" blanks \n", 1e300, None])
    first["E5"] = "far"
    first["A7"] = "after a gap"
    first["B7"] = "=1+2"
    first["C7"] = "#N/A"
    first["A8"] = CellRichText("rich ", TextBlock(InlineFont(b=True), "text"))
    first["B8"] = "\u00fcml\u00e4ut \U0001f600"
    first["C8"] = datetime.date(2026, 1, 2)
    second = book.create_sheet("part & 1")
    second.append(["only"])
    book.create_sheet("empty")
    return book


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    book = cells()
    book.properties.created = book.properties.modified = datetime.datetime(2026, 1, 1)
    book.save(folder / "cells.xlsx")


if __name__ == "__main__":
    main()
