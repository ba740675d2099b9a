#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The samples of a recording as text: `tally script` against `perf script`, on the same file and fields."""
import os
import sys
import tempfile

from benchlib import Run, interleaved, median, need, report, tally
from recordings import SAMPLES, make

RUNS = 3
# What is printed, options, and the share of perf's time. Without callchains little is left to be saved but the reading
# of the file.
ROWS = (("with callchains", [], 1 / 8),
        ("one line each", ["-G"], 1 / 2),
        ("who and when", ["-F", "comm,pid,tid,time,event"], 3 / 5))


def main():
    need("perf", "script")
    command, _ = tally()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        make(path, command)
        for what, words, target in ROWS:
            ours, theirs = interleaved(RUNS, lambda: Run([command, "script", "-i", path, *words]).must(),
                                       lambda: Run(["perf", "script", "-i", path, *words]).must())
            good &= report(f"{SAMPLES:,} samples as text, {what}, CPU", median(r.cpu for r in ours),
                           median(r.cpu for r in theirs), "s", target)
    return good


if __name__ == "__main__":
    sys.exit(not main())
