# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for MindSpore, MSAdapter and torch_npu, which a test that imports this finds by their names. They need NumPy."""

import os
import sys

try:
    import numpy
except ImportError:
    print("SKIPPED: NumPy is not installed (python3-numpy)")
    sys.exit(77)

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
