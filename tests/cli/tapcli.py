# SPDX-License-Identifier: MIT
"""What the tests of commands share: running them, and TAP. A test is a function marked @test; its name is
the sentence. It fails by an exception, usually of `assert`, and is skipped by skip("reason")."""
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

TALLY = os.environ.get("TALLY", "tally")
TOUCH = os.environ.get("TOUCH", "touch-is-not-built")
_tests = []


class Skip(Exception):
    pass


def skip(reason):
    raise Skip(reason)


def test(function):
    _tests.append(function)
    return function


def need(program):
    """The path of a program, or the test is skipped."""
    return shutil.which(program) or skip(f"{program} is not installed")


def run(*words, timeout=60, **more):
    """Runs a program; its output is text. What is not UTF-8 in it shows as escapes."""
    return subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, text=True, errors="backslashreplace", **more)


def tally(*words, **more):
    return run(TALLY, *words, **more)


def same(got, want, what="it"):
    assert got == want, f"{what} is {got!r}, not {want!r}"


def has(text, part):
    assert part in text, f"no {part!r} in {text!r}"


def allowed(*words):
    """Whether the level of kernel.perf_event_paranoid lets this user count so. What fails otherwise is told by the tests."""
    done = tally("stat", *words, "--", "true")
    return not (done.returncode and "kernel.perf_event_paranoid" in done.stderr)


@functools.cache
def watches_kernel():
    return allowed("-e", "page-faults:k")


@functools.cache
def watches_cpus():
    return allowed("-a", "-e", "page-faults")


def needs_kernel_mode():
    if not watches_kernel():
        skip("kernel.perf_event_paranoid lets this user watch user mode alone")


def needs_cpus():
    if not watches_cpus():
        skip("kernel.perf_event_paranoid forbids watching whole CPUs to this user")


def named(event):
    """What perf calls an event that may count in user mode alone."""
    return event if watches_kernel() else event + ":u"


def wait_for_counters(pid):
    """Until a process has opened its counters, and the pidfd of whom it waits for."""
    for _ in range(500):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            links = []
        # The counters are open, and the pidfd that waits for the process is the last to come.
        if any("perf_event" in x for x in links) and any("pidfd" in x for x in links):
            return
        time.sleep(0.01)
    skip("no counter is seen in /proc/PID/fd, or this kernel has no pidfds")


def scratch():
    """A folder that is removed when the `with` ends."""
    return tempfile.TemporaryDirectory(prefix="tally-test-")


def main():
    failed = 0
    for number, function in enumerate(_tests, 1):
        name = function.__name__
        try:
            function()
            print(f"ok {number} - {name}")
        except Skip as why:
            # In one line, as TAP has it.
            print(f"ok {number} - {name} # SKIP {' '.join(str(why).split())}")
        except Exception:  # whatever a test did not expect is its failure
            failed += 1
            for line in traceback.format_exc().splitlines():
                print("#", line)
            print(f"not ok {number} - {name}")
        sys.stdout.flush()
    print(f"1..{len(_tests)}")
    return 1 if failed else 0
