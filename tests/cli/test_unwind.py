#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks from registers and a copy of the stack: all frames are those of libdw and of libunwind, where these two
agree, on recordings of programs in C, C++, Rust and Python; and what is unwound while recording is the same."""
import functools
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from stacks import INTERRUPTED
from tapcli import has, main, need, run, same, scratch, skip, tally, test

PROGRAMS = pathlib.Path(os.environ["SOURCE"]) / "tests/programs"
FOLDER = tempfile.TemporaryDirectory(prefix="tally-test-")

PYTHON = """
import json, re, sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
class Odd:
    def __lt__(self, other): return fib(6) > 3
end = time.time() + float(sys.argv[1])
while time.time() < end:
    fib(12); json.dumps([{"a": i} for i in range(300)]); re.sub("a+b", "c", "aaab" * 300); sorted(Odd() for _ in range(50))
"""


def unwinder(name):
    path = os.environ.get("UNWIND_" + name.upper(), "")
    return path or skip(f"{name} is not installed")


@functools.cache
def program(kind):
    """How to run a program whose stacks are known to be hard; what is missing skips the test."""
    where = f"{FOLDER.name}/{kind}"
    compilers = {
        "c": ["cc", "-O2", "-g", "-pthread", "-o", where, PROGRAMS / "stacks.c"],
        "c++": ["g++", "-O2", "-g", "-pthread", "-o", where, PROGRAMS / "stacks.cc"],
        "rust": ["rustc", "-O", "-o", where, PROGRAMS / "stacks.rs"],
    }
    if kind == "python":
        return [sys.executable, "-c", PYTHON]
    if not shutil.which(compilers[kind][0]):
        return None
    done = run(*compilers[kind], timeout=120)
    same(done.returncode, 0, f"the compiler's status ({done.stderr})")
    return [where]


@functools.cache
def recording(kind):
    """With copies of the stack that hold all but very deep ones."""
    argv = program(kind)
    if not argv:
        return None
    path = f"{FOLDER.name}/{kind}.data"
    done = tally("record", "-q", "-F", "499", "--call-graph", "dwarf,16384", "--keep-stacks", "-o", path, "--",
                 *argv, "2")
    same(done.returncode, 0, f"the status of record ({done.stderr})")
    return path


def stacks_of(name, path):
    """By thread and time: the addresses, and how the stack ends."""
    lines = run(unwinder(name), path).stdout.splitlines()
    assert lines, f"{name} unwinds nothing"
    return {tuple(line.split()[:2]): tuple(line.split()[2:]) for line in lines}


def frames_are_the_referees(kind):
    path = recording(kind) or skip(f"there is no compiler of {kind} here")
    ours, one, other = (stacks_of(name, path) for name in ("tally", "libdw", "libunwind"))
    agreed = {key: one[key] for key in one if key in other and one[key][0] == other[key][0]}
    assert len(agreed) > 0.9 * len(ours), f"the referees agree on {len(agreed)} of {len(ours)} stacks only"
    astray = 0
    for key, (frames, _) in agreed.items():
        got, end = ours[key]
        # They may have given up together, as behind the system call by which a signal handler returns; one of them
        # says so then, or we got further than both.
        if got.startswith(frames + ",") and (end == "whole" or "ended" in (one[key][1], other[key][1])):
            continue
        # Rarely, there, both take the same word for a return address, and end at once.
        if end == "whole" and frames.count(",") == 1 and got.split(",")[0] == frames.split(",")[0]:
            astray += 1
            continue
        same(got, frames, f"the stack of thread {key[0]} at {key[1]} in {kind}")
    assert astray <= 1 + len(agreed) / 500, f"{astray} stacks of {len(agreed)} have another second frame"


def stacks_are_whole(kind):
    path = recording(kind) or skip(f"there is no compiler of {kind} here")
    ends = [end for _, end in stacks_of("tally", path).values()]
    whole, cut = ends.count("whole"), ends.count("cut")
    assert whole >= 0.995 * (len(ends) - cut), f"{whole} of {len(ends)} stacks are whole, {cut} are cut"


@test
def frames_of_c_with_recursion_and_signal_handlers_are_the_referees():
    frames_are_the_referees("c")
    stacks_are_whole("c")


@test
def frames_of_cplusplus_with_exceptions_are_the_referees():
    frames_are_the_referees("c++")
    stacks_are_whole("c++")


@test
def frames_of_rust_are_the_referees():
    frames_are_the_referees("rust")
    stacks_are_whole("rust")


@test
def frames_of_python_are_the_referees():
    frames_are_the_referees("python")
    stacks_are_whole("python")


X86 = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 ra".split()


def number(name, arm):
    """A register's DWARF number, from what readelf calls it."""
    if name in ("ra", "rip"):
        return 30 if arm else 16
    if arm:
        return 31 if name == "sp" else int(name[1:])
    return X86.index(name)


