#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: graph.sh MSPROBE
# Writes graphs of real dumps with both tools, if MSPROBE_PEER_PYTHON names a Python that has the other one; else skips.
# MSPROBE_PEER_DUMPS may name a folder where make_real_dumps.py has already written.
. "$(dirname -- "$0")/begin"
need_python_tool "to compare with"
exec python3 "$here/graph_databases.py" "$binary" "$MSPROBE_PEER_PYTHON" ${MSPROBE_PEER_DUMPS:+"$MSPROBE_PEER_DUMPS"}
