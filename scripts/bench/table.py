#!/usr/bin/env python3
"""Markdown tables of what bench-compare.sh wrote: table.py RESULTS."""
import json
import platform
import sys
from pathlib import Path
from statistics import median

NAMES = {"bf16": "bf16", "q8": "q8 / q8_0", "q4": "q4 / q4_0"}
SCENARIOS = [  # file, scenario, what, name of the row, figure, statistic
    ("np1", "decode1", "one stream, tokens/s", "decode_tok_s", None),
    ("np1", "prefill", "prompts of 1,000 tokens, tokens/s", "prompt_tok_s", None),
    ("np1", "prefix", "the same with 1,000 known tokens, first token after, ms", "ttft_ms", "p50"),
    ("np1", "long", "prompt of 3,000 tokens, first token after, ms", "ttft_ms", "p50"),
    ("np1", "long", "… then tokens/s", "decode_tok_s", None),
    ("np32", "batch2", "2 streams, tokens/s", "out_tok_s", None),
    ("np32", "batch4", "4 streams, tokens/s", "out_tok_s", None),
    ("np32", "batch8", "8 streams, tokens/s", "out_tok_s", None),
    ("np32", "batch32", "32 streams, tokens/s", "out_tok_s", None),
    ("np6", "stall", "4 streams while a prompt of 3,000 tokens arrives, longest gap, ms", "longest_gap_ms", None),
    ("np6", "stall", "… usual gap, ms", "usual_ms", "p50"),
]


def number(v):
    return f"{v:,.0f}" if v >= 100 else f"{v:.1f}"


def cell(figure, statistic):
    if statistic:
        return figure[statistic], number(figure[statistic])
    return figure["median"], f"{number(figure['median'])} ({number(figure['min'])}–{number(figure['max'])})"


def spread(v):
    return median(v), f"{number(median(v))} ({number(min(v))}–{number(max(v))})"


def row(what, a, b):
    print(f"| {what} | {a[1]} | {b[1]} | {b[0] / a[0]:.2f} |")


def table(folder):
    model, fmt = folder.name.split("-")
    print(f"\n{model}, {NAMES[fmt]}\n\n| | llama-server | infer | ratio |\n|---|---|---|---|")
    files = {p.stem: json.loads(p.read_text())["servers"] for p in folder.glob("np*.json")}
    for file, scenario, what, figure, statistic in SCENARIOS:
        a, b = (files.get(file, {}).get(s, {}).get(scenario) for s in ("llama", "infer"))
        if a and b:
            row(what, cell(a[figure], statistic), cell(b[figure], statistic))
            if figure == "longest_gap_ms":
                usual = (r["usual_ms"]["p50"] for r in (a, b))
                row("… of the usual gap", *(spread([x / u for x in r[figure]["all"]]) for r, u in zip((a, b), usual)))
    for file, what in (("np1", "1 stream"), ("np32", "32 streams")):
        if file in files:
            row(f"peak memory, {what}, MiB", *([v := files[file][s]["peak_rss_mib"], number(v)] for s in ("llama", "infer")))
    starts = [line.split() for line in (folder / "starts.txt").read_text().splitlines() if "np=1)" in line]
    if starts:
        row("start to first token, ms", *(spread([float(s[1]) for s in starts if s[0] == who]) for who in ("llama", "infer")))
    alone, crowded = (
        [json.loads(p.read_text())["results"] for p in sorted(folder.glob(name))] for name in ("bench-*.json", "oversubscribed-*.json"))
    shares = [f"{r['test']} {number(r['median'])} tokens/s, {r['share']:.0%} of {r['of']}" for r in alone[0] if "share" in r]
    if shares:
        print("\n`infer bench`: " + "; ".join(shares) + ".")
    if crowded:
        print("\nBeside a busy process, with `--threads` of four times the processors, each after a run alone:\n\n"
              "| | alone, tokens/s | beside it | % |\n|---|---|---|---|")
        for i, r in enumerate(alone[0]):
            a, b = ([run[i]["median"] for run in runs] for runs in (alone, crowded))
            part = median(y / x for x, y in zip(a, b))
            print(f"| {r['test']} | {spread(a)[1]} | {spread(b)[1]} | {part:.0%} |")


def main(results):
    cpu = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in open("/proc/cpuinfo"))}
    flags = [f for f in cpu.get("flags", "").split() if f.startswith(("avx", "fma", "f16c", "amx"))]
    print(f"{cpu.get('model name', platform.processor())}, flags: {' '.join(flags)}")
    for folder in sorted(p for p in results.iterdir() if p.is_dir()):
        table(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
