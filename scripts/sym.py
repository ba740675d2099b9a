#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The libraries' symbol lists, taken from the public headers.

  sym.py --write   writes src/libtally.sym and src/libtally-profile.sym
  sym.py           fails when they differ from the headers

A map has one node per release; until 1.0 there is one node.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
# What profiling.h includes beyond the other umbrella.
PROFILE = {"profiling"} | set(re.findall(r"<tally/(\w+)\.h>", (TOP / "include/tally/profiling.h").read_text())) - {"tally"}


def exported(headers):
    names = set()
    for header in headers:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for decl in re.findall(r"TALLY_API\b(?!\s+__attribute__)([^;]*);", text):
            found = re.search(r"\b(tally_\w+)\s*\(", decl)
            if found:
                names.add(found.group(1))
    return sorted(names)


def main():
    headers = sorted((TOP / "include/tally").glob("*.h"))
    bad = False
    for library, mine in (("libtally", False), ("libtally-profile", True)):
        names = exported(h for h in headers if (h.stem in PROFILE) == mine)
        node = library.replace("lib", "").replace("-", "_").upper()
        text = node + "_0.1 {\nglobal:\n" + "".join(f"\t{n};\n" for n in names) + "local:\n\t*;\n};\n"
        path = TOP / "src" / (library + ".sym")
        if "--write" in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path}: differs from the headers; run scripts/sym.py --write")
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
