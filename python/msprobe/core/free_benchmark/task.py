# SPDX-License-Identifier: Apache-2.0
"""The task as configured, and its results."""

from msprobe import _native
from msprobe.core import session

from . import report


class Task:
    """A front end supplies attempt(), which prepares a second call, comparable(), compare() and described()."""

    def __init__(self):
        self.mode = None
        self._report = None
        self._settings = None
        self._names = {}

    def name(self, number, prefix, api):
        """Notes the API to which the extension's `number` belongs."""
        self._names[number] = prefix, api

    def configure(self):
        self._settings = settings = report.settings()
        self.mode, self.fixes, self.backward = settings["mode"], settings["fixes"], settings["backward"]

    def begin(self, dump_path):
        self._report = report.Report(dump_path)

    def move(self, dump_path):
        self._report.move(dump_path)

    def counts(self):
        return self._report.calls, self._report.unstable

    def end_step(self):
        """All calls of a step were made."""

    @staticmethod
    def step():
        return _native.info()["step"]

    # ------------------------------------------------------------------ calls

    def attempt(self, prefix, api, count, function, args, kwargs):
        """The second call of an API, before the first is made: it has `api`, and finish(result), which returns the result for
        the program. None: there is none."""
        raise NotImplementedError

    def call(self, number, count, function, args, kwargs):
        """Called by the extension in place of a function."""
        kwargs = kwargs or {}
        attempt = None
        try:
            attempt = self.attempt(*self._names.get(number, (None, None)), count, function, args, kwargs)
        except Exception:
            session.guard("preparing to call again")
        result = function(*args, **kwargs)
        if attempt is None:
            return result
        try:
            return attempt.finish(result)
        except Exception:
            session.guard("calling %s again" % attempt.api)
            return result

    # ------------------------------------------------------------------ verdicts

    def count_fixed(self):
        self._report.add(())

    @staticmethod
    def comparable(one, other):
        """Whether two results are tensors of numbers with a meaningful ratio."""
        raise NotImplementedError

    def compare(self, api, one, other, backward):
        """max_rel of a row, or None if both are consistent."""
        raise NotImplementedError

    @staticmethod
    def described(tensor):
        """Its dtype and shape, as rows have them."""
        raise NotImplementedError

    def judge(self, api, name, first, second, backward):
        stage = "backward" if backward else "forward"
        rows = []
        for at, (one, other) in enumerate(zip(first, second)):
            found = self.compare(api, one, other, backward) if self.comparable(one, other) else None
            if found is not None:
                index = at if len(first) > 1 else None
                rows.append((self.mode, stage, "%s.%s" % (name, stage), found, *self.described(one), index))
        self._report.add(rows)
