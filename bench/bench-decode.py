#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decoding every field and every callchain address of a million samples, streamed from a file, against `perf report
--stats`, which only walks the records."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/cli"))
from benchlib import Run, interleaved, median, need, report  # noqa: E402

SAMPLES = 1_000_000
RUNS = 7
LIMIT = 50  # ns a sample: 20 million a second
TARGET = 1.0


def main():
    need("perf", "decode")
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build") / "bench/bench-decode")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        Run([program, "make", path, str(SAMPLES)]).must()
        ours, theirs = interleaved(RUNS, lambda: Run([program, "read", path]).must().cpu,
                                   lambda: Run(["perf", "report", "--stats", "-i", path]).must().cpu)
    scale = 1e9 / SAMPLES
    ns = min(ours) * scale
    met = report("decode, CPU a sample", median(ours) * scale, median(theirs) * scale, "ns", TARGET)
    print(f"decode, the least of {RUNS} runs: {ns:.1f} ns a sample, limit {LIMIT}{'' if ns <= LIMIT else '  MISSED'}")
    return met and ns <= LIMIT


if __name__ == "__main__":
    sys.exit(not main())
