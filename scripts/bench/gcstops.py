"""How long the garbage collector stops a Go program, from its execution trace:

    go test -run '^$' -bench GarbageCollection -trace T ./runtime/engine
    go tool trace -d=parsed T | python3 gcstops.py

A stop begins when the runtime asks for it, and is over when the first goroutine
that was put aside for it runs again: from then on it is the system that keeps
others waiting. Beside it is the runtime's own figure (/sched/pauses/total/gc),
which ends when the thread that stopped the others has woken them all, and that
one is often put aside by those it woke; and when the last one runs again.
"""

import re
import sys

STOP = re.compile(r'M=\S+ P=\S+ G=\S+ Range(Begin|End) Time=(\d+) Name="stop-the-world \(GC ')
STATE = re.compile(r'M=\S+ P=\S+ G=\S+ StateTransition Time=(\d+) GoID=(\d+) (\w+)->(\w+) Reason="([^"]*)"')


def stops(lines):
    """Nanoseconds until the first one runs again, by the runtime, and until the last one does, of each."""
    out, begun, aside = [], None, {}  # aside: goroutine -> its stop
    for line in lines:
        if m := STOP.match(line):
            if m[1] == "Begin":
                begun = {"at": int(m[2]), "again": []}
            elif begun:
                begun["end"] = int(m[2])
                out.append(begun)
                begun = None
        elif m := STATE.match(line):
            t, goroutine, to = int(m[1]), m[2], m[4]
            if begun and m[3] == "Running" and to == "Runnable" and m[5] == "preempted":
                aside.setdefault(goroutine, begun)
            elif to == "Running" and goroutine in aside:
                aside.pop(goroutine)["again"].append(t)
    return [(min([s["end"]] + s["again"]) - s["at"], s["end"] - s["at"], max(s["again"] or [s["end"]]) - s["at"]) for s in out]


def main():
    both = stops(sys.stdin)
    if not both:
        sys.exit("no stop of the collector in the trace")
    print(f"{len(both)} stops, ms: median, one in 100, one in 1,000, the longest")
    for name, at in (("until the first runs again", 0), ("by the runtime", 1), ("until the last runs again", 2)):
        v = sorted(s[at] / 1e6 for s in both)
        print(f"{name:30s}", *(f"{v[min(len(v) - 1, int(p * len(v)))]:6.2f}" for p in (0.5, 0.99, 0.999, 1)))


main()
