#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A burst of 600,000 records, 16 events on one tracepoint: the recorder's CPU time against perf's, and
against a bare loop of poll(2) and write(2) over the same rings; and what each of them lost."""
import os
import re
import subprocess
import sys
import tempfile

from benchlib import Run, interleaved, median, need, report, tally

RUNS = 3
EVENTS = 16
CALLS = 37500
RECORDS = EVENTS * CALLS
EVENT = "syscalls:sys_enter_getppid"
PERF, BARE = 1 / 5, 1.3
RING = 8 << 20  # what tally takes for events by a period


def with_tracefs():
    """Where it is not mounted, in a mount namespace of this benchmark's own."""
    if os.path.exists("/sys/kernel/tracing/events") or "IN_NAMESPACE" in os.environ:
        return
    os.environ["IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "-m", "sh", "-c",
                          'mount -t tracefs nodev /sys/kernel/tracing; exec "$@"', "sh", sys.executable, *sys.argv])


def attached(program, argv):
    """Runs a recorder on a program that begins a second later, until that ends: its CPU seconds."""
    target = subprocess.Popen([program, "call", str(CALLS)])
    run = Run([word.replace("PID", str(target.pid)) for word in argv]).must()
    target.wait()
    return run


def samples(path, said=""):
    """By perf; by the recorder's own words where perf lacks something that it wants in the file."""
    text = subprocess.run(["perf", "report", "--stats", "-i", path], capture_output=True, text=True).stdout
    found = re.search(r"SAMPLE events:\s+(\d+)", text) or re.search(r"(\d+) samples", said)
    return int(found.group(1)) if found else 0


def main():
    need("perf", "burst")
    with_tracefs()
    command, _ = tally()
    program = os.path.join(os.path.dirname(os.path.dirname(command)), "bench/bench-ring")
    events = ",".join([EVENT] * EVENTS)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, bare = (os.path.join(folder, name) for name in ("tally", "perf", "bare"))
        runs = interleaved(
            RUNS,
            lambda: attached(program, [command, "record", "-e", events, "-p", "PID", "-o", ours]),
            lambda: attached(program, ["perf", "record", "-q", "-e", events, "-p", "PID", "-o", theirs]),
            lambda: attached(program, [program, "write", "PID", events, bare, str(RING)]))
        mine, perfs, least = (1e3 * median([run.cpu for run in r]) for r in runs)
        if os.path.getsize(bare) < 0.99 * os.path.getsize(ours):
            sys.exit("the bare loop writes other records than the recorder: the two do not compare")
        kept, perf_kept = samples(ours, runs[0][-1].stderr), samples(theirs)
        met = report(f"recording a burst of {RECORDS} records, CPU", mine, perfs, "ms", PERF)
        print(f"  {mine / least:.2f} of a bare loop's {least:.4g} ms, target {BARE}"
              f"{'' if mine <= BARE * least else '  MISSED'}")
        print(f"  lost {RECORDS - kept}, perf {RECORDS - perf_kept}{'  MISSED' if kept < RECORDS else ''}")
        target = subprocess.Popen([program, "call", str(CALLS)])
        live = subprocess.run([program, "next", str(target.pid), events], capture_output=True, text=True).stdout
        target.wait()
        got, lost, late, spent = (int(word) for word in live.split())
        print(f"  one by one in order of time: {spent / max(got, 1):.3g} ns a record, lost {lost}, late {late}")
        return met and mine <= BARE * least and kept == RECORDS


if __name__ == "__main__":
    sys.exit(not main())
