#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record: when events are on (-D, --control), and which part of the time is kept (--overwrite,
--switch-output). The program that is recorded says what it does when, by the clock of the samples."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

from tapcli import TALLY, TOUCH, has, main, named, need, run, same, scratch, tally, test

# Prints the time, touches fresh pages, one fault each, and prints the time again; for each line it gets.
WORKER = r"""
import mmap, sys, time
def work():
    block = mmap.mmap(-1, 4096 * 64, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(15)  # MADV_NOHUGEPAGE
    before = time.monotonic_ns()
    for i in range(64):
        block[i * 4096] = 1
    print(before, time.monotonic_ns(), flush=True)
for line in sys.stdin:
    work()
"""
PAGES = 64
FAULTS = ["-e", "page-faults", "-c", "1"]


def times(path):
    """The times of all samples, sorted, by our reader."""
    out = run(os.environ["DUMP_SAMPLES"], path)
    same(out.stderr, "")
    return sorted(int(line.split(" ")[1]) for line in out.stdout.splitlines())


def clean(path):
    """perf reads the file without a word, and as many samples as we do."""
    need("perf")
    for words in (["report", "--stdio"], ["script"]):
        got = run("perf", *words, "-i", path)
        same((words, got.returncode, [l for l in got.stderr.splitlines() if l.strip()]), (words, 0, []))
    stats = run("perf", "report", "--stats", "-i", path).stdout
    found = re.search(r"SAMPLE events:\s+(\d+)", stats)
    same(int(found[1]) if found else 0, len(times(path)))


