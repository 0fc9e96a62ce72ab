# SPDX-License-Identifier: Apache-2.0
"""Which calls are judged: each gets its turn, within a budget of time."""

import time


class Budget:
    """The share of the training's time that judging may take. What a step left over is not saved up; what it took too much
    is missing in the next ones."""

    def __init__(self, share):
        self._share = share  # None: no limit
        self._spent = 0.0
        self._began = time.monotonic()
        self._credit = 0.0   # before this step
        self.total = 0.0     # of all steps

    def begin_step(self):
        self._credit = min(self._left(), 0.0)
        self._began = time.monotonic()
        self._spent = 0.0

    def is_open(self):
        return self._share is None or self._left() >= 0

    def spend(self, seconds):
        self._spent += seconds
        self.total += seconds

    def forgive(self, seconds):
        """These took no part of the training's time, either."""
        self._began += seconds

    def _left(self):
        if self._share is None:
            return 0.0
        training = time.monotonic() - self._began - self._spent
        return self._credit + self._share * training - self._spent


class Turns:
    """Rounds in which each call of a step is judged once, a call being known by its operation and its number in the step: as
    many in each step as the budget allows. With an interval a call is judged in every n-th step only, different ones in
    different steps."""

    def __init__(self, interval):
        self._interval = interval
        self._places = {}    # of the calls, in the order in which they came first
        self._step = 0
        self._done = set()   # in this round
        self._left = False   # has a call of this step not had its turn?
        self.never = set()   # calls that have none

    def is_over(self, call):
        """Whether it had its turn."""
        return call in self._done or call in self.never

    def is_next(self, call):
        if self._interval == 1:
            return True
        place = self._places.setdefault(call, len(self._places))
        return (place + self._step) % self._interval == 0

    def take(self, call):
        self._done.add(call)

    def leave(self):
        """One that comes next did not get its turn."""
        self._left = True

    def end_step(self):
        if not self._left:
            self._done.clear()
        self._left = False
        self._step += 1
