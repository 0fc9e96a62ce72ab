#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: merge_result.sh MSPROBE
# Merges workbooks of both tools with both tools, if MSPROBE_PEER_PYTHON names a Python that has the other one; else
# skips.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: merge_result.sh MSPROBE}
if [ -z "${MSPROBE_PEER_PYTHON:-}" ]; then
  echo "skipped: MSPROBE_PEER_PYTHON is not set, so there is no Python msprobe to compare with"
  exit 0
fi
exec python3 "$here/merge_result.py" "$binary" "$MSPROBE_PEER_PYTHON"
