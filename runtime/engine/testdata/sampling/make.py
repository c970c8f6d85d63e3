"""Derives goldens.json from the definitions of transformers' logits processors
and warpers and of vLLM's penalties, written out plainly: full sorts, cumulative
sums, no selection. python3 make.py > goldens.json

Order: allowed ids, bad words, min_tokens, logit_bias, repetition, frequency and
presence penalty (vLLM, v1/sample/sampler.py); temperature, top_k, top_p, min_p
(transformers, generation/logits_process.py in the order of generate()).
"""
import json, math, random, struct

INF = float("inf")


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def processed(c):
    x = list(c["logits"])
    ids, out = c["prompt"] + c["output"], c["output"]
    if c.get("allowed") is not None:
        x = [v if i in c["allowed"] else -INF for i, v in enumerate(x)]
    for word in c.get("bad_words", []):
        head = word[:-1]
        if not head or ids[-len(head):] == head:
            x[word[-1]] = -INF
    if len(out) < c.get("min_tokens", 0):
        for i in c["stops"]:
            x[i] = -INF
    for i, b in c.get("bias", {}).items():
        x[int(i)] = f32(x[int(i)] + b)
    rep = c.get("repetition", 1)
    for i in set(ids):
        if rep != 1:
            x[i] = f32(x[i] / rep if x[i] > 0 else x[i] * rep)
    for i in set(out):
        x[i] = f32(x[i] - c.get("frequency", 0) * out.count(i) - c.get("presence", 0))
    return x


def softmax(x):
    m = max(x)
    e = [math.exp(v - m) for v in x]
    s = math.fsum(e)
    return [v / s for v in e]


def kept(x, c):
    """Probabilities after the warpers; 0 for what they remove."""
    s = [v / c["temperature"] for v in x]
    k = c.get("top_k", 0)
    if k:
        kth = sorted(s, reverse=True)[min(k, len(s)) - 1]
        s = [-INF if v < kth else v for v in s]
    p = c.get("top_p", 1)
    if p < 1:
        # TopPLogitsWarper: ascending, remove while the sum is <= 1 - p. Among
        # equals the higher id is removed first.
        order = sorted(range(len(s)), key=lambda i: (s[i], -i))
        probs, total = softmax(s), 0.0
        for i in order[:-1]:
            total += probs[i]
            if total > 1 - p:
                break
            s[i] = -INF
    m = c.get("min_p", 0)
    if m:
        probs = softmax(s)
        top = max(probs)
        s = [-INF if q < m * top else v for v, q in zip(s, probs)]
    return softmax(s)


def make(rng, **kw):
    n = kw.pop("n", 40)
    c = {"temperature": 1.0, "prompt": [1, 2, 3, 2], "output": [5, 5, 6], "stops": [0, 7]}
    c["logits"] = [f32(rng.gauss(0, 2.5)) for _ in range(n)]
    c.update(kw)
    x = processed(c)
    top = max(x)
    c["greedy"] = x.index(top)
    probs = kept(x, c)
    c["kept"] = [[i, p] for i, p in enumerate(probs) if p > 0]
    m = max(c["logits"])
    lse = m + math.log(math.fsum(math.exp(v - m) for v in c["logits"]))
    order = sorted(range(n), key=lambda i: (-c["logits"][i], i))
    c["logprobs"] = [[i, c["logits"][i] - lse] for i in order[:6]]
    return c


def main():
    r = random.Random(20)
    cases = [
        make(r), make(r, temperature=0.3), make(r, temperature=1.9),
        make(r, top_k=1), make(r, top_k=5), make(r, top_k=39), make(r, top_k=40), make(r, top_k=400),
        make(r, top_p=0.9), make(r, top_p=0.5), make(r, top_p=0.01), make(r, top_p=0.999),
        make(r, min_p=0.05), make(r, min_p=1.0), make(r, min_p=0.3, temperature=0.7),
        make(r, top_k=10, top_p=0.8), make(r, top_k=10, top_p=0.8, min_p=0.2, temperature=1.3),
        make(r, repetition=1.3), make(r, repetition=0.5), make(r, presence=1.5), make(r, frequency=0.8),
        make(r, presence=-2.0, frequency=-0.5), make(r, repetition=1.2, presence=0.3, frequency=0.4, top_p=0.9),
        make(r, bias={"4": 3.5, "9": -100.0, "17": 0.25}), make(r, allowed=[3, 8, 13, 21]),
        make(r, bad_words=[[11], [5, 6, 12], [6, 13], [2, 3, 14]]), make(r, min_tokens=4), make(r, min_tokens=3),
        make(r, min_tokens=10, allowed=[0, 7, 20, 30], top_k=3, bias={"20": 1.0}, repetition=1.1),
        make(r, logits=[1.0, 2.0, 2.0, 2.0, 0.5], n=5, prompt=[1], output=[], top_k=2),
        make(r, logits=[1.0, 2.0, 2.0, 2.0, 0.5], n=5, prompt=[1], output=[], top_p=0.5),
        make(r, logits=[0.0] * 8, n=8, prompt=[1], output=[], top_p=0.45),
        make(r, n=600, top_p=0.95), make(r, n=600, top_k=50, top_p=0.95, temperature=0.7),
    ]
    print(json.dumps(cases, indent=None, separators=(",", ":")).replace("},{\"temp", "},\n{\"temp"))


main()
