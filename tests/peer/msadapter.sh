#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: msadapter.sh MSPROBE
# Trainings that are written for PyTorch and run on MindSpore through MSAdapter, recorded with our collector and with the
# Python tool, and the trees compared; then that recording changes nothing.
# MSPROBE_PEER_MSADAPTER: a Python that has both; or 1, and they are installed in a folder of their own.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: msadapter.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
package=$(CDPATH='' cd -- "$package" 2>/dev/null && pwd) || package=
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
python=${MSPROBE_PEER_MSADAPTER:-}
case $python in
  '')
    echo "skipped: MSPROBE_PEER_MSADAPTER is not set: a Python that has MSAdapter and the Python tool, or 1 to install them"
    exit 0
    ;;
  1)
    folder=$(dirname -- "$package")/msadapter-peer
    "$here/make_msadapter_environment" "$folder" || {
      echo "skipped: MSAdapter and the Python tool could not be installed"
      exit 0
    }
    python=$folder/bin/python
    ;;
esac
python3 "$here/collector_parity.py" "$package" --framework msadapter --peer-python "$python"
"$python" -W ignore "$here/msadapter_unchanged.py" "$package"
