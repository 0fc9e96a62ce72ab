#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make_environment.sh FOLDER
# A virtual environment with PyTorch and the Python tool, for the checks beside this file. Exit status 1, with the
# reason, where the registry does not give it within ten minutes.
set -eu
folder=${1:?usage: make_environment.sh FOLDER}
python=$folder/bin/python
if [ ! -x "$python" ]; then
  python3 -m venv "$folder" || exit 1
fi
[ -f "$folder/complete" ] && exit 0
pip() {
  timeout 300 "$python" -m pip install --quiet --disable-pip-version-check "$@"
}
pip torch==2.13.0 numpy safetensors pandas==2.2.3 openpyxl PyYAML tqdm matplotlib einops rich wheel psutil packaging \
  tensorboard || exit 1
# Without what it asks for besides: inference runtimes that the checks have no use for.
pip --no-deps mindstudio-probe==26.2.0 || exit 1
touch "$folder/complete"
