#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record in each of its modes: other people's readers take the file without a word, and find as many samples in it
as the recorder counted. The referees are perf(1) and hotspot's perfparser; one that is absent skips its own. Speaks TAP."""
import collections
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

from tapcli import TALLY, has, main, named, need, run, same, scratch, skip, test, watches_kernel

LOOP = ("sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.01; sleep 0.01")
TRACEFS = ("unshare", "-m", "sh", "-c", 'mount -t tracefs t /sys/kernel/tracing || exit 99; exec "$@"', "sh")
SAMPLE = "cpu-clock"
IN_FILE = named(SAMPLE)

# Name: the words of the recorder, and how many events the file has at least.
MODES = {
    "plain": (["-e", SAMPLE], 1),
    "frame_pointers": (["-e", SAMPLE, "--call-graph", "fp"], 1),
    "copies_of_stacks": (["-e", SAMPLE, "--call-graph", "dwarf"], 1),
    "compressed": (["-e", SAMPLE, "--call-graph", "fp", "-z"], 1),
    "stream": (["-e", SAMPLE, "--call-graph", "fp", "-o", "-"], 1),
    "compressed_stream": (["-e", SAMPLE, "--call-graph", "fp", "-z", "-o", "-"], 1),
    "all_cpus": (["-e", SAMPLE, "-a"], 1),
    "group": (["-e", "{cpu-clock,page-faults}:S"], 2),
    "tracepoints": (["-e", "sched:sched_switch,cpu-clock"], 2),
    # Switches are the kernel's; who may not watch that has other events.
    "several_events": (["-e", "cpu-clock,page-faults," + ("context-switches" if watches_kernel() else "minor-faults")], 3),
    "flight_recorder": (["-e", SAMPLE, "--call-graph", "fp", "--overwrite"], 1),
}


def record(folder, mode):
    """Made once for all referees: the path, and how many samples the recorder counted."""
    path = os.path.join(folder, mode)
    words, _ = MODES[mode]
    if not os.path.exists(path + ".said"):
        if mode in ("all_cpus", "tracepoints") and os.geteuid() != 0:
            skip("not root")
        front = TRACEFS if mode == "tracepoints" else ()
        place = () if "-o" in words else ("-o", path)
        with open(path if "-o" in words else os.devnull, "wb") as to:
            done = subprocess.run([*front, TALLY, "record", *words, *place, "--", *LOOP], stdin=subprocess.DEVNULL,
                                  stdout=to, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        if front and done.returncode in (1, 99) and "samples" not in done.stderr:
            skip("tracefs cannot be mounted: " + done.stderr.splitlines()[0])
        same(done.returncode, 0, done.stderr)
        with open(path + ".said", "w") as said:
            said.write(re.search(r"(\d+) samples", done.stderr).group(1))
    with open(path + ".said") as said:
        count = int(said.read())
    assert count > 20, f"only {count} samples"
    return path, count


def environment():
    # perf 6.1 reads memory that it never set when it shows a stream's header.
    env = dict(os.environ, LC_ALL="C", PAGER="cat", DEBUGINFOD_URLS="")
    env.pop("MALLOC_PERTURB_", None)
    return env


def perf(*words):
    done = run("perf", *words, env=environment())
    same((words, done.returncode, done.stderr.strip()), (words, 0, ""))
    return done.stdout


def perf_reads(folder, mode):
    need("perf")
    path, count = record(folder, mode)
    names = re.findall(r" ([\w:-]+): *$", perf("script", "-F", "comm,tid,time,event", "-i", path), flags=re.M)
    if mode == "group":  # perf makes one line for each event that counted something
        assert len(names) >= count and names.count(IN_FILE) == count, (len(names), count)
    else:
        same(len(names), count, "perf's number of samples")
    has(names, IN_FILE)
    report = perf("report", "--stdio", "-i", path)
    assert re.search(r"^ +\d+\.\d+%.*\bsh\b", report, flags=re.M), report[:500]


# ---- perfparser writes blocks: u32 length, u8 type, fields ----

COMMAND, LOCATION, LOST, ERROR, ATTRIBUTES, PARSED, PARSED_TRACEPOINT = 2, 3, 6, 8, 11, 13, 14
MAGIC = b"QPERFSTREAM\0"


def perfparser(path, to):
    """How many blocks of each type it makes of the recording, and the lines that it says."""
    found = glob.glob("/usr/lib/*/libexec/hotspot-perfparser") + glob.glob("/usr/libexec/hotspot-perfparser")
    program = shutil.which("hotspot-perfparser") or (found[0] if found else skip("hotspot-perfparser is not installed"))
    done = run(program, "--input", path, "--output", to, env=environment())
    same(done.returncode, 0, done.stderr)
    if "PERF_RECORD_COMPRESSED" in done.stderr:
        skip("this hotspot-perfparser reads nothing that is compressed")
    with open(to, "rb") as file:
        blocks = file.read()
    same(blocks[:len(MAGIC)], MAGIC)
    counts, at = collections.Counter(), len(MAGIC) + 4
    while at < len(blocks):
        counts[blocks[at + 4]] += 1
        at += 4 + struct.unpack_from("<I", blocks, at)[0]
    same(at, len(blocks), "the end of the last block")
    return counts, done.stderr.splitlines()


def unread_features(lines):
    return {line for line in lines if line.startswith("feature not properly read")}


def of_perf(folder):
    """The features of perf's own recordings that perfparser does not read: it is older than they are."""
    path = os.path.join(folder, "perf's")
    if not os.path.exists(path):
        need("perf")
        done = run("perf", "record", "-q", "-k", "mono", "-e", SAMPLE, "-o", path, "--", "true")
        same(done.returncode, 0, done.stderr)
    return unread_features(perfparser(path, path + ".blocks")[1])


def unknown(line):
    """Records that only programs write have types from 64 on; it does not know all of them, nor KSYMBOL and BPF_EVENT,
    which perf records as well, of programs that somebody loads."""
    record_type = re.match(r"unhandled event type (\d+) ", line)
    of_others = record_type and (int(record_type.group(1)) >= 64 or int(record_type.group(1)) in (17, 18))
    return not (of_others or line.startswith("FINISHED_ROUND detected"))


def hotspot_reads(folder, mode):
    path, count = record(folder, mode)
    blocks, lines = perfparser(path, path + ".blocks")
    unread = unread_features(lines)
    same([line for line in lines if line not in unread and unknown(line)], [], "what perfparser says")
    same(unread - of_perf(folder) if unread else set(), set(), "what it does not read, but of perf's")
    same(blocks[PARSED] + blocks[PARSED_TRACEPOINT], count, "perfparser's number of samples")
    same(blocks[PARSED_TRACEPOINT] > 0, mode == "tracepoints")
    assert blocks[ATTRIBUTES] >= MODES[mode][1] and blocks[COMMAND] and blocks[LOCATION], blocks
    same(blocks[LOST], 0)
    if mode != "all_cpus":  # programs of others may be gone by now
        same(blocks[ERROR], 0)


def add_test(judge, folder, mode):
    def one():
        judge(folder, mode)
    one.__name__ = f"{judge.__name__}_{mode}"
    test(one)


if __name__ == "__main__":
    with scratch() as recordings:
        for each in MODES:
            add_test(perf_reads, recordings, each)
            add_test(hotspot_reads, recordings, each)
        sys.exit(main())
