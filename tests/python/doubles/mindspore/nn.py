# SPDX-License-Identifier: Apache-2.0


class Cell:
    def register_forward_pre_hook(self, hook, with_kwargs=False):
        raise NotImplementedError

    def register_forward_hook(self, hook, with_kwargs=False):
        raise NotImplementedError
