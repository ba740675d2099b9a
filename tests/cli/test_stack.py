#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stack: where threads are, with eu-stack as the referee where there is one."""
import json
import os
import pathlib
import subprocess
import sys
import time

from stacks import eu_stack, same_frames
from tapcli import has, main, need, same, scratch, skip, tally, test

# Two threads that wait, each for ever in a call of its own.
WAITING = """
import threading, time, os
def sleeper():
    while True: time.sleep(1000)
threading.Thread(target=sleeper, daemon=True).start()
print("ready", flush=True)
os.read(0, 1)
"""


class Waiting:
    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.wait_until_still()
        return self.process

    def wait_until_still(self):
        """Until both threads are in their calls."""
        for _ in range(500):
            states = [pathlib.Path(f"/proc/{self.process.pid}/task/{tid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                      for tid in os.listdir(f"/proc/{self.process.pid}/task")]
            if states == ["S", "S"]:
                return
            time.sleep(0.01)
        skip("the threads do not come to rest")

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def stack(*words):
    done = tally("stack", *words)
    if done.returncode and "ptrace" in done.stderr:
        skip(f"ptrace is refused here: {done.stderr.strip()}")
    same(done.returncode, 0, f"the status ({done.stderr})")
    return done.stdout


def threads(*words):
    return {t["tid"]: t for t in map(json.loads, stack("--json", *words).splitlines())}


@test
def all_threads_are_shown_to_their_start():
    with Waiting() as process:
        found = threads("-p", process.pid)
        same(sorted(found), sorted(map(int, os.listdir(f"/proc/{process.pid}/task"))), "the threads")
        for tid, thread in found.items():
            same(thread["end"], "whole", f"the end of {tid}'s stack")
            same(thread["trouble"], None, "its trouble")
            names = [f["function"] for f in thread["frames"]]
            start = "_start" if tid == process.pid else "clone"
            assert names[-1] and start in names[-1], names
        leader = [f["function"] or "" for f in found[process.pid]["frames"]]
        assert any("read" in name for name in leader[:2]), leader


@test
def one_thread_alone():
    with Waiting() as process:
        other = next(t for t in map(int, os.listdir(f"/proc/{process.pid}/task")) if t != process.pid)
        same(list(threads("-t", other)), [other], "the threads")
        has(stack("-t", other), f"TID {other} ")


@test
def frames_are_those_of_eu_stack():
    with Waiting() as process:
        theirs, why = eu_stack("-p", process.pid)
        if not theirs:
            skip(f"eu-stack shows nothing: {why}")
        ours = threads("-p", process.pid)
        for tid, addresses in theirs.items():
            same_frames(ours[tid], addresses)


def count_in(path):
    """For a moment the file is empty, before what is written replaces what was there."""
    for _ in range(500):
        text = path.read_text()
        if text:
            return int(text)
        time.sleep(0.01)
    raise AssertionError("nothing is written")


@test
def the_process_goes_on():
    """A loop that counts gets further after it was looked at, and keeps its job control."""
    with scratch() as folder:
        path = pathlib.Path(folder) / "count"
        loop = subprocess.Popen([sys.executable, "-c", f"""
import time
i = 0
while True:
    i += 1
    open({str(path)!r}, "w").write(str(i))
    time.sleep(0.001)
"""])
        try:
            while not path.exists():
                time.sleep(0.01)
            for _ in range(20):
                stack("-p", loop.pid)
            before = count_in(path)
            for _ in range(500):
                if count_in(path) > before:
                    break
                time.sleep(0.01)
            assert count_in(path) > before, "it stands still"
            status = pathlib.Path(f"/proc/{loop.pid}/status").read_text()
            has(status, "TracerPid:\t0")
        finally:
            loop.kill()
            loop.wait()


@test
def who_is_not_there_and_what_makes_no_sense():
    for words, status, said in ((("-p", "0"), 2, "no number of a process"), ((), 2, "one process"),
                                (("-p", "1", "-t", "1"), 2, "one process"), (("-p", "x"), 2, "no number"),
                                (("-p", "2147483646"), 1, "cannot be read"), (("-t", "2147483646"), 1, "no thread")):
        done = tally("stack", *words)
        same(done.returncode, status, f"the status of {words}")
        has(done.stderr, said)
        same(done.stdout, "", "what is printed")


@test
def what_can_never_be_traced_is_told():
    ended = subprocess.Popen(["true"])
    try:
        status = pathlib.Path(f"/proc/{ended.pid}/status")
        for _ in range(500):
            if "State:\tZ" in status.read_text():
                break
            time.sleep(0.01)
        done = tally("stack", "-p", ended.pid)
        same((done.returncode, done.stdout), (1, ""), "the status and what is printed")
        has(done.stderr, "has ended")
    finally:
        ended.wait()
    kernel = [p for p in (2, 3, 4) if pathlib.Path(f"/proc/{p}/stat").exists() and
              int(pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[6]) & 0x200000]
    for pid in kernel:
        has(tally("stack", "-p", pid).stderr, "thread of the kernel")


@test
def few_frames_when_few_are_asked_for():
    with Waiting() as process:
        thread = threads("-p", process.pid, "--max-stack", "2")[process.pid]
        same((len(thread["frames"]), thread["end"]), (2, "full"), "frames and the end")
        has(thread["trouble"], "deeper than 2 frames")


@test
def a_process_that_a_debugger_has_is_refused():
    need("gdb")
    with Waiting() as process:
        debugger = subprocess.Popen(["gdb", "-q", "-nx", "-p", str(process.pid)], stdin=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status")
            for _ in range(500):
                if "TracerPid:\t0" not in status.read_text():
                    break
                time.sleep(0.01)
            else:
                skip("gdb does not attach here")
            done = tally("stack", "-p", process.pid)
            same(done.returncode, 1, "the status")
            has(done.stderr, "a debugger has it")
        finally:
            debugger.kill()
            debugger.wait()


if __name__ == "__main__":
    sys.exit(main())
