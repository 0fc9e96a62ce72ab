# SPDX-License-Identifier: Apache-2.0
"""`import torch` becomes MSAdapter's. It is imported first of all."""
import importlib
import importlib.machinery
import importlib.util
import sys

import mindspore as ms

_REAL = {"torch": "mindtorch", "torch_npu": "mindtorch.npu"}


class _OneModule:
    """Puts one module under both of its names: what mindtorch has itself are lookalikes, which show no functions to who
    asks for all of them, as the Python tool does. It needs torch_npu, too."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] not in _REAL:
            return None
        return importlib.machinery.ModuleSpec(name, _OneModule, is_package=True)

    @staticmethod
    def create_module(spec):
        head, dot, rest = spec.name.partition(".")
        module = importlib.import_module(_REAL[head] + dot + rest)
        spec.loader_state = module.__spec__, module.__loader__, module.__package__
        return module

    @staticmethod
    def exec_module(module):
        state = module.__spec__.loader_state
        module.__spec__, module.__loader__, module.__package__ = state


def _help_the_python_tool():
    own_hook = ms.Tensor.register_hook
    import mindtorch  # noqa: F401
    from mindtorch._C import device
    for name in [name for name in sys.modules if name.split(".")[0] in _REAL]:
        del sys.modules[name]
    sys.meta_path.insert(0, _OneModule)
    # It loses the device of tensors, meets a method for hooks that cannot work, and measures with a function that has no
    # kernel on the CPU.
    ms.Tensor.device = property(lambda tensor: tensor.__dict__.get("_device") or device("cpu"))
    ms.Tensor.register_hook = own_hook
    ms.mint.norm = lambda tensor: tensor.astype(ms.float32).square().sum().sqrt()


_ours = "site-packages" not in (importlib.util.find_spec("msprobe").origin or "")
if _ours:
    import mindtorch  # noqa: F401 - and nothing else: this is how a program finds it
else:
    _help_the_python_tool()
import torch  # noqa: F401
