#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: hard_links.sh MSPROBE
# The Python tool compares a dump of ours, whose equal tensors are one file under several names, as it does a copy in
# which each name is a file. Skipped unless MSPROBE_PEER_PYTHON names a Python that has it.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: hard_links.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
package=$(CDPATH='' cd -- "$package" 2>/dev/null && pwd) || package=
if [ -z "${MSPROBE_PEER_PYTHON:-}" ]; then
  echo "skipped: MSPROBE_PEER_PYTHON is not set, so there is no Python msprobe to compare with"
  exit 0
fi
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
exec python3 "$here/hard_links.py" "$binary" "$package" "$MSPROBE_PEER_PYTHON"
