#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: msadapter.sh MSPROBE
# Trainings that are written for PyTorch and run on MindSpore through MSAdapter, recorded with our collector and with the
# Python tool, and the trees compared; then that recording changes nothing.
# MSPROBE_PEER_MSADAPTER: a Python that has both; or 1, and they are installed in a separate folder.
. "$(dirname -- "$0")/begin"
need_collector
[ -n "${MSPROBE_PEER_MSADAPTER:-}" ] ||
  skip "MSPROBE_PEER_MSADAPTER is not set: a Python that has MSAdapter and the Python tool, or 1 to install them"
python=$(installed msadapter "$MSPROBE_PEER_MSADAPTER") || skip "MSAdapter and the Python tool could not be installed"
python3 "$here/collector_parity.py" "$package" --framework msadapter --peer-python "$python"
"$python" -W ignore "$here/msadapter_unchanged.py" "$package"
