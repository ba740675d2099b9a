#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What perf(1) makes of an event's text, against what we make of it. Speaks TAP.

event-names.py EVENT_ATTRS TALLY: the program that prints our attrs, and the command. perf prints the
attr that it asks for with -vv, whether or not the kernel then grants it.
"""
import json
import re
import shutil
import subprocess
import sys

BITS = {"pinned": 2, "exclude_user": 4, "exclude_kernel": 5, "exclude_hv": 6, "exclude_idle": 7,
        "exclude_host": 19, "exclude_guest": 20}
COMPARED = sum(1 << bit for bit in BITS.values()) | 3 << 15

# perf 6.1 includes guests as soon as there is a modifier but u, p, H and G, which perf-list(1) does not
# say and later versions do not do. P is the level that the machine has, tried out by perf.
MODIFIERS = ["cycles:u", "page-faults:u", "cycles:p", "cycles:pp", "cycles:ppp", "cycles:H", "cycles:G",
             "cycles:HG", "dummy:HG", "cycles:uk", "cycles:pu", "cycles:uI", "cycles:uH", "cycles:Gk",
             "cycles:GI", "r1a:u", "cpu-clock:u", "{page-faults:u,faults:p}:G", "{cs:u,faults:u}:k",
             "{cs,faults}:u", "{cs:D,faults}:u", "{cs,faults}:uS", "r3c,cs:u", "l1d:u"]
SPELLINGS = ["l1-d-write-miss", "L1-data-misses-stores", "L2-prefetch-misses", "d-tlb-speculative-read",
             "Data-TLB-speculative-load-miss", "l1i", "Instruction-TLB-loads", "branch-load-misses", "bpu",
             "btb-load-misses", "bpc-Reference", "node", "LLC-ops", "LLC-misses", "L1-dcache-prefetches-refs"]
REFUSED = ["cycles:uu", "cycles:x", "cycles:pppp", "CYCLES", "llc", "cycels", "cs}", "cs,,cs"]


def perf_attrs(text):
    """A "type:config:flags" for each event, as our program prints them; None when perf refuses."""
    done = subprocess.run(["perf", "stat", "-vv", "-e", text, "true"], capture_output=True, text=True)
    if "event syntax error" in done.stderr:
        return None
    attrs = []
    # What perf opens again without bits that the kernel refused comes a second time.
    for block in re.findall(r"^perf_event_attr:\n((?:  .*\n)*)", done.stderr, flags=re.M):
        fields = dict(line.split(None, 1) for line in block.splitlines())
        flags = sum(1 << bit for name, bit in BITS.items() if fields.get(name, "0").strip() == "1")
        flags |= int(fields.get("precise_ip", "0")) << 15
        attrs.append((int(fields.get("type", "0"), 0), int(fields.get("config", "0"), 0), flags))
    return attrs


def our_attrs(program, text):
    line = subprocess.run([program, text], capture_output=True, text=True, check=True).stdout
    if line.startswith("refused"):
        return None
    found = re.findall(r"(\d+):(\w+):(\w+)", line)
    return [(int(t), int(c, 0), int(f, 0) & COMPARED) for t, c, f in found]


def same(ours, theirs):
    """perf stops at the first event of a group that does not open, and may try one again in user mode."""
    if ours is None or theirs is None:
        return ours is theirs
    user = 1 << BITS["exclude_kernel"] | 1 << BITS["exclude_hv"]
    first = [a for i, a in enumerate(theirs)
             if i == 0 or (a[:2], a[2] | user) != (theirs[i - 1][:2], theirs[i - 1][2] | user)]
    return bool(first) and first == ours[:len(first)]


def main():
    if not shutil.which("perf"):
        print("1..0 # SKIP perf(1) is not installed")
        return 0
    program, tally = sys.argv[1:3]
    listed = subprocess.run([tally, "list", "--json"], capture_output=True, text=True, check=True).stdout
    events = [json.loads(line) for line in listed.splitlines()]
    names = [name for e in events if e["kind"] != "tracepoint" for name in (e["event"], e["alias"]) if name]
    groups = [("every listed name and alias", names), ("other spellings of caches", SPELLINGS),
              ("modifiers and groups", MODIFIERS), ("what is refused", REFUSED)]
    failed = 0
    for number, (title, texts) in enumerate(groups, 1):
        bad = 0
        for text in texts:
            ours, theirs = our_attrs(program, text), perf_attrs(text)
            if not same(ours, theirs):
                bad += 1
                print(f"# {text}: ours {ours}, perf's {theirs}")
        print(f"{'not ok' if bad else 'ok'} {number} - {title} ({len(texts)})")
        failed += bad
    print(f"1..{len(groups)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
