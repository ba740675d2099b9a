#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recorder's own CPU time per sample, tally against perf, attached in turns to one running program
at the same rate. Fixed cost (start, end) is part of it, as it is for who waits for a profile."""
import os
import re
import subprocess
import sys
import tempfile

from benchlib import Run, interleaved, median, need, report, tally

RUNS = 3
SECONDS = 4
RATES = (999, 10000)
TARGET = 1 / 3


def samples(path):
    """As perf counts them, for both."""
    text = subprocess.run(["perf", "report", "--stats", "-i", path], capture_output=True, text=True).stdout
    found = re.search(r"SAMPLE events:\s+(\d+)", text)
    return int(found.group(1)) if found else 0


def cost(argv, path):
    run = Run(argv).must()
    count = samples(path)
    if not count:
        sys.exit(f"no samples: {' '.join(argv)}\n{run.stderr}")
    return 1e6 * run.cpu / count


def compare(command, pid, path, rate):
    common = ["record", "--call-graph", "fp", "-F", str(rate), "-e", "cpu-clock", "-p", str(pid), "-o", path]
    ours, theirs = interleaved(
        RUNS,
        lambda: cost([command, *common, "--duration", str(SECONDS)], path),
        lambda: cost(["perf", *common, "--", "sleep", str(SECONDS)], path))
    return report(f"recording at {rate} Hz, CPU a sample", median(ours), median(theirs), "us", TARGET)


def main():
    need("perf", "recorder")
    command, workload = tally()
    program = subprocess.Popen([workload, "20000"], stdout=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "data")
            return all([compare(command, program.pid, path, rate) for rate in RATES])
    finally:
        program.kill()
        program.wait()


if __name__ == "__main__":
    sys.exit(not main())
