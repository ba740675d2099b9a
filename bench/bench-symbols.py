#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reading symbol tables and naming addresses: the CPU time to read one file's functions, against nm -D, then to name an
address that was not asked for lately, and one that was; with limits for node's. To name the first is a random walk over
tables of megabytes: two or three misses of the cache, so it depends on whose cache it is."""
import pathlib
import shutil
import subprocess
import sys

from benchlib import Run, interleaved, median

RUNS = 5
TARGET = 0.25
NODE_MS = 8
NODE_NS = 40


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
        is_node = name == "node"
        quick = ratio <= TARGET and (not is_node or load <= NODE_MS)
        found = not is_node or max(first, again) <= NODE_NS
        met &= quick and found
        print(f"symbols of {name}, CPU: {load:.4g} ms for {functions:.0f} functions, nm -D "
              f"{median(theirs):.4g} ms: {ratio:.3f} of it, target {TARGET}"
              f"{f' and {NODE_MS} ms' if is_node else ''}{'' if quick else '  MISSED'}; look-up {first:.0f} ns, "
              f"repeated {again:.0f} ns{f', target {NODE_NS}' if is_node else ''}{'' if found else '  MISSED'}")
    return met


if __name__ == "__main__":
    sys.exit(not main())
