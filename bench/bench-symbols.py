#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reading symbol tables and naming addresses: the CPU time to read one file's functions, against nm -D."""
import pathlib
import shutil
import subprocess
import sys

from benchlib import Run, interleaved, median

RUNS = 5
TARGET = 0.25


def output(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def files():
    """Programs with many functions, where there are some; each with a name for people."""
    node = shutil.which("node")
    if node:
        yield "node", str(pathlib.Path(node).resolve())
    sysroot = output("rustc", "--print", "sysroot")
    for path in sorted(pathlib.Path(sysroot).glob("lib/librustc_driver-*.so")) if sysroot else []:
        yield "librustc_driver", str(path)
    cc1 = output("gcc", "-print-prog-name=cc1")
    if cc1.startswith("/"):
        yield "cc1", cc1


def measure(program, path):
    """load (ms), an address not in the cache (ns), one in it (ns), functions."""
    return [float(word) for word in output(program, path).split()]


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    program = str(build / "bench/bench-symbols")
    if not shutil.which("nm"):
        print("symbols: skipped, there is no nm here")
        return True
    met = True
    for name, path in files():
        ours, theirs = interleaved(RUNS, lambda: measure(program, path),
                                   lambda: 1000 * Run(["nm", "-D", path]).must().cpu)
        load, first, again, functions = (median(column) for column in zip(*ours))
        ratio = load / median(theirs)
        met &= ratio <= TARGET
        print(f"symbols of {name}, CPU: {load:.4g} ms for {functions:.0f} functions, nm -D "
              f"{median(theirs):.4g} ms: {ratio:.3f} of it, target {TARGET}"
              f"{'' if ratio <= TARGET else '  MISSED'}; look-up {first:.0f} ns, repeated {again:.0f} ns")
    return met


if __name__ == "__main__":
    sys.exit(not main())
