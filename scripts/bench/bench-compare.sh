#!/usr/bin/env bash
# The tables of docs/performance.md: infer against llama.cpp on this machine, the
# same weights and bits on both sides. Leave the machine alone meanwhile: about
# an hour on two processors, the first time more (llama.cpp is built, models are
# made). Environment: as of compare.sh, and MODELS="135m 1b", FORMATS="bf16 q8 q4",
# ROUNDS_1B (5). Needs python3, cmake, a C++ compiler and PyPI.
set -euo pipefail
busy=
trap '[[ -z $busy ]] || kill "$busy" 2>/dev/null || true' EXIT
cd "$(dirname "$0")"
export INFER_BENCH=${INFER_BENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/infer-bench}
results=${OUT:-$INFER_BENCH/results/$(date +%Y%m%d-%H%M%S)}
mkdir -p "$results"
results=$(cd "$results" && pwd)
models=$INFER_BENCH/models
infer=${INFER:-../../bin/infer}
declare -A gguf=([bf16]=bf16 [q8]=q8_0 [q4]=q4_0)
[[ -f $INFER_BENCH/llama/VERSION ]] || ./build-llama.sh
small=$(../smollm2/get.sh)
./gguf-twins.sh "$small" q8_0 q4_0 >/dev/null
for model in ${MODELS:-135m 1b}; do
  folder=$small rounds=${ROUNDS:-5}
  if [[ $model == 1b ]]; then
    folder=$models/llama-3.2-1b rounds=${ROUNDS_1B:-5}
    [[ -f $folder/config.json ]] || "$INFER_BENCH/venv/bin/python" make-random-model.py llama-3.2-1b "$small" "$folder"
    ./gguf-twins.sh "$folder" q8_0 q4_0 >/dev/null
  fi
  for format in ${FORMATS:-bf16 q8 q4}; do
    flags=(--speculate off) # one token a step on both sides
    [[ $format == bf16 ]] || flags+=(--quantize "$format")
    batch="batch2 batch4 batch8 batch32" mixed=stall single="decode1 prefill prefix long"
    [[ $format == bf16 ]] || { single="decode1 prefill" batch="batch8 batch32" mixed=''; }
    [[ $format != q4 ]] || batch=
    [[ $model != 1b ]] || { single=decode1 batch='' mixed=''; }
    echo "== $model $format"
    SINGLE=${SINGLE-$single} BATCH=${BATCH-$batch} MIXED=${MIXED-$mixed} ROUNDS=$rounds OUT=$results/$model-$format \
      ./compare.sh "$folder-${gguf[$format]}.gguf" "$folder" "${flags[@]}"
    bench=("$infer" bench "$folder" "${flags[@]:2}" --prefill 512 --batch 1,8 --json)
    # Alone, and with four times as many threads asked for as there are
    # processors, beside a process that never rests; in turns.
    for i in 1 2 3 4 5; do
      "${bench[@]}" >"$results/$model-$format/bench-$i.json"
      [[ $model != 1b ]] || break
      sh -c 'while :; do :; done' & busy=$!
      "${bench[@]}" --threads $((4 * $(nproc))) >"$results/$model-$format/oversubscribed-$i.json"
      kill $busy
      busy=
    done
  done
done
python3 table.py "$results" | tee "$results/table.md"
# What the garbage collector stops, and for how long the machine does.
trace=$results/gc.trace
(cd ../.. && export GOTOOLCHAIN=go1.27.3 CGO_ENABLED=0
  go test -vet=off -tags nomsgpack -run '^$' -bench GarbageCollection -benchtime 2000x -trace "$trace" -o "$results/engine.test" ./runtime/engine
  go tool trace -d=parsed "$trace" | python3 scripts/bench/gcstops.py
  go run ./scripts/bench/away) | tee "$results/gc.txt"
