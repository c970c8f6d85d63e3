#!/usr/bin/env bash
# Runs `make serve` as a new user would and answers its curl line.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
setsid make serve ARGS="--port $port" >"$log" 2>&1 &
pid=$!
trap 'kill -TERM -- -$pid 2>/dev/null || true; wait $pid 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 300); do
  grep -q '^try: curl' "$log" && break
  kill -0 $pid 2>/dev/null || { cat "$log"; exit 1; }
  sleep 0.2
done
line=$(sed -n 's/^try: //p' "$log")
[ -n "$line" ] || { echo "no curl line after 60 s"; cat "$log"; exit 1; }
echo "$line"
answer=$(eval "$line -sS --fail --max-time 60")
echo "$answer"
grep -q '"finish_reason"' <<<"$answer"