def is_known(name):
    """Floating-point and vector registers hold no addresses; the rest of arm64's are named x0 to x30 and sp."""
    return name in X86 or name == "rip" or name == "sp" or re.fullmatch(r"x\d+", name) is not None


def rows_of_readelf(path):
    """By address: the rules of the last row there, but for those that say nothing."""
    rows, common, names = {}, {}, None
    text = run("readelf", "-wF", path, timeout=120).stdout
    arm = "ra=30" in text
    for line in text.splitlines():
        words = line.split()
        if found := re.match(r"(\w+) \w+ \w+ CIE ", line):
            owner, kind = found.group(1), "common"
        elif found := re.search(r" FDE cie=(\w+) pc=(\w+)\.\.", line):
            owner, kind = found.group(1), "function"
            rows[int(found.group(2), 16)] = common.get(owner)
        elif words[:1] == ["LOC"]:
            names = words[1:]
        elif names and len(words) == len(names) + 1 and re.fullmatch("[0-9a-f]{16}", words[0]):
            rules = dict(zip(names, words[1:]))
            cfa = rules.pop("CFA")
            if found := re.fullmatch(r"(\w+)([+-]\d+)", cfa):
                cfa = f"{number(found.group(1), arm)}{found.group(2)}"
            row = cfa, {number(n, arm): r for n, r in rules.items() if r != "u" and is_known(n)}
            if kind == "common":
                common[owner] = row
            else:
                rows[int(words[0], 16)] = row
        else:
            names = None if not words else names
    return rows


def rows_are_those_of_readelf(path):
    need("readelf")
    theirs = rows_of_readelf(path)
    assert len(theirs) > 1000, f"readelf shows {len(theirs)} rows of {path}"
    ours = {}
    for line in run(unwinder("rows"), path).stdout.splitlines():
        address, cfa, *rules = line.split()
        pairs = dict(rule.split("=") for rule in rules)
        ours[int(address, 16)] = cfa, {int(n): r for n, r in pairs.items() if r != "u"}
    same(sorted(theirs.keys() - ours.keys()), [], "rows that readelf alone has")
    for address, row in theirs.items():
        same(ours[address], row, f"the row of {path} at {address:#x}")


@test
def rows_of_the_c_library_are_those_of_readelf():
    rows_are_those_of_readelf(os.path.realpath(f"/lib/{os.uname().machine}-linux-gnu/libc.so.6"))


@test
def rows_of_an_arm64_library_are_those_of_readelf():
    path = "/usr/aarch64-linux-gnu/lib/libc.so.6"
    if not os.path.exists(path):
        skip("the arm64 C library (libc6-arm64-cross) is not installed")
    rows_are_those_of_readelf(path)


def script(path):
    return tally("script", "-i", path, "-F", "tid,time,ip,sym").stdout


