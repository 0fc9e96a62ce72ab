# SPDX-License-Identifier: Apache-2.0


def assign(input, value):
    """A kernel: what is known of the gradient of `input` stays as it is."""
    input.asnumpy()[...] = value.asnumpy()
    return input
