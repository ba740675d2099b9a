#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record -z and -o -: perf(1) reads them. And what is left of a recorder that was killed. Speaks TAP."""
import json
import os
import random
import re
import signal
import subprocess
import time

from tapcli import TALLY, has, main, named, need, run, same, scratch, tally, test, watches_kernel

LOOP = ("sh", "-c", "echo from the command; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")


def perf(*words):
    env = dict(os.environ, LC_ALL="C", PAGER="cat", DEBUGINFOD_URLS="")
    done = run(need("perf"), *words, env=env)
    same((done.returncode, done.stderr), (0, ""), " ".join(words))
    return done.stdout


def samples(path):
    return len(perf("script", "-F", "time", "-i", path).splitlines())


def stream(path, *words):
    """A recording through standard output; what the command printed, and what the recorder said."""
    with open(path, "wb") as to:
        done = subprocess.run([TALLY, "record", *words, "-o", "-", "--", *LOOP], stdin=subprocess.DEVNULL, stdout=to,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    same(done.returncode, 0, done.stderr)
    return done.stderr


def said(text):
    return int(re.search(r"(\d+) samples", text).group(1))


@test
def a_compressed_recording_is_read_by_perf():
    with scratch() as folder:
        for level in ("-z", "-z19", "--compression-level=3"):
            path = os.path.join(folder, "perf.data")
            done = tally("record", level, "--call-graph", "fp", "-e", "cpu-clock", "-o", path, "--", *LOOP)
            same(done.returncode, 0, done.stderr)
            assert said(done.stderr) > 50
            same(len(re.findall(r"^\S", perf("script", "-F", "comm,time", "-i", path), flags=re.M)) or samples(path), said(done.stderr))
            has(perf("report", "--header-only", "-i", path), "# compressed : Zstd")
            has(perf("report", "--stdio", "-i", path), "sh")
            stats = perf("report", "--stats", "-i", path)
            has(stats, "COMPRESSED events")
            has(stats, "MMAP2 events")


@test
def wrong_levels_are_refused():
    for level in ("-z0", "-z23", "-zfast"):
        done = tally("record", level, "--", "true")
        same(done.returncode, 2)
        has(done.stderr, "1 to 22")


@test
def a_stream_is_read_by_perf():
    with scratch() as folder:
        path = os.path.join(folder, "stream")
        text = stream(path, "--call-graph", "fp", "-e", "cpu-clock,page-faults")
        has(text, "from the command")
        has(text, "in the stream")
        heads = perf("script", "-F", "comm,time,event", "-i", path)
        same(len(re.findall(r"(cpu-clock|page-faults)(:u)?:", heads)), said(text))
        assert re.search(rf"{named('page-faults')}:", heads)
        header = perf("report", "--header-only", "-i", path)
        has(header, f"# hostname : {os.uname().nodename}")
        has(header, "# cmdline : tally record")
        has(perf("report", "--stdio", "-i", path), "[k]" if watches_kernel() else "[.]")


@test
def a_stream_goes_through_a_pipe():
    for words in ([], ["-z"]):
        with subprocess.Popen([TALLY, "record", "-q", "-e", "cpu-clock", *words, "-o", "-", "--", *LOOP],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
            done = subprocess.run([need("perf"), "script", "-F", "comm,event", "-i", "-"], stdin=recorder.stdout,
                                  capture_output=True, text=True, timeout=60, check=False)
        same((done.returncode, done.stderr), (0, ""))
        assert len(re.findall(rf"sh +{named('cpu-clock')}:", done.stdout)) > 50


@test
def a_reader_that_leaves_ends_the_recording():
    with subprocess.Popen([TALLY, "record", "-e", "cpu-clock", "-o", "-", "--", "sleep", "30"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        recorder.stdout.close()
        has(recorder.stderr.read(), "Broken pipe")
        same(recorder.wait(30), 1)


@test
def groups_are_told():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        done = tally("record", "-e", "{cpu-clock,page-faults}", "-o", path, "--", *LOOP)
        same(done.returncode, 0, done.stderr)
        has(perf("report", "--header-only", "-i", path), "{" + named("cpu-clock") + "," + named("page-faults") + "}")


@test
def the_machine_is_described_as_perf_does():
    def description(path):
        lines = perf("report", "--header-only", "-I", "-i", path).splitlines()
        known = ("sibling", "node", "CPU ", "memory", "L1", "L2", "L3", "nrcpus", "cpudesc", "cpuid", "total mem", "arch", "pmu")
        lines = [re.sub(r"free = .*", "", line) for line in lines if any(k in line for k in known)]
        return [", ".join(sorted(line.split(": ", 1)[1].split(", "))) if "pmu mappings" in line else line for line in lines]

    with scratch() as folder:
        ours, theirs = (os.path.join(folder, n) for n in ("ours", "theirs"))
        same(tally("record", "-q", "-e", "cpu-clock", "-o", ours, "--", "true").returncode, 0)
        run(need("perf"), "record", "-q", "-e", "cpu-clock", "-o", theirs, "--", "true")
        want = [line for line in description(theirs) if "event :" not in line and "cmdline" not in line]
        assert len(want) > 10
        same([line for line in description(ours) if "event :" not in line and "cmdline" not in line], want)


SEED = int(os.environ.get("TALLY_SEED", random.randrange(1000000)))


def killed(path, words, moment):
    """Ends a recorder of a busy command without a warning, so many seconds after its file is there."""
    with subprocess.Popen([TALLY, "record", "-q", "-F", "9999", "-e", "cpu-clock", *words, "-o", path, "--", "sh", "-c",
                           "while :; do :; done"], stdin=subprocess.DEVNULL, start_new_session=True) as recorder:
        while not os.path.exists(path) and recorder.poll() is None:
            time.sleep(0.0001)
        time.sleep(moment)
        recorder.kill()
        os.killpg(recorder.pid, signal.SIGKILL)  # its command as well


def says_why(done, parts):
    """It worked, or says what is missing."""
    assert done.returncode in (0, 1), (done.args, done.returncode, done.stderr)
    text = done.stdout + done.stderr
    if done.returncode:
        assert any(part in text for part in parts), (done.args, text)


@test
def what_a_killed_recorder_leaves_can_be_read():
    """Also where it is killed before its first round, or while it describes what runs."""
    print(f"# TALLY_SEED={SEED}")
    chance = random.Random(SEED)
    moments = [0.6 + chance.random() / 2 for _ in range(6)] + [chance.random() ** 3 / 2 for _ in range(10)]
    with scratch() as folder:
        path, copy = (os.path.join(folder, n) for n in ("perf.data", "copy"))
        for i, moment in enumerate(moments):
            if os.path.exists(path):
                os.remove(path)
            killed(path, ["-z"] if i % 2 else ["--call-graph", "fp"] if i % 4 else [], moment)
            missing = ["its writer was killed", "was not finished by its writer", "is cut short", "no whole record",
                       "its writer may have ended before it wrote anything"]
            says_why(tally("data", "check", path), missing)
            says_why(tally("report", "-i", path), missing + ["no samples"])
            done = tally("data", "cut", "-o", copy, path)
            if i >= 6:
                says_why(done, missing)
                continue
            same(done.returncode, 0, done.stderr)
            info = json.loads(tally("data", "info", "--json", copy).stdout)
            assert info["records"].get("SAMPLE", 0) > 100 or info["records"].get("COMPRESSED", 0) > 0, info["records"]


if __name__ == "__main__":
    raise SystemExit(main())
