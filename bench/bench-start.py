#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The start cost of a recording: CPU time of `tally record -- true` against `perf record -- true`."""
import os
import sys
import tempfile

from benchlib import Run, interleaved, median, need, report, tally

RUNS = 9
TARGET = 0.1


def main():
    need("perf", "start")
    command, _ = tally()
    with tempfile.TemporaryDirectory() as folder:
        def record(tool):
            return Run([tool, "record", "-o", os.path.join(folder, "data"), "--", "true"]).must().cpu

        ours, theirs = interleaved(RUNS, lambda: record(command), lambda: record("perf"))
    return report("record -- true, CPU", 1000 * median(ours), 1000 * median(theirs), "ms", TARGET)


if __name__ == "__main__":
    sys.exit(not main())
