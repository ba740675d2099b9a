#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally script against perf script on the same files: recordings by hand, of perf, of tally, and other projects'."""
import glob
import json
import os
import re
import struct
import subprocess
import sys

from handmade import ATTR_SIZE, Program, Recording
from tapcli import TALLY, TOUCH, has, main, need, run, same, scratch, skip, tally, test

SHARED = os.environ.get("TALLY_SHARED", "")
RECORD_TRACEPOINTS = os.environ["RECORD_TRACEPOINTS"]
SKIPPED = 77
# Who, when, what: what decoding alone gives, whatever symbols there are here.
PLAIN = "comm,pid,tid,time,event,period,ip"


def perf(*words):
    need("perf")
    env = dict(os.environ, DEBUGINFOD_URLS="", LC_ALL="C", PAGER="cat")
    # Samples of the file, not those that perf makes of what a processor has traced.
    return run("perf", "script", "-f", "--no-itrace", *words, env=env).stdout


def agree(path, *words):
    """The two print the same; the first line that differs tells."""
    ours, theirs = tally("script", "-i", path, *words), perf("-i", path, *words)
    same(ours.returncode, 0, f"the status of {words}: {ours.stderr}")
    assert theirs, f"perf script prints nothing for {path} {words}"
    for number, (a, b) in enumerate(zip(ours.stdout.splitlines(), theirs.splitlines()), 1):
        assert a == b, f"{os.path.basename(path)} {' '.join(words)}: line {number} is\n{a!r}, not\n{b!r}"
    same(len(ours.stdout.splitlines()), len(theirs.splitlines()), f"the number of lines of {path} {words}")
    return ours.stdout


def handmade(folder):
    """Samples of two threads, some out of order; deep stacks; a name that changes; a fork."""
    program = Program(TALLY)
    names = program.names(8)
    r = Recording(("cpu-clock", "page-faults"))
    r.comm(100, 100, "main")
    r.comm(100, 101, "a worker of it", time=5)
    r.map(100, program)
    for i in range(60):
        chain = [program.at(names[(i + k) % 8], 4 + 4 * k) for k in range(1 + i % 5)]
        r.sample(100, 100 + i % 2, 1_000_000_000 + 1000 * (i ^ 3), 1000 + i, chain, event=i % 3 == 0)
    r.comm(100, 101, "renamed", time=1_000_030_500)
    path = os.path.join(folder, "perf.data")
    r.write(path)
    return path


class Fields(Recording):
    """Samples of any fields: the body is what stands behind IDENTIFIER, IP, TID and TIME."""

    def __init__(self, sample_type, config=0, kind=1, branches=0, regs=0):
        super().__init__()
        self.sample_type, self.config, self.kind = sample_type | 7 | 1 << 16, config, kind
        self.branches, self.regs = branches, regs

    def attr(self, event):
        return struct.pack("<IIQQQQQIIQQQIiQII", self.kind, ATTR_SIZE, self.config, 1, self.sample_type, 0,
                           1 << 18 | 1 << 20, 0, 0, 0, 0, self.branches, 0, 0, self.regs, 0, 0
                           ).ljust(ATTR_SIZE, b"\0")[:ATTR_SIZE]

    def put(self, time, body, ip=0x1000, misc=2):
        self.record(9, misc, struct.pack("<QQiiQ", 1, ip, 7, 8, time) + body)


def written(recording, folder):
    path = os.path.join(folder, "perf.data")
    recording.write(path)
    return path


@test
def defaults_and_fields_are_perfs():
    with scratch() as folder:
        path = handmade(folder)
        for words in ([], ["-G"], ["--ns"], ["--max-stack", "2"], ["-F", PLAIN], ["-F", "+pid,-period"],
                      ["-F", "comm,tid,misc,ip,sym"], ["-F", "ip,sym,symoff,dso", "-G"], ["-F", "time,event"],
                      ["-F", "sw:comm,time"], ["-F", "comm,ip,dso"]):
            # perf names an event whose name is not recorded by its modifiers, too.
            agree_but_names(path, *words)


