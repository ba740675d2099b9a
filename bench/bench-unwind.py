#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks from copies: unwinding a frame, against a limit; samples a second against perf script on the same file;
recording them, against perf: CPU time, and bytes of the file."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from benchlib import Run, interleaved, median, need, report

RUNS = 3
SECONDS = 4
RATE = 2000
FRAME_NS = 60
SAMPLES = 1 / 40
BYTES = 1 / 20


def unwinding(build, path):
    """The times of a frame, and of a sample, in ns: cold and warm."""
    words = subprocess.run([build / "bench/bench-unwind", path], capture_output=True, text=True,
                           check=True).stdout.split()
    cold, warm, frames, samples = map(float, words)
    return cold, warm, frames * warm, samples


def speed(build, path):
    ours, theirs = interleaved(
        RUNS,
        lambda: unwinding(build, path),
        lambda: Run(["perf", "script", "--no-inline", "-F", "ip", "-i", path]).must().cpu)
    cold, warm, sample, samples = (median(column) for column in zip(*ours))
    met = warm <= FRAME_NS
    print(f"unwinding, a frame: {warm:.3g} ns, {cold:.3g} ns when first seen; limit {FRAME_NS} ns{'' if met else '  MISSED'}")
    return report("unwinding, a sample", sample / 1000, 1e6 * median(theirs) / samples, "us", SAMPLES) and met


def recorded(argv, path):
    """CPU seconds, and bytes a sample."""
    run = Run(argv).must()
    text = subprocess.run(["perf", "report", "--stats", "-i", path], capture_output=True, text=True).stdout
    samples = int(re.search(r"SAMPLE events:\s+(\d+)", text).group(1))
    return run.cpu / samples * 1e6, os.path.getsize(path) / samples


def recording(build, program, folder):
    """Two busy threads, attached to in turns."""
    target = subprocess.Popen([program, "20000"], stdout=subprocess.DEVNULL)
    time.sleep(0.2)
    paths = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
    common = ["record", "--call-graph", "dwarf", "-F", str(RATE), "-e", "cpu-clock", "-p", str(target.pid)]
    try:
        ours, theirs = interleaved(
            RUNS,
            lambda: recorded([build / "cli/tally", *common, "-o", paths[0], "--duration", str(SECONDS)], paths[0]),
            lambda: recorded(["perf", *common, "-o", paths[1], "--", "sleep", str(SECONDS)], paths[1]))
    finally:
        target.kill()
        target.wait()
    columns = list(zip(*ours)), list(zip(*theirs))
    met = report(f"recording copies of stacks at {RATE} Hz, CPU a sample", median(columns[0][0]), median(columns[1][0]),
                 "us", 1)
    return report("recording copies of stacks, a sample", median(columns[0][1]), median(columns[1][1]), "bytes",
                  BYTES) and met


def main():
    need("perf", "unwinding")
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    source = pathlib.Path(__file__).resolve().parent.parent / "tests/programs/stacks.cc"
    need("g++", "unwinding")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "stacks")
        subprocess.run(["g++", "-O2", "-pthread", "-o", program, source], check=True)
        path = os.path.join(folder, "data")
        subprocess.run(["perf", "record", "-q", "-F", str(RATE), "-e", "cpu-clock", "--call-graph", "dwarf", "-o", path,
                        "--", program, str(SECONDS)], check=True, stderr=subprocess.DEVNULL)
        met = speed(build, path)
        return recording(build, program, folder) and met


if __name__ == "__main__":
    sys.exit(not main())
