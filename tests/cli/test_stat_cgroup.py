#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stat in control groups, and attached to running processes with and without stopping them."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

from tapcli import TALLY, TOUCH, has, main, need, needs_cpus, run, same, skip, tally, test


def rows(done):
    same(done.returncode, 0, "status")
    return [json.loads(line) for line in done.stdout.splitlines()]


def mount():
    """The folder of the hierarchy that has perf's controller."""
    found = [x.split() for x in open("/proc/self/mounts")]
    for fields in found:
        if fields[2] == "cgroup" and "perf_event" in fields[3].split(","):
            return fields[1]
    for fields in found:
        if fields[2] == "cgroup2":
            return fields[1]
    return skip("no control groups are mounted")


@contextlib.contextmanager
def groups(count):
    """Names of control groups of our own, that are removed at the end."""
    top, names = mount(), [f"tally-test-{os.getpid()}-{i}" for i in range(count)]
    made = []
    try:
        for name in names:
            try:
                os.mkdir(os.path.join(top, name))
            except OSError as why:
                skip(f"no control group can be made: {why}")
            made.append(name)
        yield top, names
    finally:
        for name in made:
            remove(os.path.join(top, name))


def remove(folder):
    for _ in range(200):
        try:
            os.rmdir(folder)
            return
        except OSError:  # what ran in it is just being reaped
            time.sleep(0.02)


def inside(top, name, *command):
    return ["sh", "-c", f'echo $$ > {top}/{name}/cgroup.procs; exec "$@"', "sh", *command]


@test
def what_runs_in_a_group_is_counted():
    with groups(2) as (top, names):
        found = rows(tally("stat", "-j", "-o", "-", "-a", "--for-each-cgroup", ",".join(names), "-e",
                           "page-faults,dummy", "--", *inside(top, names[0], TOUCH, "3000")))
    same([(r["cgroup"], r["event"]) for r in found], [(n, e) for n in names for e in ("page-faults", "dummy")], "rows")
    # What else runs on the machine is in neither.
    assert 3000 <= found[0]["value"] < 3500, found
    same(found[2]["value"], 0, "faults in the empty group")


@test
def groups_go_with_events_as_in_perf():
    with groups(2) as (top, names):
        ways = [["-e", "page-faults,minor-faults", "-G", ",".join(names)], ["-e", "page-faults,dummy", "-G", names[0]],
                ["-e", "page-faults,minor-faults,dummy", "-G", f"{names[0]},,{names[1]}"],
                ["-e", "page-faults,dummy", "--for-each-cgroup", ",".join(names)],
                ["-A", "-e", "page-faults,dummy", "--for-each-cgroup", ",".join(names)]]
        for way in ways:
            words = ["stat", "-a", "-x;", "-o", "/dev/stdout"] + way + ["--"] + inside(top, names[0], TOUCH, "3000")
            ours, theirs = (run(x, *words).stdout for x in (TALLY, need("perf")))
            theirs = [x.split(";") for x in theirs.splitlines() if ";" in x]
            ours = [x.split(";") for x in ours.splitlines()]
            # All but the figures; metrics are given beside a clock only.
            at = 1 if "-A" in way else 0
            if not theirs:
                skip("perf counts in no control group here")
            same([x[:at] + x[at + 1:at + 4] for x in ours], [x[:at] + x[at + 1:at + 4] for x in theirs], f"rows of {way}")
            for our, their in zip(ours, theirs):
                same(len(our), len(their), "columns")
                # On which CPU it ran is chance.
                if "-A" not in way and their[at].isdigit() and int(their[at]) > 2900 and their[at + 3]:
                    assert abs(int(our[at]) - int(their[at])) < 100, (our, their)


@test
def events_in_one_group_make_rates_however_it_is_named():
    """perf prints the same metrics for both."""
    needs_cpus()
    columns = [[line.split(";")[7] for line in tally("stat", "-a", "-x;", "-o", "-", "-e", "page-faults,task-clock", "-G",
                                                     names, "--", "true").stdout.splitlines()] for names in ("/", "/,/")]
    same([re.sub("^[KM]", "", c) for c in columns[0]], ["/sec", "CPUs utilized"], "units of -G /")
    same([re.sub("^[KM]", "", c) for c in columns[1]], ["/sec", "CPUs utilized"], "units of -G /,/")


@test
def time_in_which_a_group_was_not_watched_is_not_counted():
    needs_cpus()
    idle, cpus = 1.0, os.cpu_count()
    words = ["stat", "-j", "-o", "-", "-a", "-e", "page-faults", "-G", "/", "--", "true"]
    rows(tally(*words))
    time.sleep(idle)
    start = time.monotonic()
    found = rows(tally(*words))[0]
    took = time.monotonic() - start
    # It was enabled within the run; Linux 6.18 would add the idle stretch on each CPU.
    assert found["enabled_ns"] * 1e-9 < took * cpus + idle * cpus / 2, (found, took)


@test
def a_table_names_the_groups():
    with groups(1) as (_, names):
        text = tally("stat", "-a", "-e", "dummy", "-G", names[0], "--", "true").stderr
    assert re.search(rf"^ +0 +dummy +{names[0]}$", text, flags=re.M), text


@test
def wrong_groups_are_said():
    done = tally("stat", "-a", "-G", "no/such/group", "-e", "dummy", "--", "echo", "ran")
    same((done.returncode, done.stdout), (1, ""), "status and output")
    has(done.stderr, "no/such/group")
    for words in (["-G", "x"], ["-a", "-G", "x", "--for-each-cgroup", "y"], ["-a", "--for-each-cgroup", "x,"],
                  ["-a", "-e", "dummy,page-faults,cpu-clock", "-G", "x,y"], ["-a", "-e", "{dummy,page-faults}", "-G", "x,y"]):
        done = tally("stat", *words, "--", "echo", "ran")
        same((done.returncode, done.stdout), (2, ""), f"answer to {words}")


@test
def a_process_is_stopped_or_the_start_is_inexact():
    with subprocess.Popen(["sleep", "100"]) as other:
        words = ["stat", "-j", "-o", "-", "-e", "page-faults,dummy", "-p", str(other.pid)]
        held, loose = (rows(tally(*words, *more, "--", "true")) for more in ([], ["--no-stop"]))
        text = tally("stat", "--no-stop", "-e", "page-faults,dummy", "-p", str(other.pid), "--", "true").stderr
        state = open(f"/proc/{other.pid}/stat").read().rsplit(")")[1].split()[0]
        other.kill()
    same([r.get("start_inexact") for r in held], [None, None], "marks of a process that was held still")
    same([r.get("start_inexact") for r in loose], [True, True], "marks of one that was not")
    same(text.count("counting began while threads were starting"), 1, "notes")
    same(state, "S", "state of the process afterwards")


if __name__ == "__main__":
    sys.exit(main())
