#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally same, on programs that differ by one input each. Which input that is, and where it comes in and is first
looked at, is what tests/programs/inputs.c says."""
import json
import os
import platform
import struct
import subprocess
import sys

from tapcli import TALLY, has, main, need, run, same, scratch, skip, tally, test

INPUTS = os.environ.get("INPUTS", "")
HAZARDS = os.environ.get("HAZARDS", "")
ROOT = os.geteuid() == 0
# By unshare(1): may this user have a pid namespace, in which numbers of processes are the same?
MAY_FIX_PIDS = run("unshare", "--pid", "--fork", "true").returncode == 0
AT_RANDOM = 25


def needs_guests():
    if not INPUTS:
        skip("there are no small programs for this machine")


def compare(*words, options=(), program=None, **more):
    """Status, the report, what the program wrote."""
    needs_guests()
    with scratch() as folder:
        done = tally("same", "--json", "-o", f"{folder}/report", *options, "--", program or INPUTS, *words, **more)
        assert os.path.exists(f"{folder}/report"), done
        return done.returncode, json.load(open(f"{folder}/report")), done.stdout


def identical(*words, options=(), **more):
    status, report, out = compare(*words, options=options, **more)
    same(report["outcome"], "identical", report)
    same(status, 0, "status")
    assert "at" not in report, report
    return report, out


def parted(*words, options=(), **more):
    status, report, out = compare(*words, options=options, **more)
    same(report["outcome"], "parted", report)
    same(status, 1, "status")
    return report


@test
def three_runs_of_a_program_without_inputs_are_identical():
    report, out = identical("nothing", options=("--runs", "3", "--every", "700"))
    same(report["runs"], 3)
    same(out, "done\n", "what it writes, once")
    same(report["status"], 7)
    # At the start, every 700 ticks and at the end.
    same(report["looks"], 2 + (report["ticks"] - 1) // 700, "looks")
    same(report["differed"], 0)


@test
def ticks_are_instructions():
    report, _ = identical("nothing")
    counted = tally("count", "--instructions", "--json", "-o", "-", "--", INPUTS, "nothing").stdout
    same(report["ticks"], json.loads(counted.splitlines()[-1])["total"], "ticks")


@test
def the_size_of_the_steps_makes_no_difference():
    reports = [identical("nothing", options=("--every", n))[0] for n in ("1000000", "97")]
    same(reports[0]["ticks"], reports[1]["ticks"], "ticks")


@test
def what_can_be_fixed_is_fixed():
    for name in ("random", "time", "tsc", "address", "raise", "sleep"):
        report, out = identical(name)
        same(report["differed"], 0, name)
        same(out, "slept\ndone\n" if name == "sleep" else "done\n", name)


@test
def a_pid_is_fixed_where_a_namespace_can_be_had():
    if not MAY_FIX_PIDS:
        skip("a pid namespace takes root")
    identical("pid")


def check_parting(report, condition, ask, where, what):
    """The input came in by `ask`, what it was is `what`, and `where` is where it shows."""
    same(report["at"]["symbol"], where, report)
    same(report["input"]["at"]["symbol"], ask, report)
    has(report["input"]["what"], what)
    same(report["input"]["switch"], condition, report)
    more = {} if MAY_FIX_PIDS or condition == "pid" else {"pid": report["not_fixed"].get("pid")}
    same(report["not_fixed"], {condition: "it was let go", **more}, "not fixed")
    has("".join(more.values()), "CAP_SYS_ADMIN" if more else "")
    assert report["input"]["result"][0] != report["input"]["result"][1], report
    assert report["input"]["at"]["tick"] <= report["at"]["tick"], report


@test
def random_numbers_that_are_let_go_are_found():
    report = parted("random", options=("--leave", "random"))
    check_parting(report, "random", "ask_random", "use", "getrandom(")
    same(report["by"], "registers")


def where_random_bytes_lie(environment):
    """What AT_RANDOM says when the guest is started as tally starts it. That one waits for its input."""
    with subprocess.Popen([need("setarch"), "-R", INPUTS, "stdin"], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, env=environment) as guest:
        while os.readlink(f"/proc/{guest.pid}/exe") != os.path.realpath(INPUTS):
            pass
        with open(f"/proc/{guest.pid}/auxv", "rb") as file:
            return dict(struct.iter_unpack("NN", file.read()))[AT_RANDOM]


@test
def random_bytes_across_two_pages_are_no_memory_that_differs():
    needs_guests()
    environment = {**os.environ, "PAD": ""}
    at = where_random_bytes_lie(environment)
    if at % 16 == 0:
        skip("this kernel aligns them")
    # Longer strings above them move them down.
    environment["PAD"] = "x" * ((at - (4080 + at % 16)) % 4096)
    same(where_random_bytes_lie(environment) % 4096, 4080 + at % 16, "where they lie in a page")
    report, _ = identical("stdin", options=("--leave", "random"), env=environment)
    same(report["differed"], 1, "inputs that differed")


@test
def time_that_is_let_go_is_found():
    check_parting(parted("time", options=("--leave", "time")), "time", "ask_time", "use", "clock_gettime(0, ")


@test
def time_stamps_that_are_let_go_are_found():
    what = "RDTSC" if platform.machine() == "x86_64" else "CNTVCT"
    check_parting(parted("tsc", options=("--leave", "tsc")), "tsc", "ask_tsc", "ask_tsc", what)


@test
def pids_that_are_let_go_are_found():
    check_parting(parted("pid", options=("--leave", "pid")), "pid", "ask_pid", "ask_pid", "getpid()")


@test
def addresses_that_are_let_go_are_found_at_the_start():
    if open("/proc/sys/kernel/randomize_va_space").read().strip() == "0":
        skip("kernel.randomize_va_space is 0: addresses are the same anyway")
    report = parted("address", options=("--leave", "aslr"))
    same(report["at"]["tick"], 0)
    same(report["at"]["symbol"], "_start")
    same(report["input"]["switch"], "aslr")
    pointer = "rsp" if platform.machine() == "x86_64" else "sp"
    assert pointer in report["values"], report


@test
def the_registers_that_differ_are_told():
    report = parted("pid", options=("--leave", "pid"))
    result = "rax" if platform.machine() == "x86_64" else "x0"
    same(list(report["values"]), [result], "registers")
    same([int(x, 16) for x in report["values"][result]], [int(x) for x in report["input"]["result"]], "pids")


@test
def the_place_is_where_a_count_of_instructions_leads():
    """An independent way there: as many instructions as the tick says, from the start."""
    report = parted("tsc", options=("--leave", "tsc"))
    there = tally("until", "--branches", "0", "--instructions", report["at"]["tick"], "--json", "-o", "-", "--", INPUTS, "tsc")
    same(json.loads(there.stdout.splitlines()[-1])["pc"], report["at"]["pc"], "pc")


@test
def a_file_of_random_bytes_is_named():
    report = parted("file")
    same(report["at"]["symbol"], "use", report)
    same(report["input"]["at"]["symbol"], "ask_file")
    same(report["input"]["about"], "descriptor 3 is /dev/urandom")
    same(report["input"]["switch"], None, "nothing fixes it")


@test
def memory_that_nobody_looks_at_differs_too():
    """Where it was written is known, since an input wrote it."""
    report = parted("unseen")
    same(report["by"], "memory")
    same(report["at"]["symbol"], "ask_unseen", report)
    same(report["at"]["tick"], report["input"]["at"]["tick"], "tick")
    buffer = report["input"]["what"].removeprefix("read(3, ").split(",")[0]
    assert 0 <= int(report["address"], 16) - int(buffer, 16) < 64, report


@test
def vector_registers_are_looked_at_one_by_one_in_another_go():
    """That they differ is seen at the next look at memory, and where they came to by going there again. The program
    wrote what it writes in the first go."""
    status, report, out = compare("vector")
    same(status, 1, report)
    same(report["by"], "vectors")
    same(report["at"]["symbol"], "ask_vector", report)
    same(report["from"], report["at"]["tick"], "from")
    register = "xmm5" if platform.machine() == "x86_64" else "v5"
    assert list(report["values"])[0].startswith(register + ", byte "), report
    same(report["input"]["about"], "descriptor 3 is /dev/urandom")
    same(out, "done\n", "output")


@test
def an_input_that_is_forgotten_is_no_difference():
    report, _ = identical("forget")
    same(report["differed"], 1)


@test
def a_timer_is_told_to_be_chance():
    for _ in range(3):
        status, report, _ = compare("timer")
        has(report["uncontrolled"], "signals have come that it did not send itself: when is chance")
        if status == 1:
            break
    else:
        skip("the timer came at the same instruction three times")
    has(report["input"]["what"], "signal SIGALRM")
    same(report["input"]["switch"], None)


@test
def input_is_read_by_all_runs_and_once():
    with scratch() as folder:
        open(f"{folder}/in", "w").write("0123456789abcdefghijklmnop")
        with open(f"{folder}/in") as file:
            done = subprocess.run([TALLY, "same", "--runs", "3", "--", INPUTS or skip("there are no small programs"), "stdin"],
                                  stdin=file, capture_output=True, text=True, timeout=60, check=False)
    same(done.returncode, 0, done)
    same(done.stdout, "0123456789abcdefghijklmnopdone\n", "output")


@test
def with_io_let_go_each_run_writes():
    same(identical("nothing", options=("--leave", "io"))[1], "done\n" * 2, "output")


@test
def children_run_free_and_write_once():
    if not ROOT:
        skip("the number of a child differs without a pid namespace")
    report, out = identical("child", options=("-r", "3"))
    same(out, "child\ndone\n", "output")
    has(report["uncontrolled"], "it has made processes: they run free, and what they do is not compared")


@test
def a_thread_may_outlive_the_first_one():
    alone = run(INPUTS or skip("there are no small programs for this machine"), "first")
    report, out = identical("first")
    same(out, alone.stdout, "output")
    same(report["status"], alone.returncode, "status")


@test
def who_waits_in_the_kernel_waits_for_one_that_sleeps():
    """It is told to be chance, when the one wakes and the other one sleeps again."""
    status, report, out = compare("pipe", options=("--max-time", "50"))
    assert report["outcome"] in ("identical", "parted"), report
    same(out, "read\n", "output")
    has(report["uncontrolled"], "threads have waited in the kernel: in which order it wakes them is chance")


@test
def programs_that_do_much_do_it_as_alone():
    """Handlers, faults, restarted calls, exec, fork, threads: each is the same in two runs, and writes what it
    writes alone."""
    needs_guests()
    names = run(HAZARDS).stdout.split()
    # Others tell what differs from run to run by design: CPUs that it may use, what /proc says of a tracer.
    wanted = [n for n in ("handler", "blocked-trap", "ignored-trap", "breakpoint", "exec", "exec-thread", "threads", "fault", "fork", "vfork",
                          "killed") if n in names]
    assert len(wanted) >= 8, names
    if not MAY_FIX_PIDS:  # these look at numbers of processes
        wanted = [n for n in wanted if n not in ("fork", "vfork", "killed")]
    for name in wanted:
        alone = run(HAZARDS, name)
        status, report, out = compare(name, program=HAZARDS, options=("--max-time", "50"))
        same(report["outcome"], "identical", (name, report))
        same(out, alone.stdout, name)
        same(report["status"], alone.returncode if alone.returncode >= 0 else 128 - alone.returncode, name)


@test
def a_report_for_people_says_where_why_and_what_to_do():
    needs_guests()
    done = tally("same", "--leave", "random", "--", INPUTS, "random")
    same(done.returncode, 1, done)
    lines = done.stderr.splitlines()
    same(lines[0], f"2 runs of '{INPUTS} random'")
    has(lines[1], "runs 1 and 2 part at tick ")
    has(lines[2], " use+0")
    has(done.stderr, "the last input before it that differed: getrandom(")
    has(done.stderr, "  fix        without '--leave random' AT_RANDOM, getrandom")
    has(done.stderr, "not fixed: random (it was let go)")


@test
def what_was_fixed_is_listed_when_asked_for():
    needs_guests()
    done = tally("same", "-v", "-o", "-", "--", INPUTS, "nothing")
    for name in ("aslr", "random", "time", "tsc", "vdso", "cpu", "io"):
        has(done.stdout, f"\nfixed: {name} (")


@test
def it_is_given_up_when_the_time_is_over():
    needs_guests()
    with scratch() as folder:
        done = tally("same", "--max-time", "0.5", "--json", "-o", f"{folder}/report", "--", need("sleep"), "100")
        report = json.load(open(f"{folder}/report"))
    same(report["outcome"], "unfinished")
    same(report["why"], "the time is up")
    same(done.returncode, 2)


@test
def nothing_is_left_running():
    needs_guests()
    with scratch() as folder:
        program = f"{folder}/left-by-same"
        os.symlink(INPUTS, program)
        tally("same", "--", program, "file")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = open(f"/proc/{pid}/cmdline", "rb").read()
            except OSError:
                continue
            assert b"left-by-same" not in words, (pid, words)


@test
def mistakes_are_refused():
    needs_guests()
    for words, status, text in (
            (["--runs", "1", "--", INPUTS], 2, "it takes from 2 to 16"),
            (["--runs", "17", "--", INPUTS], 2, "it takes from 2 to 16"),
            (["--every", "0", "--", INPUTS], 2, "--every: '0' is not a whole number above 0"),
            (["--every", "1000001", "--", INPUTS], 2, "--every: 1000001 is too big"),
            (["--leave", "random,luck", "--", INPUTS], 2, "--leave: there is no condition 'luck'"),
            ([], 2, "there is no command to run"),
            (["--", "no-such-command-anywhere"], 127, "no-such-command-anywhere"),
            (["--", "/dev/null"], 126, "/dev/null")):
        done = tally("same", *words)
        same(done.returncode, status, words)
        has(done.stderr, "tally same: ")
        has(done.stderr, text)
        same(done.stdout, "", words)


@test
def another_user_is_told_what_root_could_fix():
    needs_guests()
    if not ROOT:
        skip("only root can become another user")
    done = run(need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", TALLY, "same", "--json", "-o", "-",
               "--", INPUTS, "nothing")
    if not done.stdout:
        skip("another user cannot run the program that was built here")
    report = json.loads(done.stdout.splitlines()[-1])
    same(report["outcome"], "identical")
    same(list(report["not_fixed"]), ["pid"], "not fixed")
    has(report["not_fixed"]["pid"], "a pid namespace takes root (CAP_SYS_ADMIN)")


@test
def without_namespaces_a_program_is_told_the_same_numbers_of_its_threads():
    needs_guests()
    if not ROOT:
        skip("only root can become another user")
    for program, name in ((INPUTS, "pid"), (INPUTS, "raise"), (HAZARDS, "threads")):
        done = run(need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", TALLY, "same", "-j", "-o", "-", "--",
                   program, name)
        if not done.stdout:
            skip("another user cannot run the program that was built here")
        same(json.loads(done.stdout.splitlines()[-1])["outcome"], "identical", (name, done))


sys.exit(main())
