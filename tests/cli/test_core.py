#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core files: tally stack --core and the example core-stacks, with eu-stack as the referee."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

from stacks import INTERRUPTED, eu_stack, same_frames
from tapcli import has, main, need, run, same, scratch, skip, tally, test

EXAMPLE = os.environ["CORE_STACKS"]

# Aborts three calls deep, one of which is inlined, or waits there; a second thread waits for ever.
SOURCE = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int waits, ready;
static void *waiter(void *arg) { ready = 1; for (;;) pause(); return arg; }
static inline __attribute__((always_inline)) void inlined(int x) {
	if (waits) { puts("ready"); fflush(stdout); for (;;) pause(); }
	if (x) abort(); /* the line that is 9 */
}
__attribute__((noinline)) void inner(int x) { inlined(x); __asm__ volatile(""); }
__attribute__((noinline)) void outer(int x) { inner(x + 1); __asm__ volatile(""); }
int main(int argc, char **argv)
{
	pthread_t thread;
	waits = argc > 1;
	pthread_create(&thread, NULL, waiter, NULL);
	while (!ready) usleep(1000);
	outer(argc);
}
"""


def program(folder, *flags, source=SOURCE):
    need("gcc")
    path = f"{folder}/program"
    pathlib.Path(f"{folder}/core.c").write_text(source)
    done = run("gcc", "-O1", "-g", "-pthread", "-Wl,--build-id", *flags, "-o", path, f"{folder}/core.c")
    same(done.returncode, 0, f"the status of gcc ({done.stderr})")
    return path


def dumped(folder, *flags, source=SOURCE):
    """A program that aborted, and its core, as the kernel writes it."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if not re.fullmatch(r"[\w.%-]+", pattern):
        skip(f"kernel.core_pattern is {pattern!r}: cores do not go where the program runs")
    path = program(folder, *flags, source=source)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        skip("no core may be written here: its hard limit is 0")
    subprocess.run([path], cwd=folder, check=False,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
    cores = [f for f in os.listdir(folder) if f not in ("core.c", "program")]
    if len(cores) != 1:
        skip("the kernel wrote no core")
    return path, os.path.join(folder, cores[0])


def threads(core, *words):
    done = tally("stack", "--json", "--core", core, *words)
    same(done.returncode, 0, f"the status ({done.stderr})")
    return {t["tid"]: t for t in map(json.loads, done.stdout.splitlines())}


def check_referee(core):
    theirs, why = eu_stack("--core", core)
    same(len(theirs), 2, f"how many threads eu-stack shows ({why})")
    ours = threads(core)
    same(list(ours), list(theirs), "the threads")
    for tid, addresses in theirs.items():
        same(ours[tid]["end"], "whole", f"the end of {tid}'s stack")
        same_frames(ours[tid], addresses)


@test
def stacks_of_the_kernels_core_are_those_of_eu_stack():
    with scratch() as folder:
        check_referee(dumped(folder)[1])


@test
def threads_are_named_to_their_start():
    with scratch() as folder:
        path, core = dumped(folder)
        first, second = threads(core).values()
        names = [f["function"] for f in first["frames"]]
        at = names.index("abort")
        same(names[at + 1:at + 4], ["inner", "outer", "main"], f"who called abort, of {names}")
        same((names[-1], first["comm"], first["trouble"]), ("_start", "program", None), "its start, name and trouble")
        has([f["function"] for f in second["frames"]], "waiter")
        same({f["module"] for f in first["frames"] if f["function"] in ("inner", "_start")}, {path}, "the module")


@test
def stacks_of_gcores_core_are_those_of_eu_stack():
    need("gcore")
    with scratch() as folder:
        with subprocess.Popen([program(folder), "wait"], stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                time.sleep(0.1)
                done = run("gcore", "-o", f"{folder}/saved", process.pid)
                live = tally("stack", "--json", "-p", process.pid)
            finally:
                process.kill()
        core = f"{folder}/saved.{process.pid}"
        if not os.path.exists(core):
            skip(f"gcore writes none here: {done.stderr.strip()}")
        check_referee(core)
        if live.returncode == 0:
            for thread in map(json.loads, live.stdout.splitlines()):
                same(threads(core)[thread["tid"]]["frames"], thread["frames"], "the frames of a core and of the process")


@test
def the_example_tells_lines_and_inlined_calls():
    with scratch() as folder:
        _, core = dumped(folder)
        done = run(EXAMPLE, core)
        same(done.returncode, 0, f"the status ({done.stderr})")
        has(done.stdout, "(program), signal 6\n")
        lines = [re.sub(r"^\s*[0-9a-f]{16} ", "", line) for line in done.stdout.splitlines()]
        at = lines.index(f"inlined at {folder}/core.c:9")
        same(lines[at + 1:at + 4], [f"inner at {folder}/core.c:11", f"outer at {folder}/core.c:12",
                                    f"main at {folder}/core.c:19"], "its callers")
        same(run(EXAMPLE, f"{folder}/core.c").returncode, 1, "the status for what is no core")
        same(run(EXAMPLE).returncode, 2, "the status without a core")


ABORTED = """#include <signal.h>
#include <stdlib.h>
static void handler(int signal) { abort(); }
""" + INTERRUPTED


@test
def what_a_signal_interrupted_is_named_where_it_stands():
    with scratch() as folder:
        path, core = dumped(folder, "-fno-toplevel-reorder", source=ABORTED)
        frames = next(iter(threads(core).values()))["frames"]
        names = [f["function"] for f in frames]
        at = names.index("handler")
        same((names[at + 2], frames[at + 2]["offset"], names[at + 3]), ("first", 0, "main"), f"the interrupted, of {names}")
        has(run(EXAMPLE, core).stdout, f" first at {folder}/core.c:99\n")
        if run("gdb", "--version").returncode == 0:
            has(run("gdb", "-nx", "-batch", "-ex", "bt", path, core).stdout, " first () at ")


@test
def another_build_is_not_taken_for_the_program():
    with scratch() as folder:
        path, core = dumped(folder)
        before = threads(core)
        os.remove(path)
        program(folder, "-DOTHER", "-O0")
        for tid, thread in threads(core).items():
            same([f["function"] for f in thread["frames"] if f["module"] == path and f["function"]], [],
                 "the names in another build")
            assert len(thread["frames"]) <= len(before[tid]["frames"]), thread
        has(tally("stack", "--core", core).stderr, f"{path}: the file there now is another build")


@test
def a_core_that_was_cut_says_so():
    with scratch() as folder:
        _, core = dumped(folder)
        whole = pathlib.Path(core).read_bytes()
        # Program headers follow the ELF header; of PT_LOAD (1) the first with bytes in the file.
        count = int.from_bytes(whole[56:58], "little")
        headers = [whole[64 + 56 * i:120 + 56 * i] for i in range(count)]
        first = next(int.from_bytes(h[8:16], "little") for h in headers
                     if h[0] == 1 and int.from_bytes(h[32:40], "little"))
        pathlib.Path(core).write_bytes(whole[:first])
        for thread in threads(core).values():
            same(len(thread["frames"]), 1, "how many frames")
            has(thread["trouble"], f"{len(whole) - first} bytes of memory are missing: the file was cut")
        pathlib.Path(core).write_bytes(whole[:first // 2])
        done = tally("stack", "--core", core)
        same((done.returncode, done.stdout), (1, ""), "status and output of half of the notes")
        assert re.search(r"byte \d+: the notes reach beyond the end of the file", done.stderr), done.stderr


@test
def what_is_no_core_is_refused():
    with scratch() as folder:
        empty = pathlib.Path(folder) / "empty"
        empty.write_text("")
        for path, said in ((empty, "no core file"), (sys.executable, "but no core file"), (folder, "no file"),
                           (f"{folder}/none", "No such file")):
            done = tally("stack", "--core", path)
            same((done.returncode, done.stdout), (1, ""), f"status and output for {path}")
            has(done.stderr, said)
        same(tally("stack", "--core", empty, "-p", "1").returncode, 2, "the status of both at once")


if __name__ == "__main__":
    sys.exit(main())
