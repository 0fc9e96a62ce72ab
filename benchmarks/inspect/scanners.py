#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks other scanners about folders: a folder is clean for one that reports nothing in it, be it that it reads no such file.

usage: scanners.py < FOLDERS    (a list in JSON; prints the clean folders of each scanner that this Python has, in JSON)
"""

import contextlib
import importlib
import io
import json
import logging
import sys
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, List


def picklescan(module: Any, folder: str) -> bool:
    found = module.scan_directory_path(folder)
    return found.issues_count == 0 and not found.scan_err


def modelscan(module: Any, folder: str) -> bool:
    return module.ModelScan().scan(folder)["summary"]["total_issues"] == 0


def fickling(module: Any, folder: str) -> bool:
    for path in Path(folder).rglob("*"):
        if path.is_file():
            packed = zipfile.is_zipfile(path)
            found = module.scan_zip_archive(str(path), graceful=True).values() if packed else [module.scan_file(str(path), graceful=True)]
            # An error is a file that it cannot read as a pickle, and says nothing about.
            if any(not one.is_safe and not one.errors for one in found):
                return False
    return True


TOOLS: Dict[str, Callable[[Any, str], bool]] = {"picklescan.scanner": picklescan, "modelscan.modelscan": modelscan, "fickling.loader": fickling}


def main() -> None:
    logging.disable(logging.CRITICAL)
    clean: Dict[str, List[str]] = {}
    folders = json.load(sys.stdin)
    for name, judge in TOOLS.items():
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        of_tool = clean[name.split(".")[0]] = []
        for folder in folders:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    if judge(module, folder):
                        of_tool.append(folder)
                except Exception:  # it ends with a traceback: not clean
                    pass
    print(json.dumps(clean))


if __name__ == "__main__":
    main()
