#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record: the files that it makes, with perf as the referee, and what it does when things go wrong."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from tapcli import TALLY, has, main, need, run, same, scratch, skip, tally, test, watches_cpus, watches_kernel

SPIN = [sys.executable, "-c", "import time\ne=time.time()+0.6\nwhile time.time()<e: sum(range(500))"]

# The whole machine, or who may not watch that: this process.
EVERYWHERE = ["-a"] if watches_cpus() else ["-p", str(os.getpid())]


def dump(path):
    """Our reader's samples: (tid, time, [ip, ...]), sorted."""
    out = run(os.environ["DUMP_SAMPLES"], path)
    samples = []
    for line in out.stdout.splitlines():
        tid, when, chain = line.split(" ")
        samples.append((int(tid), int(when), [int(ip, 16) for ip in chain.split(",") if ip]))
    return out, sorted(samples)


def perf_dump(path):
    """perf's view of the same, from its raw dump, which has absolute addresses."""
    out = run("perf", "report", "-D", "-i", path)
    samples, current = [], None
    head = re.compile(r"(?:\d+ )?(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): "
                      r"(-?\d+)/(-?\d+): (0x[0-9a-f]+)")
    for line in out.stdout.splitlines():
        found = head.match(line)
        if found:
            current = (int(found[3]), int(found[1]), [])
            samples.append((current, int(found[4], 16)))
        elif current is not None:
            frame = re.match(r"\.\.\.\.\.\s+\d+: ([0-9a-f]{16})$", line)
            if frame and int(frame[1], 16) < 2**64 - 4095:
                current[2].append(int(frame[1], 16))
            elif line.startswith((" ... thread:", "0x")) or not line:
                current = None
    return sorted((tid, when, chain or [ip]) for (tid, when, chain), ip in samples)


def wait_for(what, seconds=60):
    """Waits until what() is true, whatever else the machine is doing."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def quiet(out):
    return [l for l in out.stderr.splitlines() if l.strip()]


@test
def perf_accepts():
    """perf reads a recording without a word, and counts the same samples"""
    need("perf")
    with scratch() as d:
        path = d + "/perf.data"
        out = tally("record", "--call-graph", "fp", "-F", "999", "-o", path, "--", *SPIN)
        same(out.returncode, 0)
        said = int(re.search(r"([\d]+) samples", out.stderr)[1])
        for words in (["report", "--stdio"], ["script"], ["report", "--stats"], ["report", "--header-only"]):
            got = run("perf", *words, "-i", path)
            same(got.returncode, 0)
            same(quiet(got), [])
        stats = run("perf", "report", "--stats", "-i", path).stdout
        same(int(re.search(r"SAMPLE events:\s+(\d+)", stats)[1]), said)
        header = run("perf", "report", "--header-only", "-i", path).stdout
        for what in ("hostname", "os release", "arch", "nrcpus online", "cmdline"):
            has(header, "# " + what)


@test
def build_ids():
    """the build-ids of the kernel and of what ran are in the file, and perf reads them"""
    need("perf")
    sleep = os.path.realpath(need("sleep"))
    with scratch() as d:
        tally("record", "-o", d + "/perf.data", "--", sleep, "0.1")
        ids = dict(reversed(line.split(" ", 1)) for line in
                   run("perf", "buildid-list", "-i", d + "/perf.data").stdout.splitlines())
        notes = run(need("readelf"), "-nW", sleep).stdout
        same(ids.get(sleep), re.search(r"Build ID: ([0-9a-f]+)", notes)[1])
        assert "[kernel.kallsyms]" in ids, ids


@test
def perf_beside():
    """perf that records at the same time is not disturbed"""
    need("perf")
    with scratch() as d:
        child = subprocess.Popen([TALLY, "record", "-q", *EVERYWHERE, "-o", d + "/ours"])
        wait_for(lambda: os.path.exists(d + "/ours"))
        done = run("perf", "record", "-q", "-o", d + "/theirs", "--", *SPIN)
        child.send_signal(signal.SIGINT)
        child.wait()
        same(done.returncode, 0, f"perf's status ({done.stderr})")
        has(run("perf", "report", "--stdio", "-i", d + "/theirs").stdout, "Samples:")


@test
def samples_agree():
    """every sample is the same to perf and to tally: tid, time, ip and callchain"""
    need("perf")
    with scratch() as d:
        path = d + "/perf.data"
        tally("record", "--call-graph", "fp", "-F", "999", "-o", path, "--", *SPIN)
        out, ours = dump(path)
        theirs = perf_dump(path)
        same(out.stderr, "")
        assert len(ours) > 50, f"only {len(ours)} samples"
        # The kernel's code has frame pointers; other programs may have none.
        deep = 3 if watches_kernel() else 1
        assert any(len(chain) > deep for _, _, chain in ours), "no callchains"
        same(len(ours), len(theirs))
        same(next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), None), None)


@test
def clock_is_monotonic():
    """the samples lie in the time that the command ran, by CLOCK_MONOTONIC"""
    with scratch() as d:
        path = d + "/perf.data"
        before = time.monotonic_ns()
        tally("record", "-o", path, "--", *SPIN)
        after = time.monotonic_ns()
        _, samples = dump(path)
        assert samples, "no samples"
        assert all(before <= when <= after for _, when, _ in samples), "a time outside"


@test
def statuses():
    """the command's status is passed on, and 127 or 126 when it cannot be run"""
    with scratch() as d:
        path = d + "/perf.data"
        same(tally("record", "-o", path, "--", "sh", "-c", "exit 7").returncode, 7)
        same(tally("record", "-o", path, "--", "sh", "-c", "kill -9 $$").returncode, 137)
        for _ in range(20):  # one that ends by itself is not ended by us
            out = tally("record", "-o", path, "--", "true")
            assert "SIGTERM" not in out.stderr, out.stderr
            same(out.returncode, 0)
        out = tally("record", "-o", d + "/none.data", "--", d + "/no-such-program")
        same(out.returncode, 127)
        has(out.stderr, "no-such-program")
        assert not os.path.exists(d + "/none.data"), "a file was left"
        same(tally("record", "-o", d + "/none.data", "--", d).returncode, 126)


