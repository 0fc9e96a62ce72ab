# SPDX-License-Identifier: Apache-2.0
"""The cells of a workbook, read from its XML: what a spreadsheet would show, and which of them are formulas (none)."""

import re
import xml.etree.ElementTree as ElementTree
import zipfile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
PACKAGE = "{http://schemas.openxmlformats.org/package/2006/relationships}"


def column_of(reference):
    number = 0
    for letter in re.match(r"[A-Z]+", reference)[0]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def cell_value(cell):
    if cell.find(MAIN + "f") is not None:
        raise AssertionError(f"{cell.get('r')} is a formula")
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(MAIN + "t")) or None
    value = cell.find(MAIN + "v")
    if value is None:
        return None
    if kind == "str":
        return value.text
    if kind == "b":
        return value.text == "1"
    number = float(value.text)
    return int(number) if number.is_integer() else number


def read(path):
    """Name of sheet -> rows of cells; blank cells are None."""
    sheets = {}
    with zipfile.ZipFile(path) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
        targets = {each.get("Id"): each.get("Target") for each in relations.iter(PACKAGE + "Relationship")}
        for sheet in book.iter(MAIN + "sheet"):
            target = targets[sheet.get(RELATION)]  # an absolute one begins with a slash
            name = target[1:] if target.startswith("/") else "xl/" + target
            root = ElementTree.fromstring(archive.read(name))
            rows = []
            for row in root.iter(MAIN + "row"):
                cells = {column_of(cell.get("r")): cell_value(cell) for cell in row.iter(MAIN + "c")}
                rows.append([cells.get(i) for i in range(max(cells, default=-1) + 1)])
            width = len(rows[0]) if rows else 0
            sheets[sheet.get("name")] = [row + [None] * (width - len(row)) for row in rows]
    return sheets


def styles(path, sheet_number):
    """Cell reference -> (colour of the fill or None, is the text marked as text)."""
    with zipfile.ZipFile(path) as archive:
        style = ElementTree.fromstring(archive.read("xl/styles.xml"))
        fills = []
        for fill in style.iter(MAIN + "fill"):
            color = fill.find(f"{MAIN}patternFill/{MAIN}fgColor")
            fills.append(None if color is None else color.get("rgb"))
        formats = [
            (fills[int(each.get("fillId"))], each.get("quotePrefix") == "1")
            for each in style.find(MAIN + "cellXfs").iter(MAIN + "xf")
        ]
        root = ElementTree.fromstring(archive.read(f"xl/worksheets/sheet{sheet_number}.xml"))
        return {cell.get("r"): formats[int(cell.get("s", "0"))] for cell in root.iter(MAIN + "c")}
