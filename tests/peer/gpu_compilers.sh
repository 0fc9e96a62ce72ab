#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/peer/gpu_compilers.sh MSPROBE
# The kernel that measures tensors on a GPU, compiled by the real compilers: NVRTC from pip, hipRTC from Debian, neither of
# which needs a GPU. MSPROBE is the binary of a build that has the Python extension and the unit tests' doubles, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$(dirname "$(dirname "$1")")
if [[ ! -d $build/python/msprobe || ! -e $build/tests/unit/libfake_gpu.so ]]; then
  echo "skipped: no collector, or no doubles, were built beside $1"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compilers=()
for package in nvidia-cuda-nvrtc-cu11 nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvrtc; do # of CUDA 11 and 12, and the newest
  if timeout 300 python3 -m pip install --quiet --target "$work/$package" "$package" 2>"$work/why"; then
    compilers+=("$(find "$work/$package" -name 'libnvrtc.so.*' ! -name '*.alt.*' | sort | head -1)")
  else
    echo "skipped: pip cannot install $package: $(tail -1 "$work/why")"
  fi
done
hip=""
packages=(libamdhip64-5 libamd-comgr2 libhiprtc-builtins5 libhsa-runtime64-1 libhsakmt1 libnuma1)
if (cd "$work" && apt-get download "${packages[@]}" && for file in *.deb; do dpkg -x "$file" hip; done) >"$work/why" 2>&1; then
  hip=$(find "$work/hip" -name 'libamdhip64.so.5')
  LD_LIBRARY_PATH=$(dirname "$hip")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
else
  echo "skipped: hipRTC cannot be taken from Debian's packages: $(tail -1 "$work/why")"
fi
MSPROBE_FAKE_GPU=$build/tests/unit/libfake_gpu.so PYTHONPATH=$build/python \
  /usr/bin/python3 tests/peer/gpu_compilers.py "$hip" "${compilers[@]}"