def agree_but_names(path, *words):
    """perf puts modifiers behind the name of an event that is not recorded."""
    ours, theirs = tally("script", "-i", path, *words), perf("-i", path, *words)
    same(ours.returncode, 0, f"the status of {words}: {ours.stderr}")
    got, want = ([re.sub(r" +([a-z]+-[a-z]+)(:HG)?:", r" \1:", line) for line in text.splitlines()]
                 for text in (ours.stdout, theirs))
    assert want, f"perf script prints nothing for {words}"
    for a, b in zip(got, want):
        same(a, b, f"a line of {words}")
    same(len(got), len(want), f"the number of lines of {words}")


@test
def filters_are_perfs():
    with scratch() as folder:
        path = handmade(folder)
        names = Program(TALLY).names(8)
        for words in (["--tid", "101"], ["--pid", "100,7"], ["-c", "main"], ["-c", "renamed,main"],
                      ["--time", "1.00002,1.00003"], ["--time", "1.00004,"], ["-S", names[2]],
                      ["-S", f"{names[2]},{names[5]}"]):
            agree_but_names(path, "-F", PLAIN, "-G", *words)
        same(tally("script", "-i", path, "--tid", "999").stdout, "", "what no sample passes")


@test
def samples_come_by_time():
    with scratch() as folder:
        out = tally("script", "-i", handmade(folder), "-F", "time").stdout.split()
        same(out, sorted(out), "the order")
        same(len(out), 60, "the number of samples")


@test
def memory_accesses_are_perfs_words():
    with scratch() as folder:
        r = Fields(1 << 3 | 1 << 15 | 1 << 14 | 1 << 19)
        values = [0, 0x1E05080021] + [1 << bit for bit in range(46)]
        values += [op | level << 5 | snoop << 19 | lock << 24 | tlb << 26 for op in (2, 4, 6) for level in (10, 12, 0x42)
                   for snoop in (2, 4, 16) for lock in (1, 2) for tlb in (10, 12, 0x1A)]
        values += [number << 33 | remote << 37 | hops << 43 for number in range(1, 16) for remote in (0, 1)
                   for hops in range(5)]
        # perf of other versions has other words for these: 9 CXL, 8 uncached.
        values = [v for v in values if v >> 33 & 15 not in (8, 9)]
        for i, value in enumerate(values):
            r.put(1000 + 1000 * i, struct.pack("<QQQQ", 0xABC0 + i, 7 * i, value, 0x5000 + i))
        path = written(r, folder)
        agree(path, "-F", "time,addr,data_src,weight,phys_addr")


@test
def branches_are_perfs():
    with scratch() as folder:
        r = Fields(1 << 11, branches=1 << 3)
        for i in range(16):
            flags = i & 15 | (i * 3) << 4 | (i % 15) << 20
            entries = [(0x1000 + i, 0x2000, flags), (0x3000, 0x4000 + i, 2 | 77 << 4)][:i % 3]
            r.put(1000 + 1000 * i, struct.pack("<Q", len(entries)) + b"".join(struct.pack("<QQQ", *e) for e in entries))
        path = written(r, folder)
        for fields in ("brstack", "brstacksym", "brstackoff", "time,brstack,dso"):
            agree(path, "-F", f"tid,{fields}")


@test
def registers_are_perfs():
    with scratch() as folder:
        r = Fields(1 << 18, regs=0x1FF)
        for i in range(3):
            r.put(1000 * i + 1000, struct.pack("<Q9Q", 2, *(i + 0x10 ** k for k in range(9))))
        r.put(9000, struct.pack("<Q", 0))
        path = written(r, folder)
        ours = tally("script", "-i", path, "-F", "time,iregs").stdout
        # Without the feature ARCH nothing tells whose registers they are; perf takes its own machine's.
        names = re.sub(r" *\S+?:0x", " :0x", perf("-i", path, "-F", "time,iregs"))
        same(re.sub(r" *\S+?:0x", " :0x", ours), names, "the registers")


