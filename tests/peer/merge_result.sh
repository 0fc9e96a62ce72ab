#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: merge_result.sh MSPROBE
# Merges workbooks of both tools with both tools, if MSPROBE_PEER_PYTHON names a Python that has the other one; else
# skips.
. "$(dirname -- "$0")/begin"
need_python_tool "to compare with"
exec python3 "$here/merge_result.py" "$binary" "$MSPROBE_PEER_PYTHON"
