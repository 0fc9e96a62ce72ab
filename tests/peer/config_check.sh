#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: config_check.sh MSPROBE
# Compares packs that the Python tool collects in two small trainings with both tools, if MSPROBE_PEER_PYTHON names a
# Python that has it; else skips.
. "$(dirname -- "$0")/begin"
need_python_tool "to compare with"
exec python3 "$here/config_packs.py" compare "$binary" "$MSPROBE_PEER_PYTHON"
