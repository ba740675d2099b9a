#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of all of perf's forms, read by tally and by perf: the same samples with the same names. Speaks TAP."""
import os
import re
import subprocess
import sys

from handmade import DEFER_CALLCHAIN, FLAGS, KERNEL, Program, Recording
from tapcli import TALLY, has, main, need, run, same, scratch, tally, test, watches_cpus, watches_kernel

BUSY = ["python3", "-c", "sum(i * i for i in range(1000000))"]

# On all CPUs where that is allowed.
EVERYWHERE = ["-a"] if watches_cpus() else []


def record(folder, *options):
    """Records a busy program; the path."""
    need("perf")
    path = os.path.join(folder, "recording")
    done = run("perf", "record", "-q", "-e", "cpu-clock", "-o", path, *options, "--", *BUSY, cwd=folder)
    same(done.returncode, 0, done.stderr)
    return path


def samples_of_perf(path):
    text = run("perf", "report", "--stats", "-i", path).stdout
    return int(re.search(r"SAMPLE events: +(\d+)", text).group(1))


def names(text):
    """The lines of a report: share, command and object."""
    lines = [line.split() for line in text.splitlines() if re.match(r" +[\d.]+%", line)]
    return sorted((words[0], *[w for w in words if not w.endswith("%")][:2]) for words in lines)


def shares_of_perf(path):
    """Per command and object: in percent. perf sorts compressed recordings by time too."""
    return names(run("perf", "report", "--stdio", "-g", "none", "-s", "comm,dso", "-i", path).stdout)


def report(path, **more):
    done = tally("report", "-s", "comm,dso", "-i", path, **more)
    same(done.returncode, 0, done.stderr)
    return done


def check_same(path):
    done = report(path)
    has(done.stdout, f"Samples: {samples_of_perf(path)} of event")
    same(names(done.stdout), shares_of_perf(path))
    same(done.stderr, "")


@test
def compressed_recordings():
    with scratch() as folder:
        check_same(record(folder, "-z"))
    with scratch() as folder:
        check_same(record(folder, "-z22"))


@test
def recordings_of_many_threads():
    with scratch() as folder:
        check_same(record(folder, "--threads"))
    with scratch() as folder:
        check_same(record(folder, "--threads", "-z"))


@test
def what_comes_through_a_pipe():
    need("perf")
    with scratch() as folder:
        words = ["perf", "record", "-q", "-e", "cpu-clock", "-o", "-", "--", *BUSY]
        recorder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    stdin=subprocess.DEVNULL, cwd=folder)
        saved = os.path.join(folder, "saved")
        with open(saved, "wb") as out:
            tee = subprocess.Popen(["tee", saved], stdin=recorder.stdout, stdout=subprocess.PIPE)
            live = subprocess.run([TALLY, "report", "-s", "comm,dso", "-i", "-"], stdin=tee.stdout,
                                  capture_output=True, text=True, timeout=60)
            del out
        tee.stdout.close()
        tee.wait()
        recorder.wait()
        same((live.returncode, live.stderr), (0, ""))
        check_same(saved)
        same(names(live.stdout), names(report(saved).stdout))


@test
def a_file_through_a_pipe_and_a_fifo():
    with scratch() as folder:
        path = record(folder, "-z")
        want = names(report(path).stdout)
        with open(path, "rb") as file:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            got = subprocess.run([TALLY, "report", "-s", "comm,dso", "-i", "-"], stdin=cat.stdout,
                                 capture_output=True, text=True, timeout=60)
        cat.wait()
        same(got.stderr, "")
        same(names(got.stdout), want)
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        feeder = subprocess.Popen(["dd", f"if={path}", f"of={fifo}", "status=none"])
        same(names(report(fifo).stdout), want)
        same(feeder.wait(), 0)


@test
def mappings_behind_the_samples():
    """perf resolves none of these addresses; two passes do, and who has one only is told. Small rings make rounds,
    which let samples go before the recording ends."""
    with scratch() as folder:
        path = record(folder, "--tail-synthesize", *EVERYWHERE)
        text = report(path).stdout
        has(text, "kernel" if watches_kernel() else "python3")
        piped = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "--tail-synthesize", *EVERYWHERE, "-m", "4",
                                  "-o", "-", "--", *BUSY], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder)
        got = subprocess.run([TALLY, "report", "-i", "-"], stdin=piped.stdout, capture_output=True, text=True,
                             timeout=60)
        piped.stdout.close()
        piped.wait()
        same(got.returncode, 0)
        has(got.stderr, "cannot be read twice")


@test
def deferred_callchains_through_a_pipe():
    """They come behind their samples, some of which never get theirs; from a file that can be read twice as well."""
    program = Program(TALLY)
    with scratch() as folder:
        r = Recording(flags=FLAGS | DEFER_CALLCHAIN)
        r.comm(7, 7, "work")
        r.map(7, program)
        outer, middle, inner = (program.at(name) for name in program.names(3))
        kernel = 0xFFFFFFFF81000010
        for i in range(3):
            r.sample(7, 7, 100 + i, 10, [kernel], misc=KERNEL, cookie=42)
        r.sample(7, 8, 110, 1, [kernel], misc=KERNEL, cookie=42)  # another thread's, by the same cookie
        r.sample(7, 7, 120, 100, [inner, outer])
        r.deferred(7, 7, 130, 42, [inner, outer])
        r.sample(7, 7, 140, 1000, [kernel], misc=KERNEL, cookie=43)  # of which the part was lost
        r.deferred(7, 8, 150, 42, [middle, outer])
        r.write(os.path.join(folder, "file"))
        r.write_stream(os.path.join(folder, "stream"))
        words = [TALLY, "flame", "--folded", "-i"]
        whole = run(*words, os.path.join(folder, "file"))
        same((whole.returncode, len(whole.stdout.splitlines())), (0, 4))
        same(sum(int(line.split()[-1]) for line in whole.stdout.splitlines()), 1131)
        assert any(line.endswith(" 30") and program.names(3)[2] in line for line in whole.stdout.splitlines()), whole.stdout
        with open(os.path.join(folder, "stream"), "rb") as stream:
            cat = subprocess.Popen(["cat"], stdin=stream, stdout=subprocess.PIPE)
            piped = subprocess.run([*words, "-"], stdin=cat.stdout, capture_output=True, text=True, timeout=60)
        cat.wait()
        same(piped.returncode, 0)
        same(sorted(piped.stdout.splitlines()), sorted(whole.stdout.splitlines()))


if __name__ == "__main__":
    sys.exit(main())
