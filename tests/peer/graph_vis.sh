#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: graph_vis.sh MSPROBE
# Writes the .vis files of real dumps with release 8.1.1 of the Python tool and with ours, if MSPROBE_PEER_RELEASE8 names
# the folder that it was installed to (pip install --no-deps --target FOLDER mindstudio-probe==8.1.1) and
# MSPROBE_PEER_PYTHON a Python with its libraries; else skips. MSPROBE_PEER_DUMPS: as for graph.sh.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: graph_vis.sh MSPROBE}
if [ -z "${MSPROBE_PEER_PYTHON:-}" ] || [ -z "${MSPROBE_PEER_RELEASE8:-}" ]; then
  echo "skipped: MSPROBE_PEER_RELEASE8 is not set, so there is no release 8.1.1 to compare with"
  exit 0
fi
exec python3 "$here/graph_vis_files.py" "$binary" "$MSPROBE_PEER_PYTHON" "$MSPROBE_PEER_RELEASE8" \
  ${MSPROBE_PEER_DUMPS:+"$MSPROBE_PEER_DUMPS"}
