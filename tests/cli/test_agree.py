#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that none of us wrote, recorded by tally: perf report and tally report name the same top symbol."""
import re
import sys

from tapcli import main, need, run, scratch, tally, test



def big_source(path):
    """A C file that keeps gcc -O2 busy for a second or two."""
    with open(path, "w") as f:
        for i in range(900):
            f.write(f"int f{i}(int a, int b, const int *p) {{ int s = {i};\n"
                    f"for (int i = 0; i < a; i++) {{ s += p[i] * (b + {i}); if (s & {i % 31 + 1}) s ^= p[b % (i + 1)];\n"
                    f"switch (s % 7) {{ case 0: s += a; break; case 1: s -= b; break; case 2: s *= 3; break; "
                    f"default: s = s / 3 + p[0]; }} }} return s; }}\n")


def big_text(path):
    state, words = 12345, []
    for _ in range(250000):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        words.append(f"word{state % 5000:x}")
    with open(path, "w") as f:
        f.write(" ".join(words))


def perf_top(path):
    """(symbol, percent) of perf's table without children, best first."""
    out = run("perf", "report", "--stdio", "--no-children", "-g", "none", "-i", path).stdout
    return [(sym.strip(), float(pct)) for pct, sym in
            re.findall(r"^\s+(\d+\.\d+)%\s+\S.*?\s+\S+\s+\[[.k]\] (.+)$", out, re.M)]


def tally_top(path):
    out = tally("report", "--no-children", "--no-call-graph", "-i", path).stdout
    return [(sym.strip(), float(pct)) for pct, sym in
            re.findall(r"^\s+(\d+\.\d+)%\s+\S.*?\s+\S+\s+\[[.k]\] (.+)$", out, re.M)]


def compare(path):
    theirs, ours = perf_top(path), tally_top(path)
    assert len(theirs) > 3, "perf names nothing"
    assert len(ours) > 3, "tally names nothing"
    if theirs and ours:
        # The same samples, so the same percentages; names at a tie may stand in another order.
        best = {sym for sym, pct in theirs if pct == theirs[0][1]}
        assert ours[0][0] in best, f"tally: {ours[:3]}; perf: {theirs[:3]}"
        assert abs(ours[0][1] - theirs[0][1]) < 0.02, f"tally: {ours[0]}; perf: {theirs[0]}"


@test
def python_loop():
    """python3 running a loop"""
    need("perf")
    with scratch() as d:
        tally("record", "--call-graph", "fp", "-F", "999", "-o", d + "/p", "--", sys.executable, "-c",
              "s=0\nfor i in range(9000000): s+=i*i%7")
        compare(d + "/p")


@test
def xz():
    """xz on a big file"""
    need("perf"), need("xz")
    with scratch() as d:
        big_text(d + "/text")
        tally("record", "--call-graph", "fp", "-F", "999", "-o", d + "/p", "--", "xz", "-k", "-6", d + "/text")
        compare(d + "/p")


@test
def gcc():
    """gcc -O2 on a big source"""
    need("perf"), need("gcc")
    with scratch() as d:
        big_source(d + "/big.c")
        tally("record", "--call-graph", "fp", "-F", "999", "-o", d + "/p", "--", "gcc", "-O2", "-c", d + "/big.c", "-o", d + "/big.o")
        compare(d + "/p")


sys.exit(main())
