# SPDX-License-Identifier: Apache-2.0
"""Tensors on a CUDA or HIP device, measured there by the collector's own kernel: one launch for all tensors of a call,
one fetch for all results of a step. If the user does not ask for the kernel or it cannot be used, device.py measures
with kernels of the framework."""

import glob
import os
import subprocess
import sys
import tempfile
import threading
import warnings

import torch

from msprobe import _native

_TRIAL = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("msprobe._native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
driver, compiler, architecture = (text or None for text in sys.argv[2:5])
ordinal, to = (int(text) for text in sys.argv[5:7])
try:
    code = native.gpu_compile(driver, compiler, architecture, ordinal)
    native.gpu_open(driver, architecture, code, ordinal)
except RuntimeError as error:
    sys.exit(str(error.args[-1]))
with open(to, "wb") as file:
    file.write(code)
"""
_LONGEST_TRIAL = 120  # seconds; a compiler takes up to ten
_opened = {}  # torch.device -> whether the kernel is used there
_opening = threading.Lock()


def use(device):
    """Whether the kernel measures tensors on the device. The first call takes seconds; no graph may be captured then."""
    if device not in _opened:
        with _opening:  # other threads wait here meanwhile
            if device not in _opened:
                usable = False
                try:
                    usable = is_wanted() and is_gpu(device) and _open(device)
                finally:  # also after an exception: it is not tried again
                    _opened[device] = usable
    return _opened[device]


def is_wanted():
    """The environment must ask for the kernel, because it has not run on a GPU yet."""
    return os.environ.get("MSPROBE_GPU_KERNEL") == "1"


def is_gpu(device):
    return device.type == "cuda" and bool(torch.version.cuda or torch.version.hip)


def ordinal_of(device):
    return device.index if device.index is not None else torch.cuda.current_device()


def current_stream(ordinal):
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw(ordinal) if raw is not None else torch.cuda.current_stream(ordinal).cuda_stream


def is_capturing():
    """Whether a graph is being captured: nothing is computed then, and any synchronization would end the capture."""
    return torch.cuda.is_current_stream_capturing()


def event_now(device):
    """Returns an event after all current work of the current stream."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def failed(ordinal, why):
    """Called by the extension when it stops using the kernel on this device."""
    for device in _opened:
        if ordinal_of(device) == ordinal:
            _opened[device] = False
    warnings.warn("msprobe: some tensors have no statistics from here on, and PyTorch's kernels measure later ones: %s" % why)


def _open(device):
    try:
        ordinal = ordinal_of(device)
        driver, compiler, architecture = libraries(ordinal)
        code = _try_apart(driver, compiler, architecture, ordinal)
        _native.gpu_open(driver, architecture, code, ordinal)
        return True
    except Exception as error:  # any error of PyTorch or the system: device.py can measure instead
        why = error.args[-1] if isinstance(error, RuntimeError) else "%s: %s" % (type(error).__name__, error)
        warnings.warn("msprobe: PyTorch's kernels measure the tensors on %s, which takes longer: %s" % (device, why))
        return False


def _try_apart(driver, compiler, architecture, ordinal):
    """Returns the kernel's code. Another process compiles and tries it, so that a faulty kernel harms only that
    process. Raises RuntimeError, OSError, SubprocessError."""
    if "python" not in os.path.basename(sys.executable or ""):
        raise RuntimeError("no Python is known that could try the collector's kernel")
    with tempfile.TemporaryFile() as code:
        command = [sys.executable, "-I", "-S", "-c", _TRIAL, _native.__file__, driver or "", compiler, architecture or "",
                   str(ordinal), str(code.fileno())]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              pass_fds=[code.fileno()], timeout=_LONGEST_TRIAL, check=False)
        code.seek(0)
        made = code.read()
    if done.returncode == 0 and made:  # if SIGCHLD is ignored, the status is always 0
        return made
    told = [line for line in done.stderr.decode("utf-8", "replace").split("\n") if line.strip()]
    raise RuntimeError(told[-1] if told else "the process that tried the collector's kernel ended with status %d"
                       % done.returncode)


def libraries(ordinal):
    """Returns (driver, compiler, architecture) for _native.gpu_open(), for the GPU with this number."""
    if torch.version.hip:
        driver = _find("libamdhip64") or "libamdhip64.so"
        # Up to version 5 the runtime contains the compiler.
        return driver, _find("libhiprtc") or driver, torch.cuda.get_device_properties(ordinal).gcnArchName
    return None, _find("libnvrtc", torch.version.cuda.split(".")[0]) or "libnvrtc.so", None


def _find(name, version=""):
    """Returns the path of a library: the one that is loaded, the one that comes with this PyTorch, or one in the
    environment, preferably of that version. None: the system may have it."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        loaded = {line.split(None, 5)[5].strip() for line in maps if "/" + name in line}
    folder = os.path.dirname(os.path.abspath(torch.__file__))
    found = sorted(loaded)
    for place in (os.path.join(folder, "lib", name + "*.so*"),
                  os.path.join(os.path.dirname(folder), "nvidia", "*", "lib", name + ".so*"),
                  os.path.join(sys.prefix, "lib", name + ".so*")):
        found += sorted(glob.glob(place), key=lambda path: (".so.%s" % version not in path, path))
    plain = [path for path in found if "builtins" not in os.path.basename(path) and ".alt." not in path]
    return plain[0] if plain else None
