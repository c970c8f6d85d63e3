#!/usr/bin/env bash
# gguf-twins.sh FOLDER [TYPE...]: FOLDER-bf16.gguf from a Hugging Face folder,
# then FOLDER-TYPE.gguf for each TYPE (f16, q8_0, q4_0, ...) by llama-quantize.
set -euo pipefail
cd "$(dirname "$0")"
work=${INFER_BENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/infer-bench}
hf=${1%/}; shift
if [[ ! -f $hf-bf16.gguf ]]; then
  "$work/venv/bin/python" ../smollm2/hfgguf.py to-gguf "$hf" "$hf-bf16.gguf.part"
  mv "$hf-bf16.gguf.part" "$hf-bf16.gguf"
fi
for t in "$@"; do
  [[ -f $hf-$t.gguf ]] && continue
  "$work/llama/bin/llama-quantize" "$hf-bf16.gguf" "$hf-$t.gguf.part" "$t" >"$hf-$t.log" 2>&1
  mv "$hf-$t.gguf.part" "$hf-$t.gguf"
done
ls -l "$hf"*.gguf
