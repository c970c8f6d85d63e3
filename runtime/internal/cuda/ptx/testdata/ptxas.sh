#!/bin/sh
# Assembles every committed .ptx for each architecture that runs plain sm_80 PTX.
# usage: ptxas.sh path/to/ptxas   (PyPI: nvidia-cuda-nvcc; needs no GPU)
set -eu
cd "$(dirname "$0")"
bad=0
for f in *.ptx; do
  for a in 80 86 87 88 89 90 100 103 107 110 120 121; do
    "$1" -arch=sm_$a -o /dev/null "$f" || { echo "$f for sm_$a failed"; bad=1; }
  done
done
exit $bad