class Recorded:
    """A worker under tally record, which can be told to work."""

    def __init__(self, path, *words, **more):
        self.child = subprocess.Popen([TALLY, "record", *FAULTS, "-o", path, *words, "--", "/usr/bin/env", "python3",
                                       "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, **more)

    def work(self):
        """Lets it work; answers from when to when it did."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return tuple(int(word) for word in self.child.stdout.readline().split())

    def end(self):
        """Lets it end; answers what was said."""
        self.child.stdin.close()
        said = self.child.stderr.read()
        same(self.child.wait(timeout=60), 0, f"the status ({said})")
        self.child.stdout.close()
        self.child.stderr.close()
        return said


def within(samples, span):
    return sum(span[0] <= t <= span[1] for t in samples)


def check_in(samples, span):
    assert within(samples, span) >= PAGES, f"{within(samples, span)} samples of {PAGES} faults"


def check_out(samples, span):
    same(within(samples, span), 0, "samples where there should be none: their number")


@test
def delay():
    """-D MS: no sample before that time, and names for what was loaded before it"""
    with scratch() as d:
        path = d + "/f"
        start = time.monotonic_ns()
        recorded = Recorded(path, "-D", "1500")
        early = recorded.work()
        while time.monotonic_ns() < start + 4 * 10**9:
            time.sleep(0.1)
        late = recorded.work()
        recorded.end()
        clean(path)
        samples = times(path)
        assert samples[0] >= start + 1500 * 10**6, f"{(samples[0] - start) / 1e9} s after the start"
        if early[1] < start + 1500 * 10**6:
            check_out(samples, early)
        check_in(samples, late)
        has(run("perf", "report", "--stdio", "--sort", "comm,dso", "-i", path).stdout, "python3")
        frames = run("perf", "script", "-F", "ip,dso", "-i", path).stdout
        assert frames.strip() and "[unknown]" not in frames, "an address without a mapping"


@test
def ranges():
    """-D A-B,C-D: samples in these times alone"""
    with scratch() as d:
        path = d + "/f"
        code = "import mmap,time\ne=time.time()+2.5\nwhile time.time()<e:\n m=mmap.mmap(-1,40960)\n m[0]=1\n m[8192]=1\n m.close()"
        start = time.monotonic_ns()
        out = tally("record", *FAULTS, "-D", "300-400,1500-1600", "-o", path, "--", "/usr/bin/env", "python3", "-c", code)
        same(out.returncode, 0)
        clean(path)
        # Switched late maybe, by much less than the 1.1 s between the ranges, and on never early.
        samples = times(path)
        assert samples[0] >= start + 300 * 10**6
        assert max(b - a for a, b in zip(samples, samples[1:])) > 100 * 10**6, "no hole"


@test
def control():
    """--control fd: enable, disable, enable NAME and stop, each answered by ack when it holds"""
    with scratch() as d:
        path = d + "/f"
        commands, acks = os.pipe(), os.pipe()
        recorded = Recorded(path, "-D", "-1", "--control", f"fd:{commands[0]},{acks[1]}",
                            pass_fds=(commands[0], acks[1]))

        def order(text):
            os.write(commands[1], text.encode() + b"\n")
            same(os.read(acks[0], 16), b"ack\n", f"the answer to {text}")

        order("ping")
        spans = [recorded.work()]
        for text in ("enable", "disable", "enable page-faults", "disable page-faults", "enable"):
            order(text)
            spans.append(recorded.work())
        os.write(commands[1], b"nonsense\nenable nothing\n")
        order("evlist")
        order("stop")
        said = recorded.child.stderr.read()
        recorded.child.wait(timeout=60)
        clean(path)
        samples = times(path)
        for i, span in enumerate(spans):
            (check_in if i % 2 else check_out)(samples, span)
        for part in ("no command 'nonsense'", "'nothing' is not recorded", "event page-faults"):
            has(said, part)
        for fd in (*commands, *acks):
            os.close(fd)


@test
def control_one_of_several():
    """--control: enable NAME enables that event alone"""
    with scratch() as d:
        path = d + "/f"
        commands, acks = os.pipe(), os.pipe()
        recorded = Recorded(path, "-e", "minor-faults", "-D", "-1", "--control", f"fd:{commands[0]},{acks[1]}",
                            pass_fds=(commands[0], acks[1]))
        os.write(commands[1], b"enable minor-faults\n")
        same(os.read(acks[0], 16), b"ack\n")
        recorded.work()
        recorded.end()
        clean(path)
        stats = run("perf", "report", "--stats", "-i", path).stdout
        assert re.search(rf"^{named('minor-faults')} stats:\n +SAMPLE", stats, re.M), stats
        assert not re.search(r"^page-faults(:u)? stats:\n +SAMPLE", stats, re.M), stats
        for fd in (*commands, *acks):
            os.close(fd)


@test
def control_fifo():
    """--control fifo: likewise, through files"""
    with scratch() as d:
        path = d + "/f"
        os.mkfifo(d + "/ctl")
        os.mkfifo(d + "/ack")
        recorded = Recorded(path, "-D", "-1", "--control", f"fifo:{d}/ctl,{d}/ack")
        before = recorded.work()
        with open(d + "/ctl", "w") as f:
            f.write("enable\n")
        with open(d + "/ack") as f:
            same(f.readline(), "ack\n")
        after = recorded.work()
        recorded.end()
        clean(path)
        check_out(times(path), before)
        check_in(times(path), after)


@test
def flight_recorder():
    """--overwrite: the newest samples are kept, the oldest are gone"""
    with scratch() as d:
        path = d + "/f"
        # On one CPU: what it did on another, to which it does not return, nothing would replace.
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cpus)})
        try:
            recorded = Recorded(path, "--overwrite", "-m", "4")
        finally:
            os.sched_setaffinity(0, cpus)
        first = recorded.work()
        for _ in range(100):
            last = recorded.work()
        recorded.end()
        clean(path)
        samples = times(path)
        check_out(samples, first)
        assert within(samples, last) > 0, "nothing of the last"
        # A ring of 16 KiB a CPU has room for so many samples of at least 56 bytes.
        assert len(samples) <= os.cpu_count() * 16384 // 56, len(samples)
        has(run("perf", "report", "--stdio", "--sort", "comm", "-i", path).stdout, "python3")


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@test
def snapshots():
    """--overwrite --switch-output: SIGUSR2 keeps what came since the last one, in a file of its own"""
    with scratch() as d:
        path = d + "/f"
        recorded = Recorded(path, "--overwrite", "--switch-output")
        spans = []
        for i in range(3):
            spans.append(recorded.work())
            if i < 2:
                recorded.child.send_signal(signal.SIGUSR2)
                wait_for(lambda: len(glob.glob(path + ".*")) == i + 1 and os.path.exists(path))
                time.sleep(0.02)
        said = recorded.end()
        files = sorted(glob.glob(path + ".*"))
        same(len(files), 3, "the number of files")
        assert not os.path.exists(path), "the last has no name of its own"
        has(said, files[2])
        for i, file in enumerate(files):
            assert re.fullmatch(r"f\.\d{16}", os.path.basename(file)), file
            clean(file)
            for j, span in enumerate(spans):
                (check_in if i == j else check_out)(times(file), span)
            has(run("perf", "report", "--stdio", "--sort", "comm", "-i", file).stdout, "python3")


@test
def further_files():
    """--switch-output=SIZE and --switch-max-files: no sample is in two files or in none, the newest files stay"""
    with scratch() as d:
        path = d + "/f"
        out = tally("record", *FAULTS, "--switch-output=100K", "-o", path, "--", TOUCH, "20000")
        same(out.returncode, 0)
        files = sorted(glob.glob(path + ".*"))
        assert len(files) >= 2, files
        samples = []
        for file in files:
            if times(file):  # of a file without samples perf says so
                clean(file)
            samples += times(file)
        same(len(samples), len(set(samples)), "the number of times")
        assert len(samples) >= 20000, len(samples)
        same(len(samples), int(re.search(r"(\d+) samples", out.stderr)[1]))
        for file in files:
            os.unlink(file)
        tally("record", "-F", "99", "--switch-output=1s", "--switch-max-files", "2", "-o", path, "--", "sleep", "4.5")
        same(len(glob.glob(path + ".*")), 2, "the number of files")
        same(sorted(os.listdir(d)), sorted(os.path.basename(f) for f in glob.glob(path + ".*")))


@test
def unasked_signal():
    """SIGUSR2 without --switch-output acts as it does on any program"""
    with scratch() as d:
        recorded = Recorded(d + "/f")
        recorded.work()
        recorded.child.send_signal(signal.SIGUSR2)
        recorded.child.wait(timeout=60)
        same(recorded.child.returncode, -signal.SIGUSR2)
        for stream in (recorded.child.stdin, recorded.child.stdout, recorded.child.stderr):
            stream.close()


@test
def mistakes():
    """mistakes are told in words"""
    with scratch() as d:
        for words, part in [
            (("-D", "x"), "-D"),
            (("-D", "-2"), "-D"),
            (("-D", "20-10"), "20-10"),
            (("-D", "-1"), "--control"),
            (("--control", "x"), "--control"),
            (("--control", "fd:99"), "fd:99"),
            (("--control", "fifo:" + d + "/none"), "/none"),
            (("--switch-output=5X",), "5X"),
            (("--switch-max-files", "2"), "--switch-output"),
        ]:
            out = tally("record", "-o", d + "/f", *words, "--", "true")
            same((words, out.returncode), (words, 2))
            has(out.stderr, part)
        same(os.listdir(d), [])


sys.exit(main())