@test
def page_sizes_are_perfs():
    with scratch() as folder:
        r = Fields(1 << 22 | 1 << 23)
        for i, size in enumerate((0, 4096, 65536, 2 << 20, 1 << 30)):
            r.put(1000 * i + 1000, struct.pack("<QQ", size, 4096))
        agree(written(r, folder), "-F", "time,data_page_size,code_page_size")


@test
def other_records_are_perfs():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        # Who may not have records of namespaces has a recording without them.
        for more in (["--namespaces"], []):
            done = run("perf", "record", "-q", "-e", "cpu-clock", "--switch-events", *more, "-o", path, "--", "sh", "-c",
                       "true; ls /; true")
            if done.returncode == 0:
                break
        kinds = [f"--show-{kind}-events" for kind in ("mmap", "task", "switch", "lost", "namespace", "bpf")]
        if done.returncode:
            skip("perf record does not work here")
        agree(path, "-F", "comm,pid,tid,time,event", *kinds)
        has(tally("script", "-i", path, *kinds).stdout, "PERF_RECORD_COMM exec: sh:")


@test
def a_recording_of_perf_with_callchains_is_the_same():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        run("perf", "record", "-q", "-F", "5000", "-g", "-e", "cpu-clock", "-o", path, "--", TOUCH, "20000")
        if not os.path.exists(path):
            skip("perf record does not work here")
        agree(path, "-F", PLAIN, "-G")


@test
def tracepoints_of_tally_are_printed_by_both():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        done = run(RECORD_TRACEPOINTS, path, "100")
        if done.returncode == SKIPPED:
            skip("tracefs is not to be had")
        same(done.returncode, 0, done.stderr)
        theirs = perf("-i", path)
        has(theirs, "which: 0x00000000")
        calls = [line for line in theirs.splitlines() if "sys_enter_getpriority:" in line]
        same(len(calls), 100, "the calls that perf prints")
        own = tally("script", "-i", path, "--own-payloads", "-F", "trace:event,trace").stdout
        numbers = [int(m) for m in re.findall(r"sys_enter_getpriority: .*which=0 who=(\d+)", own)]
        same(numbers, list(range(100, 0, -1)), "the arguments of the calls")
        if run("sh", "-c", "ldconfig -p | grep -q libtraceevent.so.1").returncode:
            skip("libtraceevent is not installed")
        agree(path)


@test
def json_is_an_object_a_line():
    with scratch() as folder:
        path = handmade(folder)
        lines = [json.loads(line) for line in tally("script", "--json", "-i", path).stdout.splitlines()]
        same(len(lines), 60, "the number of objects")
        text = tally("script", "-i", path, "-F", "tid,time,ip", "-G", "--ns").stdout.splitlines()
        for o, line in zip(lines, text):
            tid, time, ip = line.split()
            same((o["tid"], o["time_ns"], int(o["ip"], 16)),
                 (int(tid), int(time.replace(".", "").rstrip(":")), int(ip, 16)), "an object")
            same(o["callchain"][0]["ip"], o["ip"], "the innermost frame")
            assert o["symbol"] in Program(TALLY).functions, o
        other = [json.loads(line) for line in
                 tally("script", "--json", "--show-task-events", "--show-mmap-events", "-i", path).stdout.splitlines()]
        same(sorted({o["type"] for o in other}), ["COMM", "MMAP2", "sample"], "the types")


@test
def a_dump_has_every_record():
    with scratch() as folder:
        path = handmade(folder)
        lines = tally("script", "-D", "-i", path).stdout.splitlines()
        same(len(lines), 64, "the number of records")
        has(lines[0], "COMM misc=0x0")
        has(lines[0], 'comm="main"')
        assert re.match(r"0x[0-9a-f]+ \[0x[0-9a-f]+\]: ", lines[0]), lines[0]
        same(len([json.loads(x) for x in tally("script", "-D", "--json", "-i", path).stdout.splitlines()]), 64,
             "the number of objects")


