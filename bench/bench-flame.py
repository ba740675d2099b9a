#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From a recording of 400,000 samples to a picture: `tally flame` against `perf script`, which is only the first
step of perf's way there (stackcollapse-perf.pl and flamegraph.pl follow it)."""
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/cli"))
from benchlib import Run, interleaved, median, need, report, tally  # noqa: E402
from handmade import Program, Recording  # noqa: E402

SAMPLES = 400_000
STACKS = 3_000  # different ones, as a busy server has
RUNS = 3
CPU_TARGET, CPU_LIMIT = 0.1, 0.5
RSS_LIMIT = 40 << 10  # KiB


def make(path, command):
    """Four threads of one program; stacks of 5 to 20 functions, each call from one of its places."""
    dice = random.Random(1)
    program = Program(command)
    names = program.names(len(program.functions))
    chains = []
    for _ in range(STACKS):
        chain = [program.at(dice.choice(names), 1 + dice.randrange(12)) for _ in range(dice.randint(4, 19))]
        chains.append([*chain, program.at(names[0])])
    r = Recording()
    for tid in range(100, 104):
        r.comm(100, tid, f"worker {tid}")
    r.map(100, program)
    for i in range(SAMPLES):
        # A few stacks are hot, most are rare.
        chain = chains[int(STACKS * dice.random() ** 3)]
        r.sample(100, 100 + i % 4, 1_000_000_000 + 250_000 * i, 1_000_000, chain)
    r.write(path)


def main():
    need("perf", "flame")
    command, _ = tally()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        make(path, command)
        svg = os.path.join(folder, "out.svg")
        ours, theirs = interleaved(RUNS, lambda: Run([command, "flame", "-i", path, "-o", svg]).must(),
                                   lambda: Run(["perf", "script", "-i", path]).must())
        cpu, rss = median(r.cpu for r in ours), max(r.rss_kb for r in ours)
        good = report(f"{SAMPLES:,} samples to SVG, CPU (perf script alone)", cpu,
                      median(r.cpu for r in theirs), "s", CPU_TARGET)
        print(f"{SAMPLES:,} samples to SVG: {cpu:.3f} s, limit {CPU_LIMIT} s; {rss / 1024:.1f} MiB at most, "
              f"limit {RSS_LIMIT >> 10} MiB; {os.path.getsize(path) / 1e6:.0f} MB read, "
              f"{os.path.getsize(svg) / 1e6:.1f} MB drawn")
        return good and cpu < CPU_LIMIT and rss < RSS_LIMIT


if __name__ == "__main__":
    sys.exit(not main())
