#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: precheck.sh MSPROBE
# Records a small Llama of the library transformers, healthy and with three wrong kernels below the recorder, and looks
# whether acc_check names them and nothing else. MSPROBE_PEER_TRANSFORMERS: a Python that has PyTorch 2 and transformers.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: precheck.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
package=$(CDPATH='' cd -- "$package" 2>/dev/null && pwd) || package=
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
if [ -z "${MSPROBE_PEER_TRANSFORMERS:-}" ]; then
  echo "skipped: MSPROBE_PEER_TRANSFORMERS is not set: a Python that has PyTorch and transformers"
  exit 0
fi
exec "$MSPROBE_PEER_TRANSFORMERS" -W ignore "$here/precheck_llama.py" "$binary" "$package"
