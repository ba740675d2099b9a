#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A gigabyte of samples with callchains, decoded and in order of time, against `perf report -s comm -g none`, the least
that perf does in that order; and against `perf report --stats`, which counts records and does neither (perf 6.1).
Memory stays the same however long the recording is."""
import os
import pathlib
import sys
import tempfile

from benchlib import Run, interleaved, median, need, report

MEGABYTES = 1024
RUNS = 3
TARGET, TARGET_STATS = 1 / 6, 2.5
RSS_LIMIT = 20 << 10  # KiB


def main():
    need("perf", "reader")
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    program = str(build / "bench/bench-reader")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = os.path.join(folder, "perf.data")
        Run([program, "make", path, str(MEGABYTES)]).must()
        ours, counted, sorted_ = interleaved(
            RUNS, lambda: Run([program, "read", path]).must(),
            lambda: Run(["perf", "report", "--stats", "-i", path]).must(),
            lambda: Run(["perf", "report", "--stdio", "-g", "none", "-s", "comm", "-i", path]).must())
        rss = max(r.rss_kb for r in ours)
        cpu, size = median(r.cpu for r in ours), os.path.getsize(path) / 1e6
        good = report(f"{size:.0f} MB read by time, CPU (perf report -s comm)", cpu, median(r.cpu for r in sorted_),
                      "s", TARGET)
        good &= report(f"{size:.0f} MB read by time, CPU (perf report --stats, which does not sort)", cpu,
                       median(r.cpu for r in counted), "s", TARGET_STATS)
        print(f"reading by time: {rss / 1024:.1f} MiB at most, limit {RSS_LIMIT >> 10} MiB, perf "
              f"{max(r.rss_kb for r in sorted_) / 1024:.0f} MiB")
        return good and rss < RSS_LIMIT


if __name__ == "__main__":
    sys.exit(not main())
