# SPDX-License-Identifier: Apache-2.0
"""Which calls are judged: each gets its turn, within a budget of time."""

import time


class Budget:
    """The share of the training's time that judging may take. What a step leaves over is for the next one, what it took too
    much is missing there."""

    _FIRST_GUESS = 0.005  # seconds for a call

    def __init__(self, share):
        self._share = share    # None: no limit
        self._credit = 0.0     # before this step
        self._spent = 0.0
        self._reserved = 0.0
        self._began = None     # of this step
        self._costs = {}       # of operations, when they were judged last

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
        """These were time of neither."""
        self._began += seconds

    def reserve(self, operation):
        """For a call that will be judged later in this step; what is reserved."""
        guess = self._costs.get(operation, self._FIRST_GUESS)
        self._reserved += guess
        return guess

    def release(self, operation, reserved, seconds):
        """It was judged, in so many seconds."""
        self._reserved = max(self._reserved - reserved, 0.0)
        self._costs[operation] = seconds

    def _left(self):
        if self._share is None:
            return 0.0
        training = time.monotonic() - self._began - self._spent
        return self._credit + self._share * training - self._spent - self._reserved


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
        self._seen = set()   # in any round
        self._judged = set()
        self.never = set()   # calls that have none

    def is_over(self, call):
        """Whether it had its turn."""
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
        """One that comes next did not get its turn."""
        self._left = True

    def left_out(self):
        """How many calls never had their turn, and of how many that could have had one."""
        could = self._seen - self.never
        return len(could - self._judged), len(could)

    def end_step(self):
        if not self._left:
            self._done.clear()
        self._left = False
        self._step += 1
