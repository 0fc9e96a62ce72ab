#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: mindspore.sh MSPROBE
# Scenarios in MindSpore's dynamic graph, recorded with our collector and with the Python tool, and the trees compared; a
# training under both monitors, and their figures compared; what save() and ConfigChecker write; tasks that leave a training as it
# is; a training in two processes, and one that ends inside a gradient; operations that acc_check calls again, and their
# references; then the golden dumps of MindSpore, compared by both.
# MSPROBE_PEER_MINDSPORE: a Python that has both; or 1, and they are installed in a separate folder.
. "$(dirname -- "$0")/begin"
need_collector
[ -n "${MSPROBE_PEER_MINDSPORE:-}" ] ||
  skip "MSPROBE_PEER_MINDSPORE is not set: a Python that has MindSpore and the Python tool, or 1 to install them"
python=$(installed mindspore "$MSPROBE_PEER_MINDSPORE") || skip "MindSpore and the Python tool could not be installed"
python3 "$here/collector_parity.py" "$package" --framework mindspore --peer-python "$python"
"$python" "$here/mindspore_monitor.py" "$package"
"$python" "$here/mindspore_operations.py" "$package"
"$python" "$here/mindspore_kernels.py" "$package"
"$python" "$here/mindspore_saves.py" "$package"
"$python" "$here/mindspore_packs.py" "$package"
"$python" "$here/mindspore_tasks.py" "$package"
"$python" "$here/mindspore_exit.py" "$package"
"$python" "$here/mindspore_ranks.py" "$package"
"$python" "$here/mindspore_precheck.py" "$binary" "$package"
python3 "$here/compare_with_peer.py" --msprobe "$binary" --peer-python "$python" --framework mindspore \
  --golden "$here/../data/golden"
