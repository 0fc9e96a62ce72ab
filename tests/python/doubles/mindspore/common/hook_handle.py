# SPDX-License-Identifier: Apache-2.0


class _TensorHookHandle:
    def __init__(self, tensor):
        self.value = tensor.value
        self.id = None

    def remove(self):
        self.value.hooks.pop(self.id, None)
