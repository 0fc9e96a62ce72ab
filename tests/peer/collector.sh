#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: collector.sh MSPROBE
# The tests of the Python front end with the PyTorch of that Python; then the scenarios recorded with our collector and
# with the Python tool, and the trees compared.
. "$(dirname -- "$0")/begin"
need_python_tool "to record beside"
need_collector
export_wrapped
"$here/run_python_tests" "$package" "$MSPROBE_PEER_PYTHON" "$here"/../python/*_test.py
python3 "$here/collector_parity.py" "$package" --peer-python "$MSPROBE_PEER_PYTHON"
