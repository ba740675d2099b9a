#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From a recording of 400,000 samples to a picture: `tally flame` against `perf script`, which is only the first
step of perf's way there (stackcollapse-perf.pl and flamegraph.pl follow it)."""
import os
import sys
import tempfile

from benchlib import Run, interleaved, median, need, report, tally
from recordings import SAMPLES, make

RUNS = 3
CPU_TARGET, CPU_LIMIT = 0.2, 0.5
RSS_LIMIT = 40 << 10  # KiB


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
