#!/usr/bin/env bash
# Checks and measures a GPU with this program: the kernels' tests on the device,
# the bandwidth of each kernel, decoding with models of random weights. Takes
# less than five minutes and writes one JSON file.
#
#   scripts/gpu-check.sh                 on this machine
#   scripts/gpu-check.sh HOST            on another, by ssh: it needs neither Go nor CUDA's toolkit
#   scripts/gpu-check.sh --simulate 1xRTX-4090     tests this very script
#
# The binary is built when Go is here; else dist/infer must have been brought
# along. REPORT is where the JSON goes (dist/gpu-report.json).
set -euo pipefail
cd "$(dirname "$0")/.."
report=${REPORT:-dist/gpu-report.json}
host='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --simulate | --device) options+=("$1" "${2:?$1 needs a value}"); shift ;;
    -*) echo "unknown option $1; see the head of $0" >&2; exit 2 ;;
    *) host=$1 ;;
  esac
  shift
done

if command -v go >/dev/null; then
  make build
  mkdir -p dist
  cp bin/infer dist/infer
fi
[ -x dist/infer ] || { echo "there is no Go here, and no dist/infer: build it elsewhere and bring it along" >&2; exit 1; }
size=$(stat -c %s dist/infer)
[ "$size" -le $((60 << 20)) ] || { echo "dist/infer has $size bytes, more than 60 MiB" >&2; exit 1; }
more=$(ldd dist/infer | grep -vE 'linux-vdso|/ld-linux|lib(c|dl|m|pthread)\.so' || true)
[ -z "$more" ] || { echo "dist/infer needs more than libc:"; echo "$more"; exit 1; }

mkdir -p "$(dirname "$report")"
status=0
if [ -z "$host" ]; then
  timeout 300 dist/infer gpu-selftest --output "$report" "${options[@]}" || status=$?
else
  there=$(ssh "$host" mktemp -d)
  scp -q dist/infer "$host:$there/infer"
  ssh "$host" "timeout 300 $there/infer gpu-selftest --output $there/report.json ${options[*]@Q}" || status=$?
  scp -q "$host:$there/report.json" "$report"
  ssh "$host" "rm -r $there"
fi
echo "the report is $report"
exit $status
