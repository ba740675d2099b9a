#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns text files into a C header of arrays of lines, each ending in NULL: embed.py OUT NAME=FILE..."""
import sys


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main():
    out = ["/* Made by scripts/embed.py. */"]
    for name, path in (arg.split("=", 1) for arg in sys.argv[2:]):
        out.append(f"static const char *const {name}[] = {{")
        with open(path, encoding="utf-8") as text:
            out += [f"\t{literal(line)}," for line in text.read().splitlines()]
        out += ["\tNULL,", "};"]
    with open(sys.argv[1], "w", encoding="utf-8") as header:
        header.write("\n".join(out) + "\n")


main()
