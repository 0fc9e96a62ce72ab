#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: newest_pytorch.sh MSPROBE
# The tests of recording with the newest PyTorch that pip offers: new functions, and what has changed below the hooks.
# MSPROBE_NEWEST_PYTHON: a Python that has a PyTorch to test with; else it is installed in the user's cache.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
binary=${1:?usage: newest_pytorch.sh MSPROBE}
package=$(dirname -- "$(dirname -- "$binary")")/python
# "build/src/msprobe" -> an absolute folder, for the tests go elsewhere.
package=$(CDPATH='' cd -- "$package" 2>/dev/null && pwd) || package=
if [ ! -d "$package/msprobe" ]; then
  echo "skipped: no collector was built beside $binary"
  exit 0
fi
python=${MSPROBE_NEWEST_PYTHON:-}
if [ -z "$python" ]; then
  python=$("$here/make_newest_environment") || {
    echo "skipped: pip did not install PyTorch"
    exit 0
  }
  exec 9>"${python%/bin/python}.lock" # nobody updates it meanwhile
  flock --shared 9
fi
version_of() { "$1" -c 'from importlib.metadata import version; print(version("torch").partition("+")[0])'; }
newest=$(version_of "$python")
if [ -n "${MSPROBE_PEER_PYTHON:-}" ]; then
  if [ "$newest" = "$(version_of "$MSPROBE_PEER_PYTHON")" ]; then
    echo "skipped: the newest PyTorch is that of collector.sh, $newest"
    exit 0
  fi
  # We must not wrap fewer functions than the Python tool.
  MSPROBE_PYTHON_TOOL_APIS=$("$MSPROBE_PEER_PYTHON" -c 'import importlib.util as u
print(u.find_spec("msprobe").submodule_search_locations[0])')/pytorch/dump/api_dump/support_wrap_ops.yaml
  export MSPROBE_PYTHON_TOOL_APIS
fi
# Without those that do not depend on the version: other frameworks, commands, files, messages.
set --
for test in "$here"/../python/*_test.py; do
  case ${test##*/} in
    arrays_* | check_gpu_* | command_* | config_check_* | interface_* | messages_* | mindspore_* | msadapter_* | native_* | \
      old_paths_* | parallel_layout_* | reload_* | response_* | robustness_* | static_graph_* | surface_*) ;;
    *) set -- "$@" "$test" ;;
  esac
done
"$here/run_python_tests" "$package" "$python" "$@"
echo "PyTorch $newest: $# test files passed"
