# SPDX-License-Identifier: Apache-2.0
"""Chooses the calls that are judged: every call gets its turn, within a budget of time."""

import time


class Budget:
    """The share of the training's time that judging may take. Time that a step does not use is added to the next
    step's; time that it exceeds is subtracted."""

    _FIRST_GUESS = 0.005  # seconds per call

    def __init__(self, share):
        self._share = share    # None: no limit
        self._credit = 0.0     # seconds left before this step
        self._spent = 0.0
        self._reserved = 0.0
        self._began = None     # when this step began
        self._costs = {}       # operation -> the seconds it took when it was judged last

    def begin_step(self):
        self._reserved = 0.0
        if self._began is not None and self._share is not None:
            training = time.monotonic() - self._began - self._spent
            self._credit = min(self._left(), self._share * training)
        self._began = time.monotonic()
        self._spent = 0.0

    def is_open(self):
        return self._share is None or self._left() >= 0

    def spend(self, seconds):
        self._spent += seconds

    def forgive(self, seconds):
        """Excludes seconds that belong neither to the training nor to judging."""
        self._began += seconds

    def reserve(self, operation):
        """Reserves time for a call that will be judged later in this step; returns the reserved seconds."""
        guess = self._costs.get(operation, self._FIRST_GUESS)
        self._reserved += guess
        return guess

    def release(self, operation, reserved, seconds):
        """Notes that a call was judged and how many seconds that took."""
        self._reserved = max(self._reserved - reserved, 0.0)
        self._costs[operation] = seconds

    def _left(self):
        if self._share is None:
            return 0.0
        training = time.monotonic() - self._began - self._spent
        return self._credit + self._share * training - self._spent - self._reserved


class Turns:
    """Rounds in which each call of a step is judged once. A call is identified by its operation and its number in the
    step. Each step judges as many calls as the budget allows. With an interval n, a call is judged only in every n-th
    step, and different calls in different steps."""

    def __init__(self, interval):
        self._interval = interval
        self._places = {}    # place of each call, in the order of first appearance
        self._step = 0
        self._done = set()   # calls judged in this round
        self._left = False   # has a call of this step not had its turn?
        self._seen = set()   # calls of any round
        self._judged = set()
        self.never = set()   # calls that are never judged

    def is_over(self, call):
        """Whether the call has had its turn."""
        return call in self._done or call in self.never

    def is_next(self, call):
        self._seen.add(call)
        if self._interval == 1:
            return True
        place = self._places.setdefault(call, len(self._places))
        return (place + self._step) % self._interval == 0

    def take(self, call):
        self._done.add(call)
        self._judged.add(call)

    def leave(self):
        """Notes that the next call did not get its turn."""
        self._left = True

    def left_out(self):
        """Returns how many calls never had their turn, and how many could have had one."""
        could = self._seen - self.never
        return len(could - self._judged), len(could)

    def end_step(self):
        if not self._left:
            self._done.clear()
        self._left = False
        self._step += 1
