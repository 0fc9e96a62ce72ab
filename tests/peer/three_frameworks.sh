#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: three_frameworks.sh MSPROBE
# One network under PyTorch, MindSpore and MSAdapter, each compared with the others.
# MSPROBE_PEER_PYTHON, MSPROBE_PEER_MINDSPORE, MSPROBE_PEER_MSADAPTER: a Python that has the one; or 1 for the last two, and
# they are installed in separate folders.
. "$(dirname -- "$0")/begin"
need_collector
if [ -z "${MSPROBE_PEER_PYTHON:-}" ] || [ -z "${MSPROBE_PEER_MINDSPORE:-}" ] || [ -z "${MSPROBE_PEER_MSADAPTER:-}" ]; then
  skip "it takes MSPROBE_PEER_PYTHON, MSPROBE_PEER_MINDSPORE and MSPROBE_PEER_MSADAPTER, and not all are set"
fi
if ! mindspore=$(installed mindspore "$MSPROBE_PEER_MINDSPORE") || ! msadapter=$(installed msadapter "$MSPROBE_PEER_MSADAPTER"); then
  skip "MindSpore or MSAdapter could not be installed"
fi
python3 "$here/three_frameworks.py" --msprobe "$binary" --package "$package" --pytorch "$MSPROBE_PEER_PYTHON" \
  --mindspore "$mindspore" --msadapter "$msadapter"