@test
def what_cannot_be_is_said():
    with scratch() as folder:
        path = handmade(folder)
        for words, text in ((["-F", "colour"], "'colour' is no field"), (["-F", "+cpu"], "have no cpu"),
                            (["-F", "srccode"], "tally annotate"), (["-F", "comm,srcline"], "ask for ip too"), (["-F", "comm,+ip"], "mixes"),
                            (["-C", "x"], "no list of CPUs"), (["--time", "x"], "no span of time")):
            done = tally("script", "-i", path, *words)
            same((done.returncode, done.stdout), (2, ""), f"the answer to {words}")
            has(done.stderr, text)
        done = tally("script", "-i", os.path.join(folder, "none"))
        same(done.returncode, 1, "the status without a file")
        has(done.stderr, "cannot open")


@test
def a_full_disk_is_said():
    with scratch() as folder:
        path = handmade(folder)
        with open("/dev/full", "w") as full:
            done = subprocess.run([TALLY, "script", "-i", path], stdout=full, stderr=subprocess.PIPE, text=True)
        same(done.returncode, 1, "the status")
        has(done.stderr, "No space left on device")


@test
def names_from_a_file_do_no_harm():
    with scratch() as folder:
        r = Recording()
        r.comm(100, 100, "a\x1b[31mb")
        r.sample(100, 100, 1000, 1, [0x1000])
        out = tally("script", "-i", written(r, folder)).stdout
        has(out, "a?[31mb")
        assert "\x1b" not in out, repr(out)


def shared():
    files = sorted(glob.glob(os.path.join(SHARED, "perfdata", "*.data*"))) if SHARED else []
    return files or skip("there is no ../shared/perfdata")


# perf 6.1 cannot read them (other attrs, COMPRESSED2), or they are damaged.
BEYOND_PERF = ("compressed2", "lpd__sleep.compressed.data", "lpd__sleep.data", "mslt__", "corrupted")


@test
def files_of_other_projects_are_decoded_as_by_perf():
    for path in shared():
        name = os.path.basename(path)
        if any(part in name for part in BEYOND_PERF):
            continue
        agree(path, "-F", PLAIN, "-G")
        agree(path, "-F", "comm,tid,time,event")


@test
def callchains_and_branches_of_other_projects_files_too():
    for path in shared():
        if "callgraph" in path:
            agree(path, "-F", "comm,tid,time,ip", "--max-stack", "127")
        if "branch" in path and "be__" not in path or "perf-kernel" in path:
            # perf takes user addresses for the kernel's where the kernel's map covers everything.
            strip = lambda text: re.sub(r"\([^)]*\)", "", text)  # noqa: E731
            words = ("-F", "tid,time,brstack", "-G")
            same(strip(tally("script", "-i", path, *words).stdout), strip(perf("-i", path, *words)), f"branches of {path}")


@test
def swapped_copies_are_decoded_alike():
    swap = os.path.join(SHARED, "tools", "swap-endian.py")
    files = [f for f in shared() if os.path.exists(swap)]
    swapped = 0
    with scratch() as folder:
        for path in files:
            name = os.path.basename(path)
            if any(part in name for part in BEYOND_PERF) or name.startswith("be__"):
                continue
            copy = os.path.join(folder, "swapped.data")
            if run(sys.executable, swap, path, copy).returncode:
                continue
            want = tally("script", "-i", path, "-F", PLAIN)
            got = tally("script", "-i", copy, "-F", PLAIN)
            assert got.stdout == want.stdout, f"the swapped {name} differs"
            swapped += 1
    if not swapped:
        skip("nothing can be swapped here")


if __name__ == "__main__":
    sys.exit(main())
