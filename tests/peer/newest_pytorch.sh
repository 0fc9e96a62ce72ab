#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: newest_pytorch.sh MSPROBE
# The tests of recording with the newest PyTorch that pip offers: new functions, and what has changed below the hooks.
# MSPROBE_NEWEST_PYTHON: a Python that has a PyTorch to test with; else it is installed in the user's cache.
. "$(dirname -- "$0")/begin"
need_collector
python=${MSPROBE_NEWEST_PYTHON:-}
if [ -z "$python" ]; then
  python=$("$here/make_newest_environment") || skip "pip did not install PyTorch"
  exec 9>"${python%/bin/python}.lock" # nobody updates it meanwhile
  flock --shared 9
fi
version_of() { "$1" -c 'from importlib.metadata import version; print(version("torch").partition("+")[0])'; }
newest=$(version_of "$python")
if [ -n "${MSPROBE_PEER_PYTHON:-}" ]; then
  if [ "$newest" = "$(version_of "$MSPROBE_PEER_PYTHON")" ]; then
    skip "the newest PyTorch is that of collector.sh, $newest"
  fi
  export_wrapped
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
