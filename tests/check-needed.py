#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the libraries and a program that links libtally load, from their dynamic sections. Speaks TAP.

usage: check-needed.py LIBTALLY LIBTALLY_PROFILE PROGRAM"""
import os
import re
import subprocess
import sys

# The loader itself is named by some architectures' libc users; it is part of libc.
LIBC = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Sanitizers are the build's, not the library's.
SANITIZERS = ("libasan", "libubsan", "libclang_rt")


def needed(path):
    out = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"\(NEEDED\).*\[(.+)\]", out))
    return {n for n in names if not n.startswith(SANITIZERS)}


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if " A " not in line}


def main():
    library, profile, program = (os.path.realpath(p) for p in sys.argv[1:4])
    sanitized = "SANITIZED" in os.environ
    results = [
        ("libtally loads libc alone", needed(library) <= LIBC or sanitized, needed(library)),
        ("a program that links libtally loads it and libc alone",
         needed(program) <= LIBC | {"libtally.so.0"} or sanitized, needed(program)),
        ("libtally exports tally_ names alone",
         all(n.startswith("tally_") for n in exported(library)), exported(library)),
        ("libtally-profile exports tally_ names alone",
         all(n.startswith("tally_") for n in exported(profile)), exported(profile)),
        ("the two export nothing twice",
         not exported(library) & exported(profile), exported(library) & exported(profile)),
    ]
    for number, (name, good, detail) in enumerate(results, 1):
        if not good:
            print("#", " ".join(sorted(detail)))
        print("ok" if good else "not ok", number, "-", name)
    print(f"1..{len(results)}")
    return not all(good for _, good, _ in results)


if __name__ == "__main__":
    sys.exit(main())
