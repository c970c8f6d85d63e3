#!/usr/bin/env bash
# llama-server against infer, on this machine, with httpbench.py.
#
#   compare.sh MODEL.gguf MODEL_FOLDER [FLAGS of infer serve]
#
# Environment: INFER (the program; bin/infer), INFER_BENCH (work folder),
# THREADS (all), ROUNDS (5), STARTS (5; starts of each that are timed),
# SINGLE="decode1 prefill prefix long", BATCH="batch2 batch4 batch8 batch32",
# MIXED="stall" ("" skips), LLAMA_ARGS (more options for llama-server; "-fa off"
# is its best on processors), OUT (folder for the results).
#
# Phases: SINGLE with one stream, BATCH with 32, MIXED with 6; then the starts.
# Each phase starts both servers once. A server is alone while it is measured:
# the other is SIGSTOPped, so rounds can alternate every few seconds without
# loading a model each time. Only processes started here are signalled.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${INFER_BENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/infer-bench}
gguf=${1:?MODEL.gguf} model=${2:?MODEL_FOLDER}
shift 2
threads=${THREADS:-$(nproc)}
out=${OUT:-$work/results/$(date +%Y%m%d-%H%M%S)}
llama_cmd="$work/llama/bin/llama-server -m {model} --host 127.0.0.1 --port {port} -t $threads -tb $threads -np {np} -c {ctx} ${LLAMA_ARGS--fa off}"
infer_cmd="${INFER:-$here/../../bin/infer} serve {model} --port {port} --threads $threads --ctx 4096 --max-seqs {np} --log-format json $*"
mkdir -p "$out"
: >"$out/starts.txt"

pids=()
stop() {
  local p
  for p in "${pids[@]}"; do kill -CONT -- "-$p" 2>/dev/null && kill -TERM -- "-$p" 2>/dev/null || true; done
  for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
  pids=()
}
trap stop EXIT
trap 'exit 1' INT TERM

free_port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }

# start NAME COMMAND MODEL NP CTX: sets pid and port; prints the time from the
# start of the process to the first token. The file cache is warm, and memory has
# been written and freed before: a virtual machine may have to be given it first,
# which takes seconds, or not, and is nobody's merit.
start() {
  local cmd=$2 t0 id
  port=$(free_port)
  cmd=${cmd//\{model\}/$3}; cmd=${cmd//\{port\}/$port}; cmd=${cmd//\{np\}/$4}; cmd=${cmd//\{ctx\}/$5}
  find -L "$3" -type f -exec cat {} + >/dev/null
  python3 -c 'import os; b"x" * min(3 << 30, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)'
  t0=${EPOCHREALTIME/./}
  setsid bash -c "exec $cmd" >"$out/$1-np$4.log" 2>&1 &
  pid=$!
  pids+=("$pid")
  until id=$(curl -sf -m 5 "http://127.0.0.1:$port/v1/models" | sed -n 's/.*"id" *: *"\([^"]*\)".*/\1/p' | head -n1) && [[ $id ]] &&
    curl -sf -m 600 -o /dev/null -H 'Content-Type: application/json' "http://127.0.0.1:$port/v1/completions" \
      -d "{\"model\":\"$id\",\"prompt\":\"Hello\",\"max_tokens\":1,\"temperature\":0}"; do
    kill -0 "$pid" 2>/dev/null || { echo "$1 ended early:"; tail -n 20 "$out/$1-np$4.log"; exit 1; }
    (( ${EPOCHREALTIME/./} - t0 < 600000000 )) || { echo "$1 is not healthy after 10 minutes"; exit 1; }
    sleep 0.01
  done
  echo "$1 $(((${EPOCHREALTIME/./} - t0) / 1000)) ms from start to first token (np=$4)" | tee -a "$out/starts.txt"
}

phase() { # NP CTX SCENARIO...
  local np=$1 ctx=$2 a b url_a; shift 2
  start llama "$llama_cmd" "$gguf" "$np" "$ctx"; a=$pid url_a=http://127.0.0.1:$port
  kill -STOP -- "-$a"
  start infer "$infer_cmd" "$model" "$np" "$ctx"; b=$pid
  python3 "$here/httpbench.py" --url "llama=$url_a" --pid "llama=$a" --url "infer=http://127.0.0.1:$port" \
    --pid "infer=$b" --pause --rounds "${ROUNDS:-5}" --scenarios "$(IFS=,; echo "$*")" --json "$out/np$np.json" || failed=1
  stop
}

failed=0
read -ra single <<<"${SINGLE-decode1 prefill prefix long}"
read -ra batch <<<"${BATCH-batch2 batch4 batch8 batch32}"
read -ra mixed <<<"${MIXED-stall}"
if ((${#single[@]})); then phase 1 4096 "${single[@]}"; fi
if ((${#batch[@]})); then phase 32 16384 "${batch[@]}"; fi
if ((${#mixed[@]})); then phase 6 24576 "${mixed[@]}"; fi
for ((i = 0; i < ${STARTS:-5}; i++)); do
  start llama "$llama_cmd" "$gguf" 1 4096; stop
  start infer "$infer_cmd" "$model" 1 4096; stop
done
exit $failed
