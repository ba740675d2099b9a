#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record: what can be in a sample and beside it, with perf as the referee of each file."""
import contextlib
import ctypes
import os
import re
import struct
import subprocess
import sys
import time

from tapcli import TALLY, TOUCH, has, main, named, need, run, same, scratch, skip, tally, test, watches_kernel

SPIN = ["/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]
PAGES = 50


def record(path, *words):
    """Records page faults, each of them, of a program that makes PAGES of them in one function."""
    out = tally("record", "-e", "page-faults", "-c", "1", "-o", path, *words, "--", TOUCH, PAGES)
    same(out.returncode, 0, f"the status ({out.stderr})")
    return out


def ours(path):
    """[(tid, time, {field: value})], sorted."""
    out = run(os.environ["DUMP_SAMPLES"], "-x", path)
    same(out.stderr, "")
    samples = []
    for line in out.stdout.splitlines():
        tid, when, _, *rest = line.split(" ")
        samples.append((int(tid), int(when), {k: int(v, 16) for k, v in (word.split("=") for word in rest)}))
    return sorted(samples, key=lambda s: s[:2])


SIZES = {"N/A": 0, "4K": 4096, "64K": 65536, "2M": 2 << 20, "1G": 1 << 30}


def theirs(path):
    """The same by perf's raw dump, with the fields that it has."""
    out = run("perf", "report", "-D", "-i", path)
    samples = []
    head = re.compile(r"(?:\d+ )?(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): "
                      r"-?\d+/(-?\d+): 0x[0-9a-f]+ period: (\d+) addr: (?:0x)?([0-9a-f]+)")
    fields = [(re.compile(pattern), name, read) for pattern, name, read in [
        (r"\.\.\. weight: (\d+)", "weight", int),
        (r" \. data_src: (0x[0-9a-f]+)", "data-src", lambda x: int(x, 16)),
        (r" \.\. phys_addr: (0x[0-9a-f]+)", "phys", lambda x: int(x, 16)),
        (r" \.\. data page size: (\S+)", "data-page", SIZES.get),
        (r" \.\. code page size: (\S+)", "code-page", SIZES.get),
    ]]
    for line in out.stdout.splitlines():
        found = head.match(line)
        if found:
            samples.append((int(found[2]), int(found[1]), {"period": int(found[3]), "addr": int(found[4], 16)}))
            continue
        for pattern, name, read in fields:
            found = pattern.match(line)
            if found and samples:
                samples[-1][2][name] = read(found[1])
    return sorted(samples, key=lambda s: s[:2])


def clean(path):
    """perf reads the file without a word."""
    need("perf")
    for words in (["report", "--stdio"], ["script"]):
        got = run("perf", *words, "-i", path)
        same((words, got.returncode, [l for l in got.stderr.splitlines() if l.strip()]), (words, 0, []))


def agree(path, *names):
    """Both find the same samples, and in them the same values of these fields, of which some are not 0."""
    clean(path)
    one, other = ours(path), theirs(path)
    same(len(one), len(other), "our number of samples")
    assert len(one) >= PAGES, f"only {len(one)} samples"
    for a, b in zip(one, other):
        same(a[:2], b[:2])
        for name in names:
            same((name, a[2][name]), (name, b[2].get(name)))
    return one


def by_type(path):
    """perf's number of records by type."""
    need("perf")
    out = run("perf", "report", "--stats", "-i", path)
    return {name: int(count) for name, count in re.findall(r"^ +(\w+) events: +(\d+)", out.stdout, re.M)}


@test
def addresses():
    """-d: the address of each fault; a fresh block's ascend page by page"""
    with scratch() as d:
        record(d + "/f", "-d")
        samples = agree(d + "/f", "addr", "data-src")
        pages = [s[2]["addr"] >> 12 for s in samples]
        longest = best = 1
        for a, b in zip(pages, pages[1:]):
            longest = longest + 1 if b == a + 1 else 1
            best = max(best, longest)
        assert best >= PAGES, f"the longest run of pages is {best}"


@test
def sizes_and_physical():
    """--phys-data, --data-page-size, --code-page-size, -W: as perf reads them"""
    if os.geteuid() != 0:
        skip("not root, and physical addresses are only shown to root")
    with scratch() as d:
        record(d + "/f", "-d", "--phys-data", "--data-page-size", "--code-page-size", "-W")
        samples = agree(d + "/f", "phys", "data-page", "code-page", "weight")
        assert any(s[2]["code-page"] == 4096 for s in samples), "no page of code has a size"


@test
def several_events():
    """several -e are one list, and each event has its samples"""
    with scratch() as d:
        out = tally("record", "-e", "page-faults", "-e", "minor-faults,cpu-clock", "-c", "1", "-o", d + "/f", "--",
                    TOUCH, PAGES)
        same(out.returncode, 0)
        clean(d + "/f")
        names = run("perf", "evlist", "-i", d + "/f").stdout.split()
        same(names[:3], [named(n) for n in ("page-faults", "minor-faults", "cpu-clock")])
        stats = run("perf", "report", "--stats", "-i", d + "/f").stdout
        for name in ("page-faults", "minor-faults"):
            count = re.search(rf"^{named(name)} stats:\n +SAMPLE events: +(\d+)", stats, re.M)
            assert count and int(count[1]) >= PAGES, stats


def weights(text):
    """{event: sum of its periods} of a report on standard output."""
    return {name: int(total) for name, total in
            re.findall(r"of events? '([^']+)'\n# Event count \(approx\.\): (\d+)", text)}


@test
def leader_samples():
    """{...}:S: each member weighs by its own counts, and perf's sums are ours"""
    need("perf")
    with scratch() as d:
        # One task that nobody inherits from: what perf 6.1 makes of several is known to be wrong.
        out = tally("record", "-i", "-e", "{cpu-clock,page-faults,minor-faults}:S", "-c", "100000", "-o", d + "/f",
                    "--", TOUCH, "20000")
        same(out.returncode, 0)
        clean(d + "/f")
        want = weights(run("perf", "report", "--stdio", "--no-group", "-i", d + "/f").stdout)
        same(sorted(want), [named(n) for n in ("cpu-clock", "minor-faults", "page-faults")])
        assert want[named("page-faults")] > 100, want
        for name, total in want.items():
            got = tally("report", "--event", name, "-i", d + "/f")
            same(got.stderr, "")
            same(weights(got.stdout), {name: total})


@test
def leader_samples_inherited():
    """{...}:S with children: what all members count is what they did"""
    with scratch() as d:
        tally("record", "-e", "{page-faults,minor-faults}:S", "-c", "1", "-o", d + "/f", "--", TOUCH, "200", "2", "2")
        got = tally("report", "--event", named("minor-faults"), "-i", d + "/f")
        if "no event" in got.stderr or got.returncode:
            skip("this kernel reads no groups that are inherited (Linux 6.13 does)")
        total = weights(got.stdout)[named("minor-faults")]
        assert 5 * 200 <= total < 5 * 200 + 2000, f"{total} faults of 5 tasks with 200 each"


@test
def stack_copies():
    """--keep-stacks: a copy of the stack, from which perf finds the callers"""
    need("perf")
    with scratch() as d:
        record(d + "/f", "--call-graph", "dwarf,1024", "--keep-stacks")
        clean(d + "/f")
        samples = ours(d + "/f")
        assert any(0 < s[2]["stack"] <= 1024 for s in samples), "no stack"
        chains = run("perf", "script", "-F", "ip,sym", "-i", d + "/f").stdout.split("\n\n")
        touches = [chain.split() for chain in chains if re.match(r"\s+[0-9a-f]+ touch( \(inlined\))?\n", chain)]
        assert len(touches) >= PAGES, f"{len(touches)} samples in touch()"
        assert all("main" in chain for chain in touches), touches[:3]
        out = tally("record", "--call-graph", "dwarf,65536", "-o", d + "/none", "--", "true")
        same(out.returncode, 2)
        has(out.stderr, "65528")


@test
def fields():
    """tracepoints carry their own fields (-R is their default)"""
    need("unshare")
    with scratch() as d:
        done = run("unshare", "-m", "sh", "-c", 'mount -t tracefs t /sys/kernel/tracing || exit 99; exec "$@"', "sh",
                   TALLY, "record", "-e", "syscalls:sys_enter_write", "--filter", "count == 4", "-e", "page-faults",
                   "-o", d + "/f", "--", "sh", "-c", "echo 123; echo 1234; echo 321")
        if done.returncode == 99 or "unshare" in done.stderr:
            skip("tracefs cannot be mounted")
        same(done.returncode, 0)
        raw = [s for s in ours(d + "/f") if s[2]["raw"]]
        same(len(raw), 2, "the writes of 4 bytes")
        clean(d + "/f")
        shown = run("perf", "script", "-F", "event,trace", "-i", d + "/f").stdout
        same(len(re.findall(r"^ *syscalls:sys_enter_write: fd: 0x0*1, buf: 0x\w+, count: 0x0*4$", shown, re.M)), 2,
             "what perf shows of them")


def refused_namespaces(out):
    """perf_event_open(2) has their records for who has CAP_PERFMON alone, whatever the level is."""
    return out.returncode and "records of namespaces need a capability" in out.stderr


@test
def beside_the_samples():
    """--switch-events, --namespaces, --all-cgroups, -s: records beside the samples"""
    need("perf")
    with scratch() as d:
        for option, name in (("--switch-events", "SWITCH"), ("--namespaces", "NAMESPACES"), ("-s", "READ")):
            out = tally("record", option, "-e", "page-faults", "-c", "1", "-o", d + "/f", "--", "sh", "-c",
                        "sleep 0.01; sleep 0.01")
            if name == "NAMESPACES" and refused_namespaces(out):
                continue
            same(out.returncode, 0, out.stderr)
            clean(d + "/f")
            assert by_type(d + "/f").get(name, 0) > 0, f"{option}: {by_type(d + '/f')}"


def scripted(path, option):
    """perf's lines of such records, of which it has nothing to say on standard error."""
    need("perf")
    out = run("perf", "script", "--show-task-events", option, "-i", path)
    same((out.returncode, out.stderr), (0, ""))
    return out.stdout


NAMESPACES = ("net", "uts", "ipc", "pid", "user", "mnt", "cgroup")


def namespaces(text):
    """{tid: {name: inode}} of what perf shows."""
    found = {}
    for tid, rest in re.findall(r"PERF_RECORD_NAMESPACES \d+/(\d+) - nr_namespaces: 7\s+\[([^]]+)\]", text):
        found[int(tid)] = {name: int(ino, 16) for name, ino in re.findall(r"\d/(\w+): \d+/0x([0-9a-f]+)", rest)}
    return found


@test
def namespaces_of_what_runs():
    """--namespaces -p: those of each thread that was there before, by the inodes of /proc/PID/ns"""
    with scratch() as d:
        # Where that may be, a thread has a host's name of its own: CLONE_NEWUTS.
        code = """
import ctypes, threading, time
def go():
    ctypes.CDLL(None).unshare(0x04000000)
    print("on", flush=True)
    time.sleep(60)
threading.Thread(target=go, daemon=True).start()
time.sleep(60)
"""
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            same(child.stdout.readline(), b"on\n")
            out = tally("record", "--namespaces", "-e", "cpu-clock", "-p", child.pid, "-o", d + "/f",
                        "--", "sleep", "0.1")
            if refused_namespaces(out):
                skip(out.stderr.strip())
            same(out.returncode, 0, out.stderr)
            want = {int(tid): {name: os.stat(f"/proc/{child.pid}/task/{tid}/ns/{name}").st_ino for name in NAMESPACES}
                    for tid in os.listdir(f"/proc/{child.pid}/task")}
            same(namespaces(scripted(d + "/f", "--show-namespace-events")), want)
        finally:
            child.kill()
            child.wait()


@test
def namespaces_of_a_command():
    """--namespaces: a command has been in them since its fork, of which the kernel tells nothing"""
    with scratch() as d:
        out = tally("record", "--namespaces", "-o", d + "/f", "--", "true")
        if refused_namespaces(out):
            skip(out.stderr.strip())
        record(d + "/f", "--namespaces")
        clean(d + "/f")
        got = namespaces(scripted(d + "/f", "--show-namespace-events"))
        same(list(got.values()), [{name: os.stat(f"/proc/self/ns/{name}").st_ino for name in NAMESPACES}])


@test
def cgroup_of_samples():
    """--all-cgroups: each sample has the cgroup of its task, by the number of its folder"""
    mounts = [line.split() for line in open("/proc/mounts")]
    hierarchies = [m[1] for m in mounts if m[2] == "cgroup2"]
    if not hierarchies:
        skip("no cgroup v2 hierarchy is mounted")
    own = next((l.split(":", 2)[2].strip() for l in open("/proc/self/cgroup") if l.startswith("0::")), None)
    if own is None or not os.path.isdir(hierarchies[0] + own):
        skip("this process's cgroup cannot be seen")
    with scratch() as d:
        record(d + "/f", "--all-cgroups")
        same({s[2]["cgroup"] for s in ours(d + "/f")}, {os.stat(hierarchies[0] + own).st_ino})


def hierarchy():
    """Where the control groups are that perf events know, or None."""
    mounts = [line.split() for line in open("/proc/mounts")]
    return next((m[1] for m in mounts if m[2] == "cgroup" and "perf_event" in m[3].split(",")), None) or \
        next((m[1] for m in mounts if m[2] == "cgroup2"), None)


@contextlib.contextmanager
def cgroup():
    """The folder of a new control group."""
    base = hierarchy()
    if not base or os.geteuid() != 0:
        skip("no hierarchy of cgroups to make one in")
    folder = f"{base}/tally-test-{os.getpid()}"
    try:
        os.mkdir(folder)
    except OSError as e:
        skip(f"no cgroup can be made: {e}")
    try:
        yield folder
    finally:
        os.rmdir(folder)


@test
def cgroup_alone():
    """-G: of all that runs on the CPUs only what is in the cgroup"""
    with cgroup() as folder, scratch() as d:
        inside = ["sh", "-c", f"echo $$ > {folder}/cgroup.procs && exec \"$@\"", "sh", TOUCH, "300"]
        out = tally("record", "-a", "-G", os.path.basename(folder), "-e", "page-faults", "-c", "1", "-o", d + "/f",
                    "--", "sh", "-c", '"$@" & wait; exec ' + TOUCH + " 4000", "sh", *inside)
        if "cgroup" in out.stderr and out.returncode:
            skip(out.stderr.strip())
        samples = ours(d + "/f")
        assert 300 <= len(samples) < 1500, f"{len(samples)} faults: those of one program are about 400"
        same(len({s[0] for s in samples}), 1, "the number of threads")
        clean(d + "/f")


@test
def cgroup_of_what_runs():
    """-G: a program that was in the cgroup before has a name and mappings"""
    with cgroup() as folder, scratch() as d:
        child = subprocess.Popen(["sh", "-c", f"echo $$ > {folder}/cgroup.procs && echo on && while :; do :; done"],
                                 stdout=subprocess.PIPE)
        try:
            same(child.stdout.readline(), b"on\n")
            out = tally("record", "-a", "-G", os.path.basename(folder), "-e", "cpu-clock", "-c", "1000000",
                        "-o", d + "/f", "--", "sleep", "0.2")
            if "cgroup" in out.stderr and out.returncode:
                skip(out.stderr.strip())
            clean(d + "/f")
            shown = run("perf", "script", "-F", "pid,comm", "-i", d + "/f").stdout.split("\n")
            same({tuple(line.split()) for line in shown if line}, {("sh", str(child.pid))})
            assert by_type(d + "/f").get("MMAP2", 0) > 0
        finally:
            child.kill()
            child.wait()


@test
def cgroups_that_there_are():
    """--all-cgroups: each cgroup that was there before, by the inode of its folder, as perf finds them"""
    with cgroup() as folder, scratch() as d:
        os.mkdir(folder + "/below it")
        child = subprocess.Popen(["sleep", "60"])
        try:
            for target in (["-a", "--", "sleep", "0.1"], ["-p", child.pid, "--", "sleep", "0.1"], ["--", TOUCH, PAGES]):
                same(tally("record", "--all-cgroups", "-e", "cpu-clock", "-o", d + "/f", *target).returncode, 0)
                shown = scripted(d + "/f", "--show-cgroup-events")
                found = re.findall(r"PERF_RECORD_CGROUP cgroup: (\d+) (.*)", shown)
                name = "/" + os.path.basename(folder)
                for path, where in (("/", hierarchy()), (name, folder), (name + "/below it", folder + "/below it")):
                    same([int(n) for n, p in found if p == path], [os.stat(where).st_ino], path)
        finally:
            child.kill()
            child.wait()
            os.rmdir(folder + "/below it")


def maps(path):
    """perf's reading of THREAD_MAP and CPU_MAP: [tid], [cpu]."""
    need("perf")
    out = run("perf", "report", "-D", "-i", path)
    threads = re.findall(r": PERF_RECORD_THREAD_MAP nr: \d+ threads?: (.*)$", out.stdout, re.M)
    cpus = re.findall(r": PERF_RECORD_CPU_MAP: (\S+)$", out.stdout, re.M)
    same((len(threads), len(cpus)), (1, 1), f"the number of maps ({out.stderr})")
    return sorted(int(n) for n in re.findall(r"-?\d+", threads[0])), cpus[0]


@test
def what_was_recorded():
    """THREAD_MAP and CPU_MAP: the same as perf writes into its recordings"""
    if os.geteuid() != 0:
        skip("not root")
    need("perf")
    code = "import threading, time; go = lambda: time.sleep(60)\n" \
        "threading.Thread(target=go, daemon=True).start(); print(flush=True); go()"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        with scratch() as d:
            for target in (["-a"], ["-C", "0"], ["-p", child.pid], ["-t", child.pid], ["-p", child.pid, "-z"]):
                both = []
                # tally's -t has one ring for the thread, wherever it runs.
                for program in ([TALLY, "record"], ["perf", "record"] + ["--per-thread"] * ("-t" in target)):
                    out = run(*program, "-e", "cpu-clock", *target, "-o", d + "/f", "--", "sleep", "0.1")
                    same(out.returncode, 0, out.stderr)
                    both.append(maps(d + "/f"))
                same(both[0], both[1], f"with {target} what tally says")
            record(d + "/f")
            threads, _ = maps(d + "/f")
            same(threads, sorted({s[0] for s in ours(d + "/f")}))
    finally:
        child.kill()
        child.wait()


def bpf(command, layout, *values):
    """bpf(2) with an attr of these fields, of which bytes stand for their address. Returns a descriptor."""
    number = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
    libc = ctypes.CDLL(None, use_errno=True)
    kept = [ctypes.create_string_buffer(v, len(v)) if isinstance(v, bytes) else v for v in values]
    attr = ctypes.create_string_buffer(
        struct.pack(layout, *[v if isinstance(v, int) else ctypes.addressof(v) for v in kept]), 128)
    fd = libc.syscall(number, command, attr, 128) if number else -1
    if fd < 0:
        skip(f"no BPF program can be loaded: {os.strerror(ctypes.get_errno())}")
    return fd


def load_types(*functions):
    """BPF_BTF_LOAD of an int, a prototype that returns it, and functions of it, the ids 3 and on."""
    types = struct.pack("<IIII", 1, 1 << 24, 4, 1 << 24 | 32) + struct.pack("<III", 0, 13 << 24, 1)
    strings = b"\0int\0"
    for name in functions:
        types += struct.pack("<III", len(strings), 12 << 24, 2)
        strings += name.encode() + b"\0"
    btf = struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings
    return bpf(18, "<QQI", btf, 0, len(btf))


def load_program(name, btf=0):
    """BPF_PROG_LOAD of a socket filter: `r0 = 0; exit`; with types it calls a second function for that."""
    code = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0)
    infos = b""
    if btf:
        code = struct.pack("<BBhiBBhi", 0x85, 0x10, 0, 1, 0x95, 0, 0, 0) + code
        infos = struct.pack("<IIII", 0, 3, 2, 4)
    half = struct.unpack("<QQ", name.encode().ljust(16, b"\0"))
    return bpf(5, "<IIQQIIQIIQQIIIIQI", 1, len(code) // 8, code, b"GPL\0", 0, 0, 0, 0, 0, *half, 0, 0, btf,
               8 if btf else 0, infos or 0, len(infos) // 8)


@test
def bpf_programs():
    """KSYMBOL and BPF_EVENT: of programs that were loaded before, by their ids and by kallsyms"""
    names = [f"tally_test_{os.getpid()}_a_name_beyond_15_bytes", f"tally_test_{os.getpid()}_second"]
    fds = [load_program(f"tally_{os.getpid()}"[:15])]
    try:
        fds.append(load_types(*names))
        fds.append(load_program(names[0][:15], fds[1]))
        ids = {re.search(r"^prog_id:\t(\d+)", open(f"/proc/self/fdinfo/{fd}").read(), re.M)[1]
               for fd in (fds[0], fds[2])}
        want = {}
        for line in open("/proc/kallsyms"):
            at, _, name, *module = line.split()
            if module == ["[bpf]"] and re.match(rf"bpf_prog_[0-9a-f]{{16}}_tally_(test_)?{os.getpid()}", name):
                want[name] = int(at, 16)
        if 0 in want.values() or len(want) != 3:
            skip(f"programs are not compiled, or addresses are hidden: {want}")
        with scratch() as d:
            for target in (["-a", "--", "sleep", "0.1"], ["--", TOUCH, PAGES]):
                same(tally("record", "-e", "cpu-clock", "-o", d + "/f", *target).returncode, 0)
                shown = scripted(d + "/f", "--show-bpf-events")
                found = re.findall(r"PERF_RECORD_KSYMBOL addr ([0-9a-f]+) len \d+ type 1 flags 0x0 name (\S+)", shown)
                same({name: int(at, 16) for at, name in found if name in want}, want)
                loaded = re.findall(r"PERF_RECORD_BPF_EVENT type 1, flags 0, id (\d+)", shown)
                assert ids <= set(loaded), f"{ids} are not all in {loaded}"
    finally:
        for fd in fds:
            os.close(fd)


@test
def clocks():
    """-k: the times are those of the clock"""
    with scratch() as d:
        for name, clock in (("mono", time.CLOCK_MONOTONIC), ("monotonic_raw", time.CLOCK_MONOTONIC_RAW),
                            ("CLOCK_REALTIME", time.CLOCK_REALTIME), ("boot", time.CLOCK_BOOTTIME),
                            ("4", time.CLOCK_MONOTONIC_RAW), ("tai", 11)):
            before = time.clock_gettime_ns(clock)
            record(d + "/f", "-k", name)
            after = time.clock_gettime_ns(clock)
            samples = ours(d + "/f")
            outside = [s[1] for s in samples if not before <= s[1] <= after]
            same((name, outside[:1]), (name, []))
            assert samples, name
        for bad in ("77", "x", "", "-1"):
            out = tally("record", "-k", bad, "-o", d + "/none", "--", "true")
            same((bad, out.returncode), (bad, 2))
            has(out.stderr, "-k")


@test
def branches():
    """-b, -j, --call-graph lbr: branches where hardware records them, else words about it"""
    with scratch() as d:
        for words in (["-b"], ["-j", "any_call,u"], ["-j", "k"], ["--call-graph", "lbr"]):
            out = tally("record", *words, "-e", "cpu-clock", "-o", d + "/f", "--", "true")
            same((words, out.returncode), (words, 1))
            has(out.stderr, "branch" if "k" not in words or watches_kernel() else "kernel.perf_event_paranoid")
        for words, part in ((["-j", "sideways"], "sideways"), (["-j", ""], "-j"), (["-b", "-j", "any"], "-b"),
                            (["-b", "--call-graph", "lbr"], "same branch records")):
            out = tally("record", *words, "-e", "cpu-clock", "-o", d + "/f", "--", "true")
            same((words, out.returncode), (words, 2))
            has(out.stderr, part)
        same(os.listdir(d), [])


@test
def rings():
    """-m: pages, or a size with its unit"""
    with scratch() as d:
        for text in ("1", "16", "64K", "1M"):
            same((text, record(d + "/f", "-m", text).returncode), (text, 0))
        for text in ("0", "x", "-1", "5Q", "1MM", "M"):
            out = tally("record", "-m", text, "-o", d + "/none", "--", "true")
            same((text, out.returncode), (text, 2))
            has(out.stderr, text)


@test
def no_stop():
    """--no-stop: a running process is attached to while it runs"""
    with scratch() as d:
        child = subprocess.Popen(["sleep", "60"])
        try:
            out = tally("record", "-p", child.pid, "--no-stop", "--duration", "0.1", "-o", d + "/f")
            same(out.returncode, 0, out.stderr)
            has(out.stderr, "ran while events were attached")
            out = tally("record", "-p", child.pid, "--duration", "0.1", "-o", d + "/f")
            same(out.returncode, 0, out.stderr)
            assert "attached" not in out.stderr, out.stderr
            out = tally("record", "--no-stop", "-o", d + "/f", "--", "true")
            same(out.returncode, 2)
            has(out.stderr, "--no-stop")
        finally:
            child.kill()
            child.wait()


# Loads the shortest BPF program, r0 = 0; exit, as a socket filter, and prints its tag.
LOAD_BPF = """
import ctypes, os, struct, sys
code = ctypes.create_string_buffer(struct.pack("<BBhi", 0xb7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0))
licence = ctypes.create_string_buffer(b"MIT")
load = ctypes.create_string_buffer(struct.pack("<IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(licence)), 120)
bpf = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
fd = ctypes.CDLL(None, use_errno=True).syscall(bpf, 5, load, len(load))
if fd < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
for line in open("/proc/self/fdinfo/%d" % fd):
    if line.startswith("prog_tag:"):
        print(line.split()[1], flush=True)
sys.stdin.read()
"""


@test
def bpf_programs_that_are_loaded():
    """one that is loaded while it records is told by name"""
    with scratch() as d:
        f = d + "/f"
        out = tally("record", "-a", "-o", f, "--", sys.executable, "-c", LOAD_BPF)
        if out.returncode or "paranoid" in out.stderr:
            skip(f"no BPF program can be loaded here: {out.stderr.strip()}")
        name = "bpf_prog_" + out.stdout.strip()
        dump = run("perf", "report", "-D", "-i", f).stdout
        found = [line for line in dump.splitlines() if name in line and "PERF_RECORD_KSYMBOL" in line]
        if "PERF_RECORD_KSYMBOL" not in dump and "PERF_RECORD_BPF_EVENT" in dump:
            skip("programs are not compiled here")
        same(len([line for line in found if "flags 0x0" in line]), 1, dump[-2000:])


@test
def bpf_programs_at_the_end():
    """what is known of those that are loaded stands in the file's header, as perf reads it"""
    with scratch() as d:
        f = d + "/f"
        with subprocess.Popen([sys.executable, "-c", LOAD_BPF], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as loader:
            tag = loader.stdout.readline().strip()
            if not tag:
                skip("no BPF program can be loaded here")
            same(tally("record", "-o", f, "--", "true").returncode, 0)
            loader.stdin.close()
        header = run("perf", "report", "--header-only", "-I", "-i", f).stdout
        same(len(re.findall(rf"^# bpf_prog_info \d+: bpf_prog_{tag}\S* addr 0x[0-9a-f]+ size \d+$", header, re.M)), 1,
             header)


sys.exit(main())
