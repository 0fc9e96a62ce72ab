#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: collector.sh MSPROBE
# Records the scenarios with our collector and with the Python tool, and compares the trees.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: collector.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
if [ -z "${MSPROBE_PEER_PYTHON:-}" ]; then
  echo "skipped: MSPROBE_PEER_PYTHON is not set, so there is no Python msprobe to record beside"
  exit 0
fi
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: $package holds no collector"
  exit 0
fi
exec python3 "$here/collector_parity.py" "$package" --peer-python "$MSPROBE_PEER_PYTHON"
