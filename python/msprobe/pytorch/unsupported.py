# SPDX-License-Identifier: Apache-2.0
"""Names that scripts import and that need an NPU runtime: using one reports that it is unsupported.

Programs check whether AclGraphDumper and acl_save are None, as they are in the Python tool without torch_npu.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, NoReturn


def _refuse(name: str, reason: str) -> NoReturn:
    raise NotImplementedError("%s is not supported: %s" % (name, reason))


def set_fx_dump_config(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, whatever args and kwargs are."""
    _refuse("set_fx_dump_config", "it dumps from graph mode, which needs the runtime of an NPU")


def set_ge_dump_config(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, whatever args and kwargs are."""
    _refuse("set_ge_dump_config", "it dumps from graph mode, which needs the runtime of an NPU")


def acl_save(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError, whatever args and kwargs are. None without torch_npu."""
    _refuse("acl_save", "it saves from within captured graphs, which needs the runtime of an NPU")


class AclGraphDumper:
    """Raises NotImplementedError when it is made. None without torch_npu."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("AclGraphDumper", "it dumps captured graphs, which needs the runtime of an NPU")


if "torch_npu" not in sys.modules and importlib.util.find_spec("torch_npu") is None:
    AclGraphDumper = acl_save = None