@test
def older_file():
    """an older file is kept as .old, and comes back when nothing was recorded"""
    with scratch() as d:
        path = d + "/perf.data"
        with open(path, "w") as f:
            f.write("older")
        tally("record", "-o", path, "--", d + "/no-such-program")
        same(open(path).read(), "older")
        assert not os.path.exists(path + ".old"), ".old remains"
        tally("record", "-o", path, "--", "true")
        same(open(path + ".old").read(), "older")
        same(os.stat(path).st_mode & 0o777, 0o600)


@test
def killed():
    """a killed recorder leaves a file that can be read up to its last round"""
    with scratch() as d:
        path = d + "/perf.data"
        child = subprocess.Popen([TALLY, "record", "--call-graph", "fp", "-F", "999", "-o", path, "--", *SPIN[:2],
                                  "while True: sum(range(500))"],
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for(lambda: os.path.exists(path) and len(dump(path)[1]) > 200)
        child.kill()
        child.wait()
        os.killpg(child.pid, signal.SIGKILL)  # the command outlives its recorder
        out, samples = dump(path)
        same(out.returncode, 0)
        assert len(samples) > 200, f"only {len(samples)} samples"
        if shutil.which("perf"):
            stats = run("perf", "report", "--stats", "-i", path).stdout
            found = re.search(r"SAMPLE events:\s+(\d+)", stats)
            assert found and int(found[1]) > 200, "perf reads " + (found[1] if found else "nothing")


@test
def interrupted():
    """an interrupt ends a recording cleanly and the command with it"""
    with scratch() as d:
        path = d + "/perf.data"
        child = subprocess.Popen([TALLY, "record", "-o", path, "--", "sleep", "100"],
                                 stderr=subprocess.PIPE, text=True)
        wait_for(lambda: os.path.exists(path))
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=20)
        has(err, " lost")
        out, _ = dump(path)
        same(out.stderr, "")


