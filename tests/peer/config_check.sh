#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: config_check.sh MSPROBE
# Compares packs that the Python tool collects in two small trainings with both tools, if MSPROBE_PEER_PYTHON names a
# Python that has it; else skips.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: config_check.sh MSPROBE}
if [ -z "${MSPROBE_PEER_PYTHON:-}" ]; then
  echo "skipped: MSPROBE_PEER_PYTHON is not set, so there is no Python msprobe to compare with"
  exit 0
fi
exec python3 "$here/config_packs.py" compare "$binary" "$MSPROBE_PEER_PYTHON"
