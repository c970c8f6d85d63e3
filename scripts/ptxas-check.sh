#!/bin/bash
# Assembles the committed PTX with NVIDIA's ptxas (from PyPI; no GPU needed) for
# every architecture that plain sm_80 PTX serves, and fails when a kernel does
# not assemble, spills registers or uses local memory.
# Exit code 3: the tool cannot be had here. Arguments: modules to check; all of them by default. ptxas is kept in PTXAS_DIR.
set -euo pipefail
cd "$(dirname "$0")/../runtime/kernels/cuda/ptx"
version=13.5.37
dir=${PTXAS_DIR:-${TMPDIR:-/tmp}/ptxas-$version}
ptxas=$dir/nvidia/cu13/bin/ptxas
if [ ! -x "$ptxas" ]; then
  mkdir -p "$dir"
  python3 -m pip download -q --disable-pip-version-check --no-deps -d "$dir" "nvidia-cuda-nvcc==$version" || exit 3
  python3 -m zipfile -e "$dir"/nvidia_cuda_nvcc-"$version"-*.whl "$dir"
  chmod +x "$ptxas"
fi
archs=${ARCHS:-80 86 87 88 89 90 100 103 107 110 120 121}
modules=("$@")
[ $# -gt 0 ] || modules=(*.ptx)
bad=0
for f in "${modules[@]}"; do
  f=${f%.ptx}.ptx
  for a in $archs; do
    if ! out=$("$ptxas" -v -arch="sm_$a" -o /dev/null "$f" 2>&1); then
      echo "$f does not assemble for sm_$a:"; echo "$out"; bad=1
      continue
    fi
    spills=$(awk '/Compiling entry function/ { name = $7 }
      /bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ { print "  " name ":" $0 }' <<<"$out")
    if [ -n "$spills" ]; then
      echo "$f for sm_$a keeps registers in memory:"; echo "$spills"; bad=1
    fi
  done
  echo "$f: assembled for $archs"
done
exit $bad
