"""Cuts a published tokenizer.json down to what its cases in testdata/cases need, so that the repository stays small.

    python cut_tokenizer.py tokenizer.json NAME.json.gz NAME.tokenizer.json.gz

A merge stays if its result stands in one of the words that the cases' texts become: no other can happen. The ids stay
what they are; needs PyPI's tokenizers.
"""

import gzip, json, sys

from tokenizers import Tokenizer

LONG = 33


def words(t, texts):
    out = set()
    for text in texts:
        normal = t.normalizer.normalize_str(text) if t.normalizer else text
        for s in (text, normal):
            out |= {w for w, _ in t.pre_tokenizer.pre_tokenize_str(s)} if t.pre_tokenizer else {s}
    return out


def main():
    source, cases, target = sys.argv[1:]
    file = json.load(open(source))
    texts = [c["text"] for c in json.load(gzip.open(cases))]
    found = words(Tokenizer.from_file(source), texts)
    parts = {w[i:j] for w in found for i in range(len(w)) for j in range(i + 1, min(len(w), i + LONG) + 1)}
    everything = "\n".join(found)
    model = file["model"]
    keep = {p for p in model["vocab"] if len(p) == 1 and (p in everything or ord(p) < 0x180) or len(p) == 6 and p.startswith("<0x")}
    merges = []
    for m in model["merges"]:
        a, b = m if isinstance(m, list) else m.split(" ")
        if a + b in parts or len(a + b) > LONG and a + b in everything:
            merges.append(m)
            keep |= {a, b, a + b}
    if model.get("ignore_merges"):
        keep |= found
    if model.get("unk_token"):
        keep.add(model["unk_token"])
    keep |= {a["content"] for a in file["added_tokens"]}
    model["vocab"] = {p: i for p, i in model["vocab"].items() if p in keep}
    # With holes in the vocabulary, added tokens keep their ids only as its pieces.
    for a in file["added_tokens"]:
        model["vocab"].setdefault(a["content"], a["id"])
    model["merges"] = merges
    with open(target, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", compresslevel=9, mtime=0, filename="") as z:
        z.write(json.dumps(file, ensure_ascii=False, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
