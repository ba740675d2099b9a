#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compressing records on their way into a file: the writer against libzstd alone on the same bytes."""
import os
import pathlib
import subprocess
import sys
import tempfile

from benchlib import interleaved, median, tally
from recordings import make

RUNS = 5
TARGET = 1.15


def main():
    command, _ = tally()
    program = pathlib.Path(command).parent.parent / "bench/bench-pack"
    with tempfile.TemporaryDirectory() as folder:
        path, packed, plain = (os.path.join(folder, name) for name in ("perf.data", "packed", "plain"))
        make(path, command)

        def spent(how, out):
            return float(subprocess.run([program, how, path, out], capture_output=True, text=True, check=True).stdout)

        ours, theirs = interleaved(RUNS, lambda: spent("tally", packed), lambda: spent("zstd", plain))
        ours, theirs = median(ours) / 1e6, median(theirs) / 1e6
        print(f"{os.path.getsize(path) / 1e6:.0f} MB of records compressed, CPU: {ours:.4g} ms, libzstd alone "
              f"{theirs:.4g} ms: {ours / theirs:.3f} of it, target {TARGET}{'' if ours <= TARGET * theirs else '  MISSED'}")
        print(f"  {os.path.getsize(packed) / 1e6:.3g} MB, libzstd alone {os.path.getsize(plain) / 1e6:.3g} MB")
        return ours <= TARGET * theirs


if __name__ == "__main__":
    sys.exit(not main())
