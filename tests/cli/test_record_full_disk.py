#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record on a disk that becomes full: what it says, and what is in the file that is left. The disks are small tmpfs
of the test's own. Speaks TAP."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess

from tapcli import TALLY, TOUCH, has, main, need, run, same, scratch, skip, tally, test

SEED = int(os.environ.get("TALLY_SEED", random.randrange(1000000)))
CHANCE = random.Random(SEED)
PAGE = 4096
LARGEST_RECORD = 65536
EVENTS = ("-e", "page-faults", "-c", "1", "-d")
TRACEFS = ("unshare", "-m", "sh", "-c", 'mount -t tracefs t /sys/kernel/tracing || exit 99; exec "$@"', "sh")
ENDLESS = ("sh", "-c", f"while :; do {TOUCH} 500; done")
WITHIN = "compressed records that end within one"  # where there was room for a part of the first round only
FULL = "No space left on device"


@contextlib.contextmanager
def disk(size):
    """A folder with room for so many bytes."""
    with scratch() as folder:
        done = run("mount", "-t", "tmpfs", "-o", f"size={size}", "tally-test", folder)
        if done.returncode:
            skip("no tmpfs can be mounted: " + done.stderr.strip())
        try:
            yield folder
        finally:
            same(run("umount", folder).returncode, 0, "umount's status")


def some_sizes(count, least, most):
    return [CHANCE.randrange(least, most) // PAGE * PAGE for _ in range(count)]


def fill(path, *words, to=None, front=()):
    """Records until there is no room; what the recorder said."""
    place = ("-o", "-") if to else ("-o", path)
    with subprocess.Popen([*front, TALLY, "record", *EVENTS, *words, *place, "--", *ENDLESS],
                          stdin=subprocess.DEVNULL, stdout=to or subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as recorder:
        try:
            _, said = recorder.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(recorder.pid, signal.SIGKILL)  # the command's last child
    if recorder.returncode == 99:
        skip("tracefs cannot be mounted: " + said.strip())
    same(recorder.returncode, 1, said)
    has(said, FULL)
    has(said, "make room")
    return said


def info(path):
    done = tally("data", "info", "--json", path)
    same(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)["records"]


def perf_finds(path, samples):
    if not shutil.which("perf"):
        return
    env = dict(os.environ, LC_ALL="C", PAGER="cat", DEBUGINFOD_URLS="")
    done = run("perf", "report", "--stats", "-i", path, env=env)
    same((done.returncode, done.stderr), (0, ""))
    same(int(re.search(r"SAMPLE events: +(\d+)", done.stdout).group(1)), samples, "perf's number of samples")


def has_features(path):
    return "no feature HOSTNAME" not in tally("data", "check", path).stdout


def is_whole(path, perf=True):
    """Ours and perf read it to its end, of a compressed one to its last slice; how many samples there are."""
    done = tally("data", "check", "-q", path)
    if WITHIN not in done.stdout:
        same((done.returncode, done.stderr), (0, ""), done.stdout)
    samples = info(path).get("SAMPLE", 0)
    done = tally("report", "-i", path)
    same(done.returncode, 0 if samples else 1, done.stderr)
    if perf:
        perf_finds(path, samples)
    return samples


def fills_it(size, *words):
    """But for the room of the features, for which it may go back a little."""
    slack = LARGEST_RECORD if "dwarf" in words else PAGE
    slack += 0 if size <= 4 * PAGE else 4 * PAGE + size // 4
    with disk(size) as folder:
        path = os.path.join(folder, "perf.data")
        said = fill(path, *words)
        written = os.path.getsize(path)
        print(f"# {' '.join(words)} {size}: {written}")
        has(said, f"{path}: {FULL}")
        assert size - written < slack, f"{written} bytes of {size}"
        assert is_whole(path) > 0


@test
def all_records_that_had_room_are_there():
    print(f"# TALLY_SEED={SEED}")
    for size in (2 * PAGE, *some_sizes(3, 16384, 700000)):
        fills_it(size)


@test
def callchains_and_copies_of_stacks():
    for size in some_sizes(2, 32768, 700000):
        fills_it(size, "--call-graph", "fp")
    fills_it(some_sizes(1, 200000, 2000000)[0], "--call-graph", "dwarf")


@test
def perf_names_tracepoints():
    """It refuses recordings of them without the features, which are written last."""
    if os.geteuid() != 0:
        skip("not root")
    for size in some_sizes(3, 100000, 400000):
        with disk(size) as folder:
            path = os.path.join(folder, "perf.data")
            said = fill(path, "-e", "sched:sched_switch", front=TRACEFS)
            has(said, FULL)
            print(f"# tracepoints {size}: {os.path.getsize(path)}, {'with' if has_features(path) else 'without'} features")
            assert is_whole(path, perf=has_features(path)) > 0


@test
def compressed_rounds_stay():
    for size in (PAGE, *some_sizes(4, 65536, 500000)):
        with disk(size) as folder:
            path = os.path.join(folder, "perf.data")
            fill(path, "-z")
            print(f"# -z {size}: {os.path.getsize(path)}, {'with' if has_features(path) else 'without'} features")
            if not info(path):  # no round had room
                done = tally("data", "check", path)
                same(done.returncode, 1)
                has(done.stdout, "no size")
                same(tally("report", "-i", path).returncode, 1)
            else:  # perf unpacks by what a feature says
                assert is_whole(path, perf=has_features(path)) > 0


@test
def no_fault_is_missing_before_the_last():
    """A program touches page after page, and rings have room for all of them: so have the samples no gap. On one CPU:
    of the last round, the rings of some may not be there."""
    cpu = min(os.sched_getaffinity(0))
    for size in some_sizes(3, 65536, 150000):
        with disk(size) as folder:
            path = os.path.join(folder, "perf.data")
            done = tally("record", *EVENTS, "-o", path, "--", need("taskset"), "-c", cpu, TOUCH, 4000)
            same(done.returncode, 1, done.stderr)
            has(done.stderr, FULL)
            same(info(path).get("LOST", 0), 0)
            dump = run(os.environ["DUMP_SAMPLES"], "-x", path)
            same(dump.stderr, "")
            pages = [int(re.search(r"\baddr=([0-9a-f]+)", line).group(1), 16) // PAGE for line in dump.stdout.splitlines()]
            run_length = 1
            while run_length < len(pages) and pages[-run_length - 1] + 1 == pages[-run_length]:
                run_length += 1
            assert 500 < run_length < len(pages), f"the last {run_length} of {len(pages)} are without a gap"


@test
def a_stream_into_a_full_disk():
    for words in ([], ["-z"]):
        size = some_sizes(1, 65536, 300000)[0]
        with disk(size) as folder:
            path = os.path.join(folder, "stream")
            with open(path, "wb") as to:
                fill(path, *words, to=to)
            done = tally("data", "check", path)
            assert done.returncode == 0 or (done.returncode == 1 and "fault" in done.stdout), done
            done = tally("report", "-i", path)
            same(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
