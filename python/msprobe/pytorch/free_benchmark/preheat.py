# SPDX-License-Identifier: Apache-2.0
"""Calibrates limits in the first steps: as wide as the spread of results that agree with the host's."""

_FIRST_LIMIT = 2.05


class Preheat:
    """The first step counts calls; the steps up to `steps` also compare some of them with the host."""

    def __init__(self, steps, most):
        self._steps = steps
        self._most = most
        self._position = 0
        self._counts = {}
        self._limits = {}
        self._samples = {}  # API -> [(ratio, whether it agrees with the host)] of this step

    def is_over(self):
        return self._position >= self._steps

    def wants(self, api, number):
        """Whether to sample this call; also counts it."""
        if self._position == 0:
            self._counts[api] = self._counts.get(api, 0) + 1
            return False
        count = self._counts.get(api, 0)
        wanted = min(-(-count // self._steps), self._most)
        begin = (self._position - 1) * wanted  # other calls in each step
        return count > 0 and (number - begin) % count < wanted

    def add(self, api, ratio, agrees):
        self._samples.setdefault(api, []).append((ratio, agrees))

    def limit(self, api, fixed):
        return max(self._limits.get(api, fixed), fixed)

    def end_step(self):
        if self.is_over():
            return
        for api, samples in self._samples.items():
            limit = self._limits.get(api, _FIRST_LIMIT)
            wrong = [ratio for ratio, agrees in samples if not agrees]
            if wrong:
                limit = min([limit] + wrong)
            elif max(ratio for ratio, _ in samples) > limit:
                limit = 1 + 2 * (limit - 1)
            else:
                limit = 1 + (limit - 1) / 2
            self._limits[api] = limit
        self._samples.clear()
        if self._counts:
            self._position += 1
