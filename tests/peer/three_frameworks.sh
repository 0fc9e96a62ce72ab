#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: three_frameworks.sh MSPROBE
# One network under PyTorch, MindSpore and MSAdapter, each compared with the others.
# MSPROBE_PEER_PYTHON, MSPROBE_PEER_MINDSPORE, MSPROBE_PEER_MSADAPTER: a Python that has the one; or 1 for the last two, and
# they are installed in folders of their own.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: three_frameworks.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
package=$(CDPATH='' cd -- "$package" 2>/dev/null && pwd) || package=
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
if [ -z "${MSPROBE_PEER_PYTHON:-}" ] || [ -z "${MSPROBE_PEER_MINDSPORE:-}" ] || [ -z "${MSPROBE_PEER_MSADAPTER:-}" ]; then
  echo "skipped: it takes MSPROBE_PEER_PYTHON, MSPROBE_PEER_MINDSPORE and MSPROBE_PEER_MSADAPTER, and not all are set"
  exit 0
fi
# installed NAME PYTHON: that Python, or the one of an environment that is made
installed() {
  if [ "$2" != 1 ]; then
    echo "$2"
    return
  fi
  "$here/make_$1_environment" "$(dirname -- "$package")/$1-peer" >&2 && echo "$(dirname -- "$package")/$1-peer/bin/python"
}
if ! mindspore=$(installed mindspore "$MSPROBE_PEER_MINDSPORE") || ! msadapter=$(installed msadapter "$MSPROBE_PEER_MSADAPTER"); then
  echo "skipped: MindSpore or MSAdapter could not be installed"
  exit 0
fi
python3 "$here/three_frameworks.py" --msprobe "$binary" --package "$package" --pytorch "$MSPROBE_PEER_PYTHON" \
  --mindspore "$mindspore" --msadapter "$msadapter"