@test
def script_unwinds_the_copies_of_a_file_of_perf():
    need("perf")
    argv = program("c") or skip("there is no C compiler here")
    with scratch() as folder:
        path = f"{folder}/data"
        done = run("perf", "record", "-q", "-F", "499", "--call-graph", "dwarf", "-o", path, *argv, "1")
        if done.returncode:
            skip(f"perf cannot record here: {done.stderr.strip()}")
        starts = ("_start", "clone", "clone3", "__clone3")
        stacks = [s.splitlines() for s in script(path).split("\n\n") if s.strip()]
        users = [s for s in stacks if len(s) > 1]
        whole = sum(s[-1].split()[-1] in starts for s in users)
        cut = len([e for _, e in stacks_of("tally", path).values() if e == "cut"])
        assert whole and whole >= 0.98 * (len(users) - cut), f"{whole} of {len(users)} stacks begin at a start, {cut} are cut"


MADE = """
function leaf(x) { let s = 0; for (let i = 0; i < 3; i++) s += Math.sqrt(x + i); return s }
function middle(x) { return leaf(x) + leaf(x + 1) }
function outer(n) { let s = 0; for (let i = 0; i < n; i++) s += middle(i); return s }
const end = Date.now() + 2000; let x = 0; while (Date.now() < end) x += outer(1000)
"""


@test
def code_of_a_jitdump_is_unwound_from_its_first_instruction():
    """By frame pointers alone the caller is missing until the function has set up its own."""
    need("node")
    with scratch() as folder:
        source, path = f"{folder}/made.js", f"{folder}/data"
        pathlib.Path(source).write_text(MADE)
        done = tally("record", "-F", "999", "--call-graph", "dwarf", "-o", path, "--", "node", "--perf-prof",
                     "--perf-prof-unwinding-info", "--no-turbo-inlining", source, cwd=folder)
        same(done.returncode, 0, f"the status of record ({done.stderr})")
        stacks = [s.splitlines() for s in script(path).split("\n\n") if s.strip()]
        # "*": compiled with all optimizations, as the code is of which V8 tells more than that it keeps frames.
        # node calls them "JS:*leaf", before 20 "LazyCompile:*leaf".
        names = [[re.sub(r"^\w+:", "", line.split(maxsplit=1)[1]) for line in s[1:3]] for s in stacks if len(s) > 2]
        callers = [n[1] for n in names if n[0].startswith("*leaf ")]
        assert len(callers) > 100, f"only {len(callers)} samples are in the leaf"
        # Who calls it may be interpreted still; who calls that is no caller of the leaf.
        lost = [c for c in callers if re.match(r"\W?outer ", c)]
        assert not lost, f"{len(lost)} of {len(callers)} have lost their caller"


# The handler goes on for a while.
SPINNING = """#include <signal.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 100000; i++) sink += i; }
static void handler(int n) { while (clock() < CLOCKS_PER_SEC) spin(); _exit(0); }
""" + INTERRUPTED


@test
def what_a_signal_interrupted_is_named_where_it_stands():
    """One byte before it is another function's end."""
    need("gcc")
    with scratch() as folder:
        source, path = f"{folder}/interrupted.c", f"{folder}/data"
        pathlib.Path(source).write_text(SPINNING)
        same(run("gcc", "-O1", "-g", "-fno-toplevel-reorder", "-o", f"{folder}/interrupted", source).returncode, 0,
             "the compiler's status")
        for option in ("--keep-stacks", "--no-keep-stacks"):
            done = tally("record", "-F", "499", "--call-graph", "dwarf", option, "-o", path, "--", f"{folder}/interrupted")
            same(done.returncode, 0, f"the status of record ({done.stderr})")
            text = tally("report", "-i", path, "-q", "-g", "caller").stdout
            assert re.search(r" main\n[ |]* first\n.*\n[ |]* handler\n", text), f"no handler below first in {text}"
            text = tally("script", "-i", path, "-F", "ip,sym,srcline").stdout
            same(set(re.findall(r" first\n +(.*)\n", text)), {"interrupted.c:99"}, "its line")


