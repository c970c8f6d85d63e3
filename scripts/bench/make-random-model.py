#!/usr/bin/env python3
"""Random weights in bf16, in a Hugging Face folder of a named (Llama) shape.

  make-random-model.py SHAPE SMOLLM2_FOLDER OUT_FOLDER    SHAPE: llama-3.2-1b | llama-3.2-3b | qwen2.5-0.5b

For timing only: the answers are noise. Llama architecture throughout (no
rope_scaling, no q/k/v bias), SmolLM2's tokenizer padded to the vocabulary.
GGUF twins: gguf-twins.sh OUT_FOLDER.
"""
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "smollm2"))
import hfgguf  # noqa: E402

SHAPES = {
    "llama-3.2-1b": dict(hidden=2048, inter=8192, layers=16, heads=32, kv=8, head_dim=64, vocab=128256, theta=5e5),
    "llama-3.2-3b": dict(hidden=3072, inter=8192, layers=28, heads=24, kv=8, head_dim=128, vocab=128256, theta=5e5),
    "qwen2.5-0.5b": dict(hidden=896, inter=4864, layers=24, heads=14, kv=2, head_dim=64, vocab=151936, theta=1e6),
}
CTX, BLOCK = 8192, 1 << 23


def main(shape, tokenizer, out):
    s = SHAPES[shape]
    out.mkdir(parents=True, exist_ok=True)
    cfg = hfgguf.llama_config(**s, eps=1e-5, ctx=CTX, tied=True, bos=1, eos=2, pad=2)
    hfgguf.dump(out / "config.json", cfg)
    tok = json.loads((tokenizer / "tokenizer.json").read_text())
    tcfg = json.loads((tokenizer / "tokenizer_config.json").read_text())
    vocab = sorted(tok["model"]["vocab"], key=tok["model"]["vocab"].get)
    special = {t["content"] for t in tok["added_tokens"]}
    types = [3 if t in special else 1 for t in vocab]
    vocab += [f"<|unused_{i}|>" for i in range(len(vocab), s["vocab"])]  # decodable, never encoded to
    types += [1] * (s["vocab"] - len(types))
    hfgguf.write_tokenizer(out, vocab, types, tok["model"]["merges"], 1, 2, 0, 2, CTX, tcfg["chat_template"])

    q, kv, h = s["heads"] * s["head_dim"], s["kv"] * s["head_dim"], s["hidden"]
    dims = {"token_embd": (s["vocab"], h), "output_norm": (h,), "attn_norm": (h,), "ffn_norm": (h,),
            "attn_q": (q, h), "attn_k": (kv, h), "attn_v": (kv, h), "attn_output": (h, q),
            "ffn_gate": (s["inter"], h), "ffn_up": (s["inter"], h), "ffn_down": (h, s["inter"])}
    specs = sorted((hfgguf.hf_name(n), dims[n.split(".")[-2]])
                   for n in hfgguf.gguf_names(s["layers"], tied=True))
    rng = np.random.Generator(np.random.SFC64(1))

    def produce(name, dim):
        n = int(np.prod(dim))
        if len(dim) == 1:
            yield np.full(n, 0x3F80, np.uint16)  # 1.0
            return
        for at in range(0, n, BLOCK):
            yield hfgguf.to_bf16(rng.standard_normal(min(BLOCK, n - at), np.float32) * np.float32(0.02))

    hfgguf.write_safetensors(out / "model.safetensors", specs, produce)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in SHAPES:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
