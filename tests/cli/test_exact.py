#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally until and tally count, on programs whose sums are known; valgrind is the referee for the rest."""
import json
import os
import re
import subprocess
import sys

from tapcli import TALLY, has, main, need, run, same, scratch, skip, tally, test

COUNTED = os.environ.get("COUNTED", "")
HAZARDS = os.environ.get("HAZARDS", "")
STRINGS = os.environ.get("STRINGS", "")
WALK = os.environ.get("WALK", "")

# The sums of tests/programs/counted.h.
CONDITIONAL = 1000 + 2 * 500 + 100
INSTRUCTIONS = 1 + 1000 * 2 + 1 + 500 * 4 + 1 + 100 * 4 + 1 + 3


def needs_guests():
    if not COUNTED:
        skip("there are no small programs for this machine")


def count(what, *command, options=()):
    out = tally("count", what, "--json", "-o", "-", *options, "--", *command)
    lines = [line for line in out.stdout.splitlines() if line.startswith("{")]
    assert lines, out
    return json.loads(lines[-1])


def until(*words):
    out = tally("until", "--json", "-o", "-", *words)
    return out.returncode, json.loads(out.stdout.splitlines()[-1]), out.stderr


def valgrind(program):
    """Instructions, conditional branches as cachegrind counts them. Where valgrind follows a branch while it
    translates, that one is no longer counted: so it must not."""
    with scratch() as folder:
        out = run(need("valgrind"), "--tool=cachegrind", "--vex-guest-chase=no", "--cache-sim=no", "--branch-sim=yes",
                  f"--cachegrind-out-file={folder}/out", program)
        text = open(f"{folder}/out").read()
    events = re.search(r"^events: (.*)$", text, re.M).group(1).split()
    sums = dict(zip(events, map(int, re.search(r"^summary: (.*)$", text, re.M).group(1).split())))
    return sums["Ir"], sums["Bc"]


@test
def count_gives_the_sums_of_the_program():
    needs_guests()
    got = count("--branches", COUNTED)
    same(got["total"], CONDITIONAL)
    same(got["exact"], True)
    same(got["status"], 0)
    same([t["count"] for t in got["threads"]], [CONDITIONAL])
    same(count("--instructions", COUNTED)["total"], INSTRUCTIONS)
    same(count("--instructions", COUNTED, options=["--clock", "step", "--no-pin"])["total"], INSTRUCTIONS)


@test
def instructions_and_branches_are_those_of_valgrind():
    needs_guests()
    for program in COUNTED, WALK:
        instructions, branches = valgrind(program)
        same(count("--instructions", program)["total"], instructions, program)
        same(count("--branches", program)["total"], branches, program)


@test
def valgrind_counts_strings_and_loops_otherwise():
    """To the hardware LOOP and JRCXZ are conditional branches, and a REP is one instruction. To valgrind each
    repetition of a REP is an instruction with a conditional branch, and the look that ends it one more
    instruction; JRCXZ is no conditional branch."""
    needs_guests()
    if not STRINGS:
        skip("there are no such instructions on this machine")
    got = count("--branches", STRINGS)
    same(got["total"], 70 + 2)
    # mov, loop x 70, jrcxz, mov, jrcxz, lea, lea, rep movsb, mov, xor, syscall
    same(count("--instructions", STRINGS)["total"], 1 + 70 + 1 + 1 + 1 + 2 + 1 + 3)
    instructions, branches = valgrind(STRINGS)
    same(instructions, 80 - 1 + 64 + 1)
    same(branches, 70 + 64)


@test
def each_run_counts_the_same():
    first = count("--branches", "/bin/true")
    same(first["exact"], True)
    same(count("--branches", "/bin/true")["total"], first["total"])


@test
def threads_are_counted_each():
    python = need("python3")
    code = "import threading as t; [t.Thread(target=len, args=('',)).start() for _ in range(2)]"
    out = tally("count", "--json", "-o", "-", "--max-time", "2", "--", python, "-c", code, timeout=120)
    same(out.returncode, 1)
    has(out.stderr, "--max-time gives it longer")


@test
def the_status_and_output_are_the_commands():
    needs_guests()
    out = tally("count", "-o", "/dev/null", "--", HAZARDS, "handler")
    same(out.stdout, run(HAZARDS, "handler").stdout)
    same(out.returncode, 0)
    same(tally("count", "-o", "/dev/null", "--", HAZARDS, "nothing-of-that-name").returncode, 99)
    same(tally("count", "-o", "/dev/null", "--", HAZARDS, "killed").returncode, 128 + 9)