@test
def what_is_unwound_while_recording_is_smaller_and_whole():
    argv = program("c++") or skip("there is no C++ compiler here")
    with scratch() as folder:
        sizes = {}
        for option in ("--keep-stacks", "--no-keep-stacks"):
            path = f"{folder}/{option}"
            done = tally("record", "-F", "499", "--call-graph", "dwarf", option, "-o", path, "--", *argv, "1")
            same(done.returncode, 0, f"the status of record ({done.stderr})")
            samples = int(re.search(r"(\d+) samples", done.stderr).group(1))
            sizes[option] = os.path.getsize(path) / samples
            text = tally("report", "-i", path).stdout
            whole, all_ = map(int, re.search(r"# (\d+) of (\d+) user stacks are whole", text).groups())
            assert whole >= 0.98 * all_, f"{whole} of {all_} stacks are whole"
        assert sizes["--no-keep-stacks"] < sizes["--keep-stacks"] / 10, f"bytes a sample: {sizes}"


@test
def a_sample_tells_what_became_of_its_stack():
    argv = program("c") or skip("there is no C compiler here")
    with scratch() as folder:
        path = f"{folder}/data"
        tally("record", "-q", "-F", "499", "--call-graph", "dwarf,4096", "-o", path, "--", *argv, "1")
        kinds = {"whole": 0, "cut": 0, "kept": 0, "other": 0}
        for line in tally("script", "-D", "-i", path).stdout.splitlines():
            if "]: SAMPLE " not in line:
                continue
            chain = re.search(r"chain=\[([^]]*)\]", line).group(1).split()
            abi, length = re.search(r"regs_user=\{abi=(\d).* stack_len=(\d+)", line).groups()
            marks = chain.count('"user"')
            if (abi, length) == ("0", "0") and marks == 1 and chain[-1] != '"user"':
                kinds["whole"] += 1
            elif (abi, length) == ("2", "0") and marks == 2 and chain[-1] == '"user"':
                kinds["cut"] += 1
            elif (abi, length) == ("2", "4096") and not marks:
                kinds["kept"] += 1
            else:
                kinds["other"] += 1
        assert kinds["whole"] and kinds["cut"] and not kinds["other"], kinds
        # So does who prints the samples: each in JSON, and all of them at the end.
        for keep in ([], ["--keep-stacks"]):
            if keep:
                tally("record", "-q", "-F", "499", "--call-graph", "dwarf,4096", *keep, "-o", path, "--", *argv, "1")
            samples = [json.loads(line) for line in tally("script", "--json", "-i", path).stdout.splitlines()]
            ends = [s.get("stack") for s in samples if s["type"] == "sample"]
            told = re.search(r"of (\d+) stacks (\d+) are whole, (\d+) are cut", tally("script", "-i", path).stderr)
            count, whole, cut = map(int, told.groups())
            same(cut, ends.count("cut"), "the stacks that are cut")
            assert cut and whole + cut <= count <= len(ends), (told.group(0), len(ends))
            if not keep:
                same(cut, kinds["cut"], "the stacks that are cut")
            else:
                has(tally("script", "-i", path).stderr, "copies enough")


def compiled(folder, text, *flags):
    """A C program of that text."""
    need("gcc")
    source, path = f"{folder}/prog.c", f"{folder}/prog"
    pathlib.Path(source).write_text(text)
    done = run("gcc", "-O2", "-g", *flags, "-o", path, source)
    same(done.returncode, 0, done.stderr)
    return path


