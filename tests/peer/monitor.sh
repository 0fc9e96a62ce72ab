#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: monitor.sh MSPROBE
# Trainings watched by our monitor and by the Python tool's, one after the other: the same rows.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: monitor.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
if [ -z "${MSPROBE_PEER_PYTHON:-}" ]; then
  echo "skipped: MSPROBE_PEER_PYTHON is not set, so there is no Python msprobe to record beside"
  exit 0
fi
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
exec python3 "$here/monitor_parity.py" "$package" "$MSPROBE_PEER_PYTHON"
