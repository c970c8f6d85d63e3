#!/bin/sh
# Compiles src/*.cu to PTX with clang 19 (no CUDA toolkit, no GPU) and writes
# MANIFEST: the compiler, the flags, and the SHA-256 of every source and output.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-19}
flags="-x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -nostdinc -nostdinc++ --cuda-feature=+ptx78 -std=c++17 -O3 -gline-tables-only -fdebug-prefix-map=$PWD=. -Wno-unknown-cuda-version"
for f in src/*.cu; do
  out=$(basename "$f" .cu).ptx
  $clang $flags -S "$f" -o "$out"
done
{
  echo "compiler: $($clang --version | head -n 1)"
  echo "flags: $flags" | sed "s|$PWD|PWD|"
  sha256sum src/* *.ptx
} > MANIFEST
