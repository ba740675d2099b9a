#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What perf(1) makes of an event's text, against what we make of it. perf prints the attr that it asks for
with -vv, whether or not the kernel then grants it."""
import json
import os
import re
import sys

from tapcli import main, need, run, skip, tally, test

PRINT_ATTRS = os.environ.get("PRINT_ATTRS", "print-attrs-is-not-built")
BITS = {"pinned": 2, "exclusive": 3, "exclude_user": 4, "exclude_kernel": 5, "exclude_hv": 6, "exclude_idle": 7,
        "exclude_host": 19, "exclude_guest": 20}
COMPARED = sum(1 << bit for bit in BITS.values()) | 3 << 15

# perf 6.1 includes guests as soon as there is a modifier but u, p, H and G, which perf-list(1) does not
# say and later versions do not do. P is the level that the machine has, tried out by perf.
MODIFIERS = ["cycles:u", "page-faults:u", "cycles:p", "cycles:pp", "cycles:ppp", "cycles:H", "cycles:G",
             "cycles:HG", "dummy:HG", "cycles:uk", "cycles:pu", "cycles:uI", "cycles:uH", "cycles:Gk",
             "cycles:GI", "r1a:u", "cpu-clock:u", "{page-faults:u,faults:p}:G", "{cs:u,faults:u}:k",
             "{cs,faults}:u", "{cs:D,faults}:u", "{cs,faults}:uS", "{cs,faults}:uW",
             "cs:ue", "{cs,faults}:ue", "{cs:uDe,faults:u}", "r3c,cs:u", "l1d:u"]
SPELLINGS = ["l1-d-write-miss", "L1-data-misses-stores", "L2-prefetch-misses", "d-tlb-speculative-read",
             "Data-TLB-speculative-load-miss", "l1i", "Instruction-TLB-loads", "branch-load-misses", "bpu",
             "btb-load-misses", "bpc-Reference", "node", "LLC-ops", "LLC-misses", "L1-dcache-prefetches-refs"]
BREAKPOINTS = ["mem:0x1000", "mem:4096:x", "mem:0x1001/1", "mem:0x1002/2:w", "mem:0x1000/8:rw:u", "mem:0x1000:w:u",
               "mem:0x1000:u", "mem:0x1000:x:u", "mem:0x1000:wr", "{mem:0x1000:w,mem:0x2000/1:rw}:u"]
# Of PMUs that most machines have. perf 6.1 ors the bits of two terms of one field, so that there are none here.
MSR = "/sys/bus/event_source/devices/msr"
MSR_TERMS = ["msr/tsc/", "msr/event=5/", "msr/event/", "msr/event=010/", "msr/event=0x10/", "msr/config=0x12/",
             "msr/r3c/", "msr/tsc,event=5/", "msr/event=5,tsc/", "msr/tsc=1/", "msr/TSC/", "msr//", "tsc", "tsc:u",
             "msr/tsc/u", "msr/tsc/k", "msr/tsc,name=foo/", "msr/event=0xffffffffffffffff/"]
SOFTWARE_TERMS = ["software/config=2/", "software/config=0x3/u", "breakpoint/config=0/"]
MSR_REFUSED = ["msr/event=3c/", "msr/xyz=1/", "msr/tsc,/", "msr/,tsc/", "msr/event=-1/", "MSR/tsc/",
               "msr/event=0x10000000000000000/", "msr/event=1", "msr/tsc/x"]
REFUSED = ["cycles:uu", "cycles:x", "cycles:pppp", "CYCLES", "llc", "cycels", "cs}", "cs,,cs"]


def perf_attrs(text):
    """(type, config, flags, config1, config2, bp_type) of each event; None when perf does not take the text."""
    done = run(need("perf"), "stat", "-vv", "-e", text, "true")
    if "event syntax error" in done.stderr:
        return None
    attrs = []
    for block in re.findall(r"^perf_event_attr:\n((?:  .*\n)*)", done.stderr, flags=re.M):
        fields = dict(line.split(None, 1) for line in block.splitlines())
        flags = sum(1 << bit for name, bit in BITS.items() if fields.get(name, "0").strip() == "1")
        flags |= int(fields.get("precise_ip", "0")) << 15
        union = dict(re.findall(r"^  { \w+, (config[12]) } +(\w+)", block, flags=re.M))
        attrs.append(tuple(int(text, 0) for text in (
            fields.get("type", "0"), fields.get("config", "0"), str(flags), union.get("config1", "0"),
            union.get("config2", "0"), fields.get("bp_type", "0"))))
    return attrs


def our_attrs(text):
    done = run(PRINT_ATTRS, text)
    if done.stdout.startswith("refused"):
        return None
    found = [[int(n, 0) for n in word.split(":")] for word in done.stdout.split()]
    return [(t, c, f & COMPARED, *more) for t, c, f, *more in found]


def without_repeats(attrs):
    """perf may try one again, in user mode when it has to."""
    user = 1 << BITS["exclude_kernel"] | 1 << BITS["exclude_hv"]
    tried = [(t, c, f | user, *more) for t, c, f, *more in attrs]
    return [a for i, a in enumerate(attrs) if i == 0 or tried[i] != tried[i - 1]]


def agree(text):
    ours, theirs = our_attrs(text), perf_attrs(text)
    assert ours and theirs, f"{text}: ours {ours}, perf's {theirs}"
    ours, theirs = without_repeats(ours), without_repeats(theirs)
    assert ours == theirs, f"{text}: ours {ours}, perf's {theirs}"


def agree_on_all(texts):
    """One list is one run of perf; one by one they are tried to find what differs."""
    try:
        agree(",".join(texts))
    except AssertionError:
        for text in texts:
            agree(text)


@test
def every_listed_name_and_alias_is_perfs():
    events = [json.loads(line) for line in tally("list", "--json").stdout.splitlines()]
    names = [n for e in events if e["kind"] not in ("tracepoint", "pmu") for n in (e["event"], e["alias"]) if n]
    assert len(names) > 50
    agree_on_all(names)


@test
def other_spellings_of_caches():
    agree_on_all(SPELLINGS)


@test
def modifiers_and_groups():
    agree_on_all(MODIFIERS)


def agree_on_bits(text):
    """Which guests are left out of PMUs that tell no modes apart perf finds out by trying."""
    ours, theirs = our_attrs(text), perf_attrs(text)
    assert ours and theirs, f"{text}: ours {ours}, perf's {theirs}"
    guest = 1 << BITS["exclude_guest"]
    ours, theirs = ([(t, c, f & ~guest, *more) for t, c, f, *more in without_repeats(attrs)] for attrs in (ours, theirs))
    assert ours == without_repeats(theirs), f"{text}: ours {ours}, perf's {theirs}"


@test
def terms_of_pmus():
    for text in SOFTWARE_TERMS:
        agree_on_bits(text)
    if not os.path.exists(MSR):
        skip("this machine has no msr PMU")
    for text in MSR_TERMS:
        agree_on_bits(text)
    for text in MSR_REFUSED:
        assert (our_attrs(text), perf_attrs(text)) == (None, None), text


@test
def events_of_pmus_are_listed_as_perf_does():
    """perf list mounts tracefs when it can, so that it gets mounts of its own."""
    listed = run("unshare", "-m", need("perf"), "list", "pmu")
    if listed.returncode != 0:
        skip("perf list needs mounts of its own, which this user may not have")
    theirs = set(re.findall(r"^\s+(\S+/\S+/)\s+\[Kernel PMU event\]", listed.stdout, flags=re.M))
    events = [json.loads(line) for line in tally("list", "pmu", "--json").stdout.splitlines()]
    for event in events:
        assert event["kind"] == "pmu" and event["event"].startswith(event["pmu"] + "/"), event
        assert event["openable"] == (event["why"] is None), event
    ours = {event["event"] for event in events}
    assert {e for e in theirs if "_" not in e} <= ours, f"ours {sorted(ours)}, perf's {sorted(theirs)}"


@test
def breakpoints():
    for text in BREAKPOINTS:  # a CPU has four
        agree(text)


@test
def what_perf_refuses_is_refused():
    for text in REFUSED:
        assert (our_attrs(text), perf_attrs(text)) == (None, None), text


if __name__ == "__main__":
    sys.exit(main())
