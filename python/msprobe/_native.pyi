# SPDX-License-Identifier: Apache-2.0
# The extension is for the modules of this package, which check what they are given.
from typing import Any

version: str

def __getattr__(name: str) -> Any: ...
