#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: precheck.sh MSPROBE
# Records a small Llama of the library transformers, healthy and with three wrong kernels below the recorder, and looks
# whether acc_check names them and nothing else. MSPROBE_PEER_TRANSFORMERS: a Python that has PyTorch 2 and transformers.
. "$(dirname -- "$0")/begin"
need_collector
[ -n "${MSPROBE_PEER_TRANSFORMERS:-}" ] || skip "MSPROBE_PEER_TRANSFORMERS is not set: a Python that has PyTorch and transformers"
exec "$MSPROBE_PEER_TRANSFORMERS" -W ignore "$here/precheck_llama.py" "$binary" "$package"