@test
def attached():
    """a running process is followed into all its threads and new children"""
    code = ("import threading,subprocess,sys,time\n"
            "def spin():\n"
            "    e=time.time()+2\n"
            "    while time.time()<e: sum(range(500))\n"
            "t=threading.Thread(target=spin); t.start(); print('up', flush=True)\n"
            "time.sleep(0.5)\n"
            "subprocess.run([sys.executable,'-c','import time\\ne=time.time()+0.5\\nwhile time.time()<e: sum(range(500))'])\n"
            "t.join()")
    with scratch() as d:
        path = d + "/perf.data"
        target = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        target.stdout.readline()
        out = tally("record", "-F", "999", "-p", str(target.pid), "-o", path)
        target.wait()
        same(out.returncode, 0)
        _, samples = dump(path)
        tids = {tid for tid, _, _ in samples}
        assert len(tids - {target.pid}) >= 2, f"threads and children seen: {tids}, leader {target.pid}"
        if shutil.which("perf"):
            comms = run("perf", "script", "-F", "comm,sym", "-i", path).stdout
            assert "python" in comms, "perf knows no names"


@test
def limits():
    """--duration and --max-size end a recording"""
    with scratch() as d:
        path = d + "/perf.data"
        out = tally("record", *EVERYWHERE, "--duration", "0.5", "-o", path)
        same(out.returncode, 0)
        out, _ = dump(path)
        same(out.stderr, "")
        out = tally("record", "--call-graph", "fp", "-F", "2000", "--max-size", "20K", "-o", path, "--", *SPIN[:2],
                    "while True: sum(range(500))", timeout=60)
        assert os.path.getsize(path) < 3_000_000, f"{os.path.getsize(path)} bytes"
        has(out.stderr, "SIGTERM")


@test
def clamped():
    """a period that would starve a CPU is clamped, and that is said"""
    with scratch() as d:
        out = tally("record", "-e", "cpu-clock", "-c", "10000", "-o", d + "/perf.data", "--", *SPIN)
        same(out.returncode, 0)
        has(out.stderr, "tally record:")
        assert re.search(r"40,?000|25,?000", out.stderr), "not said: " + out.stderr


@test
def mistakes():
    """mistakes are told in one line that says what to do"""
    with scratch() as d:
        path = d + "/perf.data"
        for words, status, part in [
            ((), 2, "nothing to record"),
            (("-F", "0", "--", "true"), 2, "-F"),
            (("-F", "99", "-c", "1", "--", "true"), 2, "exclude"),
            (("-p", "1", "-a"), 2, "combined"),
            (("-p", "xyz"), 2, "xyz"),
            (("-e", "cycels", "--", "true"), 2, "cycles"),
            (("-p", "4194303"), 1, "4194303"),
            (("--nonsense",), 2, "nonsense"),
            (("-o", d + "/no/such/folder/x", "--", "true"), 1, "/no/such/folder/x"),
        ]:
            out = tally("record", *(() if "-o" in words else ("-o", path)), *words)
            same((words, out.returncode), (words, status))
            has(out.stderr, part)
            assert out.stderr.startswith("tally record: "), "begins otherwise: " + out.stderr
        same(os.listdir(d), [])


@test
def sudo_owner():
    """the file belongs to whom sudo was called by"""
    if os.geteuid() != 0:
        skip("not root")
    with scratch() as d:
        path = d + "/perf.data"
        env = dict(os.environ, SUDO_UID="12345", SUDO_GID="23456")
        run(TALLY, "record", "-o", path, "--", "true", env=env)
        same((os.stat(path).st_uid, os.stat(path).st_gid), (12345, 23456))


@test
def letters():
    """letters have perf's meaning or do not exist"""
    need("perf")
    ours = dict(re.findall(r"^  -(\w), --([\w-]+)", tally("record", "-h").stdout, re.M))
    text = run("perf", "record", "-h")
    theirs = dict(re.findall(r"^    -(\w), --([\w-]+)", text.stdout + text.stderr, re.M))
    ours.pop("h")
    for letter, name in ours.items():
        same((letter, name), (letter, theirs.get(letter)))


@test
def low_rate():
    """nothing is lost and rings are drained in time at a low rate"""
    with scratch() as d:
        path = d + "/perf.data"
        child = subprocess.Popen([TALLY, "record", "-F", "99", "-o", path, "--", *SPIN[:2],
                                  "while True: sum(range(500))"], stderr=subprocess.PIPE, text=True)
        # A quarter of a ring is 128 KiB and far away at 99 Hz: what is in the file came by the clock.
        wait_for(lambda: os.path.exists(path) and len(dump(path)[1]) >= 20)
        assert os.path.getsize(path) < 128 * 1024, os.path.getsize(path)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)


sys.exit(main())
