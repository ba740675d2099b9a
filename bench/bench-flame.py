#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From a recording of 400,000 samples to a picture: `tally flame` against `perf script`, which is only the first
step of perf's way there (stackcollapse-perf.pl and flamegraph.pl follow it)."""
import multiprocessing
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
CPU_TARGET, CPU_LIMIT = 0.2, 0.5
RSS_LIMIT = 40 << 10  # KiB


def walk(dice, program, callees, first):
    """A stack of 5 to 20 frames, innermost first: each function calls one of the few that it knows."""
    names = [first]
    for _ in range(dice.randint(4, 19)):
        known = callees[names[-1]]
        names.append(known[int(len(known) * dice.random() ** 2)])
    # Calls come from a few places, samples fall anywhere.
    return [program.at(names[-1], 1 + dice.randrange(16)),
            *(program.at(name, 2 + 4 * dice.randrange(3)) for name in reversed(names[:-1]))]


def make(path, command):
    """Four threads of one program, whose stacks repeat as those of real programs do."""
    dice = random.Random(1)
    program = Program(command)
    names = program.names(len(program.functions))
    callees = {name: dice.sample(names, 4) for name in names}
    chains = [walk(dice, program, callees, names[0]) for _ in range(STACKS)]
    r = Recording()
    for tid in range(100, 104):
        r.comm(100, tid, "main" if tid == 100 else "worker")
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
        # In a process of its own: what a parent holds counts as its child's peak memory.
        maker = multiprocessing.Process(target=make, args=(path, command))
        maker.start()
        maker.join()
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
