#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: hard_links.sh MSPROBE
# The Python tool compares a dump of ours, whose equal tensors are one file under several names, as it does a copy in
# which each name is a file. Skipped unless MSPROBE_PEER_PYTHON names a Python that has it.
. "$(dirname -- "$0")/begin"
need_python_tool "to compare with"
need_collector
exec python3 "$here/hard_links.py" "$binary" "$package" "$MSPROBE_PEER_PYTHON"
