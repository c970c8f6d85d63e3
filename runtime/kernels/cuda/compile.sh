#!/bin/sh
# Compiles src/*.cu to ptx/*.ptx with clang 19 (no CUDA toolkit, no GPU) and
# writes ptx/MANIFEST: compiler, flags, SHA-256 of each source and output.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-19}
flags="-x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -nostdinc -nostdinc++ --cuda-feature=+ptx78 -std=c++17 -O3 -ffp-contract=off -gline-tables-only -Wall -Wno-unknown-cuda-version -Wno-unused-function"
for f in src/*.cu; do
  # The sources are named relative to this folder, so that the output is the
  # same wherever it is made.
  $clang $flags -fdebug-prefix-map="$PWD"=. -S "$f" -o "ptx/$(basename "$f" .cu).ptx"
done
{
  echo "compiler: $($clang --version | head -n 1)"
  echo "flags: $flags"
  sha256sum compile.sh src/* ptx/*.ptx
} > ptx/MANIFEST
