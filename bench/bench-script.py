#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The samples of a recording as text: `tally script` against `perf script`, on the same file and fields."""
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
# What is printed, options, and the share of perf's time. Without callchains little is left to be saved but the reading
# of the file.
ROWS = (("with callchains", [], 1 / 8),
        ("one line each", ["-G"], 1 / 2),
        ("who and when", ["-F", "comm,pid,tid,time,event"], 3 / 5))


def walk(dice, program, callees, first):
    """A stack of 5 to 20 frames, innermost first: each function calls one of the few that it knows."""
    names = [first]
    for _ in range(dice.randint(4, 19)):
        known = callees[names[-1]]
        names.append(known[int(len(known) * dice.random() ** 2)])
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
        r.sample(100, 100 + i % 4, 1_000_000_000 + 250_000 * i, 1_000_000, chains[int(STACKS * dice.random() ** 3)])
    r.write(path)


def main():
    need("perf", "script")
    command, _ = tally()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        # In a process of its own: what a parent holds counts as its child's peak memory.
        maker = multiprocessing.Process(target=make, args=(path, command))
        maker.start()
        maker.join()
        for what, words, target in ROWS:
            ours, theirs = interleaved(RUNS, lambda: Run([command, "script", "-i", path, *words]).must(),
                                       lambda: Run(["perf", "script", "-i", path, *words]).must())
            good &= report(f"{SAMPLES:,} samples as text, {what}, CPU", median(r.cpu for r in ours),
                           median(r.cpu for r in theirs), "s", target)
    return good


if __name__ == "__main__":
    sys.exit(not main())
