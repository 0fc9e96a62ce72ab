# SPDX-License-Identifier: Apache-2.0
"""usage: gpu_compilers.py HIPRTC NVRTC...: compiles the kernel by real compilers for GPUs that are simulated."""

import os
import sys
import time

from msprobe import _native

FAKE = os.environ["MSPROBE_FAKE_GPU"]


def compile_for(compiler, architecture, capability=None):
    if capability is not None:
        os.environ["MSPROBE_FAKE_GPU_CAPABILITY"] = capability
    begin = time.monotonic()
    try:
        told = "compiled, %d bytes" % len(_native.gpu_compile(FAKE, compiler, architecture, 0))
    except RuntimeError as error:
        told = error.args[-1]
    print("%s %s: %s, %.1f s" % (os.path.basename(compiler), architecture or "sm_" + capability, told,
                                 time.monotonic() - begin))
    return told.startswith("compiled")


def main(hiprtc, *nvrtc):
    good = True
    for compiler in nvrtc:
        # From Turing, which CUDA 13 begins with, to Blackwell, which CUDA 11 does not know.
        for capability in ("75", "80", "89", "90") if "so.11" in compiler else ("75", "80", "90", "100"):
            good = compile_for(compiler, None, capability) and good
    if hiprtc:
        for architecture in ("gfx90a:sramecc+:xnack-", "gfx1030"):  # MI200, and a graphics card
            good = compile_for(hiprtc, architecture) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
