# SPDX-License-Identifier: Apache-2.0
"""free_benchmark.csv in the folder of the step: one row for each result that is not consistent."""

import csv
import io
import os
import threading

from msprobe import _native
from msprobe.core import session
from msprobe.core.common import log

_COLUMNS = ("rank", "pert_mode", "stage", "step", "api_name", "max_rel", "dtype", "shape", "output_index")
_BOM = "\ufeff"


class Report:
    def __init__(self, dump_path):
        self._lock = threading.Lock()
        self.move(dump_path)
        self.calls = 0     # that were made again
        self.unstable = 0  # of them

    def move(self, dump_path):
        """From now on rows go there."""
        self._root = os.path.abspath(dump_path)
        self._begun = None

    def add(self, rows):
        """One call that was made again, and a row (mode, stage, API, max_rel, dtype, shape, index) for each of its
        results that differs too much."""
        with self._lock:
            self.calls += 1
            self.unstable += 1 if rows else 0
            info = _native.info()
            rank = info["rank"] if info["rank"] >= 0 else ""
            if not rows and self._begun == info["step"]:
                return
            try:
                self._write(info["step"], rank, [
                    (rank, mode, stage, info["step"], api, found, dtype, shape, "" if index is None else index)
                    for mode, stage, api, found, dtype, shape, index in rows])
                self._begun = info["step"]
            except OSError as error:
                log.warn_once("free_benchmark.csv cannot be written: %s" % error, "free_benchmark.csv")

    def _write(self, step, rank, rows):
        leaf = "proc%d" % os.getpid() if rank == "" else "rank%d" % rank
        path = os.path.join(self._root, "step%d" % step, leaf, "free_benchmark.csv")
        text = io.StringIO()
        writer = csv.writer(text)
        # When the name becomes known, the folder moves with its content, so the file is opened anew each time.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(path, flags, 0o644), "ab") as file:
            if file.tell() == 0:
                text.write(_BOM)
                writer.writerow(_COLUMNS)
            writer.writerows(rows)
            file.write(text.getvalue().encode("utf-8", "replace"))


def settings():
    """The values of the section; the collector adds the defaults."""
    def of(key):
        return session.setting("section." + key)
    return {"mode": of("pert_mode"), "fixes": of("handler_type") == "fix", "backward": of("fuzz_stage") == "backward",
            "preheat": (of("preheat_step"), of("max_sample")) if of("if_preheat") else None}
