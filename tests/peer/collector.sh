#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: collector.sh MSPROBE
# The tests of the Python front end with the PyTorch of that Python; then the scenarios recorded with our collector and
# with the Python tool, and the trees compared.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: collector.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
# "build/src/msprobe" -> an absolute folder, for the tests go elsewhere.
package=$(CDPATH='' cd -- "$package" 2>/dev/null && pwd) || package=
if [ -z "${MSPROBE_PEER_PYTHON:-}" ]; then
  echo "skipped: MSPROBE_PEER_PYTHON is not set, so there is no Python msprobe to record beside"
  exit 0
fi
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
# Its lists of functions: we must not wrap fewer.
MSPROBE_PYTHON_TOOL_APIS=$("$MSPROBE_PEER_PYTHON" -c 'import importlib.util as u
print(u.find_spec("msprobe").submodule_search_locations[0])')/pytorch/dump/api_dump/support_wrap_ops.yaml
export MSPROBE_PYTHON_TOOL_APIS
"$here/run_python_tests" "$package" "$MSPROBE_PEER_PYTHON" "$here"/../python/*_test.py
python3 "$here/collector_parity.py" "$package" --peer-python "$MSPROBE_PEER_PYTHON"
