#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The include table of docs/architecture.md, checked against every #include in the tree. Speaks TAP."""
import pathlib
import re
import sys

TOP = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

# Which room a public header is the contract of.
HEADERS = {
    "api": "base", "error": "base", "system": "base",
    "attr": "event", "event": "event", "record": "event",
    "target": "count", "launch": "count", "count": "count", "counter": "count", "freeze": "count", "group": "count",
    "signal": "count",
    "metric": "count",
    "measure": "count", "region": "count", "page": "count",
    "fast": "count", "fast-x86": "count", "fast-arm64": "count", "fast-other": "count",
    "ring": "sample", "sampler": "sample",
    "calibration": "exact", "clock": "exact", "run": "exact", "selftest": "exact", "sim": "exact", "timer": "exact", "tracee": "exact",
    "features": "perfdata", "file_record": "perfdata", "reader": "perfdata", "writer": "perfdata",
    "rewrite": "perfdata", "survey": "perfdata", "pack": "profile",
    "core": "image", "maps": "image", "symbolizer": "image", "unwinder": "image",
    "recorder": "recorder",
    "annotate": "profile", "profile": "profile", "script": "profile",
    "doctor": "inspect", "same": "inspect", "stack": "inspect",
}
UMBRELLAS = {"tally", "profiling"}
# libtally-profile reaches libtally's rooms by public headers alone: hidden functions do not cross.
LIBTALLY = {"event", "count", "sample", "exact"}


def read_table():
    """The rows `| room | may use |` of docs/architecture.md."""
    table = {}
    text = (TOP / "docs/architecture.md").read_text()
    for room, uses in re.findall(r"^\| (\w+) \| ([\w, -]+) \|$", text, flags=re.M):
        if room == "room":
            continue
        table[room] = set() if uses == "-" else set(u.strip() for u in uses.split(","))
    for room, uses in table.items():
        if uses == {"all of them"}:
            table[room] = set(table)
    return table


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1)


def check_source(path, room, table, complaints):
    for number, name in includes(path):
        public = re.match(r"tally/(\w+)\.h$", name)
        if public:
            if public.group(1) in UMBRELLAS:
                complaints.append(f"{path}:{number}: a room includes an umbrella header")
                continue
            used, hidden = HEADERS.get(public.group(1)), False
        else:
            used, hidden = name.split("/")[0] if "/" in name else None, True
            if used not in table:
                continue
        if used is None:
            complaints.append(f"{path}:{number}: {name} belongs to no room")
        elif used != room and used not in table[room]:
            complaints.append(f"{path}:{number}: {room} may not use {used} ({name})")
        elif hidden and used in LIBTALLY and room not in LIBTALLY:
            complaints.append(f"{path}:{number}: {name} is hidden in libtally; use its public header")


def check_outside(folder, complaints):
    for path in sorted((TOP / folder).rglob("*.[ch]")):
        for number, name in includes(path):
            public = re.match(r"tally/(\w+)\.h$", name)
            if public and public.group(1) not in UMBRELLAS and public.group(1) != "api":
                complaints.append(f"{path}:{number}: include <tally/tally.h> or <tally/profiling.h>")
            if name.split("/")[0] in ("base", *LIBTALLY, "perfdata", "image", "profile", "inspect"):
                complaints.append(f"{path}:{number}: {folder} includes a hidden header, {name}")


def main():
    table = read_table()
    results = []
    for room in sorted(table):
        complaints = []
        for path in sorted((TOP / "src" / room).glob("*.[ch]")):
            check_source(path, room, table, complaints)
        results.append((f"{room} includes only what it may", complaints))
    for folder in ("cli", "examples", "bench"):
        complaints = []
        check_outside(folder, complaints)
        results.append((f"{folder} includes the umbrellas alone", complaints))
    rooms = {p.name for p in (TOP / "src").iterdir() if p.is_dir()}
    results.append(("every room stands in the table", [f"{r} is not in the table" for r in rooms - set(table)]))
    known = set(HEADERS) | UMBRELLAS
    results.append(("every public header has a room",
                    [f"{h.name} has none" for h in (TOP / "include/tally").glob("*.h") if h.stem not in known]))
    for number, (name, complaints) in enumerate(results, 1):
        for complaint in complaints:
            print("#", complaint)
        print("not ok" if complaints else "ok", number, "-", name)
    print(f"1..{len(results)}")
    return any(c for _, c in results)


if __name__ == "__main__":
    sys.exit(main())