@test
def until_stops_where_it_says():
    needs_guests()
    status, got, _ = until("--branches", "1000", "--", COUNTED)
    same(status, 0)
    same(list(got), ["outcome", "late_by", "clock", "branches", "instructions", "pc", "symbol", "line",
                     "registers"])
    same(got["outcome"], "reached")
    same(got["branches"], 1000)
    same(got["late_by"], 0)
    start = int(until("--branches", "0", "--", COUNTED)[1]["pc"], 16)
    if os.uname().machine == "x86_64":
        # mov (5 bytes), dec (2), jnz (2): behind the first loop, whose counter is 0.
        same(int(got["pc"], 16), start + 9)
        same(int(got["registers"]["rcx"], 16), 0)
        same(int(got["registers"]["rip"], 16), start + 9)
        # mov, test: three instructions behind the tick stands the dec behind js, a tick later.
        got = until("--branches", "1000", "--instructions", "3", "--", COUNTED)[1]
        same(int(got["pc"], 16), start + 9 + 5 + 2 + 2)
        same(got["branches"], 1001)
    same(until("--branches", "0", "--", COUNTED)[1]["symbol"], "_start+0x0")


@test
def until_ends_the_command():
    needs_guests()
    before = run("pgrep", "-x", "guest-counted").stdout if need("pgrep") else ""
    same(until("--branches", "5", "--", COUNTED)[0], 0)
    same(run("pgrep", "-x", "guest-counted").stdout, before)


@test
def what_ends_before_is_said():
    needs_guests()
    status, got, complaint = until("--branches", str(CONDITIONAL + 1), "--", COUNTED)
    same(status, 1)
    same(got["outcome"], "exited")
    same(got["branches"], CONDITIONAL)
    same(got["pc"], None)
    has(complaint, "status 0")


@test
def what_takes_too_long_is_refused_before():
    needs_guests()
    out = tally("until", "--clock", "step", "--branches", "100000000", "--", HAZARDS, "handler")
    same(out.returncode, 1)
    has(out.stderr, "--max-time")
    same(out.stdout, "")  # not one instruction of it was executed
    out = tally("until", "--clock", "step", "--branches", "50000", "--", HAZARDS, "handler")
    has(out.stderr, "this takes about")


@test
def text_names_the_place():
    needs_guests()
    out = tally("until", "--branches", "0", "--regs", "--", COUNTED)
    has(out.stderr, "reached: 0 conditional branches")
    has(out.stderr, "_start+0x0 (guest-counted)")
    has(out.stderr, "rip" if os.uname().machine == "x86_64" else "x30")


@test
def lines_of_the_source_are_named():
    compiler = need("gcc")
    with scratch() as folder:
        with open(f"{folder}/lines.c", "w") as file:
            file.write("volatile int x;\nvoid _start(void)\n{\n\tfor (;;)\n\t\tif (x < 1000)\n\t\t\tx++;\n}\n")
        same(run(compiler, "-g", "-O0", "-nostdlib", "-static", "-o", f"{folder}/lines", f"{folder}/lines.c").returncode, 0)
        got = until("--branches", "50", "--", f"{folder}/lines")[1]
        assert re.search(r"lines\.c:[4-6]$", got["line"]), got
        has(tally("until", "--branches", "50", "--", f"{folder}/lines").stderr, "lines.c:")


@test
def gdb_finds_it_where_it_was_left():
    needs_guests()
    gdb = need("gdb")
    with scratch() as folder:
        script = f"{folder}/gdbinit"
        with open(script, "w") as file:
            file.write("set confirm off\nset pagination off\n")
        environment = dict(os.environ, HOME=folder)
        os.rename(script, f"{folder}/.gdbinit")
        out = subprocess.run([TALLY, "until", "--branches", "1000", "--gdb", "--", COUNTED],
                             input="printf \"at %d %d\\n\", $pc - (long)&_start, $rcx\nkill\nquit\n",
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True, env=environment)
    if os.uname().machine != "x86_64":
        skip("the offset is that of x86-64")
    has(out.stdout, "at 9 0")


@test
def wrong_usage_is_told():
    for words, part in [(["until", "--", "true"], "--branches"), (["until", "--branches", "5"], "no command"),
                        (["count"], "no command"), (["count", "--branches", "--instructions", "--", "true"], "one at a time"),
                        (["count", "--clock", "sun", "--", "true"], "no clock 'sun'")]:
        out = tally(*words)
        same(out.returncode, 2, words)
        has(out.stderr, part)
    same(tally("count", "--", "/nonexistent/program").returncode, 127)
    same(tally("until", "--branches", "1", "--", "/etc/passwd").returncode, 126)


if __name__ == "__main__":
    sys.exit(main())
