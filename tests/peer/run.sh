#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh MSPROBE [options of compare_with_peer.py]
# Compares our results with the Python tool's, if MSPROBE_PEER_PYTHON names a Python that has it; else skips.
# MSPROBE_PEER_DUMPS may name a folder where make_real_dumps.py has already written.
. "$(dirname -- "$0")/begin"
shift
need_python_tool "to compare with"
if [ -n "${MSPROBE_PEER_DUMPS:-}" ]; then
  set -- --dumps "$MSPROBE_PEER_DUMPS" "$@"
fi
status=0
python3 "$here/compare_with_peer.py" --msprobe "$binary" --peer-python "$MSPROBE_PEER_PYTHON" \
  --golden "$here/../data/golden" "$@" || status=$?
if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then # 77: the line saying why is already printed
  exit "$status"
fi
status=0
"$MSPROBE_PEER_PYTHON" -W ignore "$here/real_checkpoints.py" "$binary" || status=$?
exit "$status"
