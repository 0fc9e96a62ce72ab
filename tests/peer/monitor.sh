#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: monitor.sh MSPROBE
# Trainings watched by our monitor and by the Python tool's, one after the other: the same rows.
. "$(dirname -- "$0")/begin"
need_python_tool "to record beside"
need_collector
exec python3 "$here/monitor_parity.py" "$package" "$MSPROBE_PEER_PYTHON"