OTHER_STACK = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void burn(void) { for (int i = 0; i < 3000000; i++) sink += (unsigned long)i; }
static void handler(int sig) { (void)sig; burn(); }
__attribute__((noinline)) static int deep(int d) { if (!d) { raise(SIGUSR1); return 1; } return deep(d - 1) + (int)(sink & 1); }
int main(void)
{
	struct timespec t;
	stack_t other = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &t);
	for (time_t end = t.tv_sec + 1; t.tv_sec <= end; clock_gettime(CLOCK_MONOTONIC, &t))
		deep(5);
	return 0;
}
"""


@test
def no_longer_copy_is_advised_where_none_reaches():
    with scratch() as folder:
        prog, path = compiled(folder, OTHER_STACK), f"{folder}/data"
        for keep in ("--no-keep-stacks", "--keep-stacks"):
            done = tally("record", "-F", "499", "--call-graph", "dwarf", keep, "-o", path, "--", prog)
            texts = [tally("report", "-i", path).stdout, tally("script", "-i", path).stderr]
            if keep == "--no-keep-stacks":
                texts.append(done.stderr)
            for text in texts:
                cut = int(re.search(r"(\d+) (of \d+ user stacks .* )?are cut", text).group(1))
                beyond = int(re.search(r"(\d+) of them go on where no copy reaches", text).group(1))
                assert 100 < beyond and beyond >= 0.95 * cut, text


CONTEXTS = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
static volatile unsigned long sink;
static ucontext_t outside, inside;
__attribute__((noinline)) static void burn(int n) { for (int i = 0; i < n; i++) sink += (unsigned long)i; }
__attribute__((noinline)) static int deep(int d) { if (!d) { burn(100000); return 1; } return deep(d - 1) + (int)(sink & 1); }
static void entry(void) { for (;;) { deep(10); swapcontext(&inside, &outside); } }
int main(void)
{
	struct timespec t;
	getcontext(&inside);
	inside.uc_stack.ss_sp = malloc(65536);
	inside.uc_stack.ss_size = 65536;
	inside.uc_link = &outside;
	makecontext(&inside, entry, 0);
	clock_gettime(CLOCK_MONOTONIC, &t);
	for (time_t end = t.tv_sec + 2; t.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &t))
		swapcontext(&outside, &inside);
	return 0;
}
"""


@test
def a_stack_of_makecontext_begins_where_nobody_called():
    """libgcc ends there, too: the return address is the first of a function, and no table tells of what is before."""
    with scratch() as folder:
        prog, path = compiled(folder, CONTEXTS, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"), f"{folder}/data"
        tally("record", "-q", "-F", "499", "--call-graph", "dwarf", "-o", path, "--", prog)
        stacks = tally("script", "-i", path, "-F", "ip,sym").stdout.split("\n\n")
        inside = [s for s in stacks if "entry" in s]
        assert len(inside) > 100, f"{len(inside)} of {len(stacks)} stacks"
        begun = [s for s in inside if "start_context" in s.splitlines()[-1] or "entry" in s.splitlines()[-2]]
        assert len(begun) >= 0.99 * len(inside), inside[0]
        whole, all_ = map(int, re.search(r"# (\d+) of (\d+) user stacks are whole",
                                         tally("report", "-i", path).stdout).groups())
        assert whole >= 0.99 * all_, f"{whole} of {all_} stacks are whole"


@test
def perf_reads_an_unwound_recording():
    need("perf")
    argv = program("c") or skip("there is no C compiler here")
    with scratch() as folder:
        path = f"{folder}/data"
        tally("record", "-q", "-F", "499", "--call-graph", "dwarf", "-o", path, "--", *argv, "1")
        perf = run("perf", "script", "--no-inline", "-i", path, "-F", "tid,time,ip").stdout
        ours = tally("script", "-i", path, "-F", "tid,time,ip").stdout
        words = [[line.split() for line in text.splitlines() if line.strip()] for text in (perf, ours)]
        same(words[0], words[1], "perf's stacks")


@test
def g_tries_out_how_call_graphs_are_found_and_says_so():
    argv = program("c") or skip("there is no C compiler here")
    with scratch() as folder:
        path = f"{folder}/data"
        for words, how in (("-g",), None), (("--call-graph", "fp"), "fp"):
            done = tally("record", *words, "-o", path, "--", *argv, "0.3")
            same(done.returncode, 0, f"the status of record ({done.stderr})")
            said = re.search(r"--call-graph (fp|dwarf)\): in a trial frame pointers found (\d+) of (\d+)", done.stderr)
            assert bool(said) == (how is None), done.stderr
            if said:
                whole, all_ = int(said.group(2)), int(said.group(3))
                same(said.group(1), "fp" if whole >= 0.95 * all_ else "dwarf", f"the choice for {whole} of {all_}")
                with_stacks = "stack_len=" in tally("script", "-D", "-i", path).stdout
                same(with_stacks, said.group(1) == "dwarf", "whether samples have room for a stack")


if __name__ == "__main__":
    sys.exit(main())
