#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stat's other shapes: intervals, sums by CPU and by thread, CSV, delays, where results go. perf is the referee."""
import json
import os
import re
import signal
import subprocess
import sys

from tapcli import TALLY, TOUCH, has, main, need, run, same, scratch, skip, tally, test, wait_for_counters

RUNS = 10
EVENTS = "page-faults,cpu-clock,dummy"


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def online():
    found = []
    for part in open("/sys/devices/system/cpu/online").read().strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def may_count_cpus():
    done = tally("stat", "-a", "-e", "dummy", "--", "true")
    if done.returncode:
        skip("this user may not count CPUs")


def shape(field):
    """What kind of thing a field of CSV is: a figure, or just what it says."""
    if re.fullmatch(r" *\d+\.\d{9}", field):
        return "time"
    if re.fullmatch(r"\d+\.\d{3}", field):
        return "0.000"
    if re.fullmatch(r"\d+\.\d\d", field):
        return "0.00"
    if re.fullmatch(r"\d+\.\d\d%", field):
        return "0.00%"
    if field in ("K/sec", "M/sec", "G/sec"):
        return "/sec"
    return re.sub(r"^\d+$", "0", field)


def csv(program, *words):
    done = run(program, "stat", "-x;", "-o", "/dev/stdout", *words)
    lines = [x for x in done.stdout.splitlines() if x and not x.startswith("#")]
    return [[shape(field) for field in line.split(";")] for line in lines]


@test
def csv_has_the_columns_of_perf():
    command = ["--", "sleep", "0.13"]
    cpu_modes = [["-a", way] for way in ("-A", "--per-core", "--per-die", "--per-socket", "--per-node")]
    modes = [[], ["-r", "3"], ["-I", "50"]]
    may_count = not tally("stat", "-a", "-e", "dummy", "--", "true").returncode
    for mode in modes + (cpu_modes + [x + ["-I", "50"] for x in cpu_modes] if may_count else []):
        ours = csv(TALLY, "-e", EVENTS, *mode, *command)
        theirs = csv(need("perf"), "-e", EVENTS, *mode, *command)
        if "-I" in mode:
            # How many intervals fit is chance; of each there are all events.
            assert len(ours) >= 3 and len(theirs) >= 3, (mode, ours, theirs)
            each = 3 * (len(online()) if "-A" in mode else 1)
            ours, theirs = ours[:each], theirs[:each]
        same(len(ours), len(theirs), f"number of lines with {mode}")
        for our, their in zip(ours, theirs):
            # perf calls it not counted when the task never ran in an interval, which is chance.
            if "<not counted>" not in their:
                same(our, their, f"line with {mode}")


@test
def csv_tells_what_was_not_supported_as_perf_does():
    for way in ([], ["-r", "2"]):
        ours, theirs = (csv(x, "-e", "cycles", *way, "--", "true") for x in (TALLY, need("perf")))
        if "<not supported>" not in theirs[0]:
            skip("this machine has hardware counters")
        # Who may not count in the kernel is refused twice by perf, which tells of the second time.
        same(ours, [[re.sub("^cycles:u$", "cycles", field) for field in line] for line in theirs], "lines")


@test
def csv_takes_a_tab_in_words():
    done = tally("stat", "-x", r"\t", "-o", "-", "-e", "dummy", "--", "true")
    same(done.stdout.count("\t"), 6, "tabs")


def sum_of_intervals(pages):
    """The page faults of TOUCH that the intervals of a run add up to, and how many intervals there were."""
    done = run(need("setarch"), "-R", TALLY, "stat", "-j", "-o", "-", "-I", "1", "-e", "page-faults:u", "--", TOUCH,
               pages, "2", "2")
    return sum(row["value"] for row in rows(done.stdout)), len(rows(done.stdout))


@test
def intervals_add_up_to_what_was_touched():
    # By turns, so that what the page cache holds of the program is the same for both.
    pairs = [(sum_of_intervals("0"), sum_of_intervals("20000")) for _ in range(RUNS)]
    twin, total = min(twin[0] for twin, _ in pairs), min(full[0] for _, full in pairs)
    assert max(full[1] for _, full in pairs) > 1, "there was one interval alone"
    same(total - twin, 5 * 20000, f"faults, by {pairs}")


@test
def intervals_are_in_order_and_end_with_the_command():
    done = tally("stat", "-j", "-o", "-", "-I", "20", "-e", "page-faults,dummy", "--", "sleep", "0.1")
    found = rows(done.stdout)
    same([r["event"] for r in found], ["page-faults", "dummy"] * (len(found) // 2), "events")
    times = [r["interval"] for r in found[::2]]
    same(times, sorted(set(times)), "times")
    same(times, [r["interval"] for r in found[1::2]], "times of the other event")
    assert times[-1] >= 0.1, times
    text = tally("stat", "-I", "20", "-e", "page-faults", "--", "sleep", "0.05").stderr
    same(text.splitlines()[0], "#           time             counts unit events", "head")
    assert re.match(r"^ +0\.\d{9} +\d+ +page-faults$", text.splitlines()[1]), text


@test
def intervals_are_counted_out():
    done = tally("stat", "-j", "-o", "-", "-I", "10", "--interval-count", "2", "-e", "dummy", "--", "sh", "-c",
                 "sleep 0.3; exit 5")
    same((done.returncode, len(rows(done.stdout))), (5, 2), "status and lines")
    done = tally("stat", "-j", "-o", "-", "-I", "10", "--interval-count", "3", "-e", "dummy", "-p", os.getpid())
    same((done.returncode, len(rows(done.stdout))), (0, 3), "status and lines")


@test
def each_interval_is_printed_at_once():
    words = [TALLY, "stat", "-j", "-o", "-", "-I", "10", "-e", "page-faults", "-p", str(os.getpid())]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        first = json.loads(child.stdout.readline())
        assert first["interval"] > 0, first
        child.send_signal(signal.SIGINT)
        rest = rows(child.stdout.read())
        # The piece of an interval before the signal is told too; perf ends by the signal itself.
        same(child.wait(timeout=30), -signal.SIGINT, "status")
        assert rest and rest[-1]["interval"] > first["interval"], rest


@test
def an_interrupt_shows_what_was_counted():
    for sig in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([TALLY, "stat", "-j", "-o", "-", "-e", "page-faults", "-p", str(os.getpid())],
                              stdout=subprocess.PIPE, text=True) as child:
            wait_for_counters(child.pid)
            child.send_signal(sig)
            same([r["event"] for r in rows(child.stdout.read())], ["page-faults"], "events")
            same(child.wait(timeout=30), -sig, "status")


@test
def each_cpu_has_its_rows():
    may_count_cpus()
    last = online()[-1]
    done = tally("stat", "-a", "-A", "-j", "-o", "-", "-e", "page-faults,dummy", "--", need("taskset"), "-c", last,
                 TOUCH, "30000")
    found = rows(done.stdout)
    same([(r["event"], r["cpu"]) for r in found],
         [(event, cpu) for event in ("page-faults", "dummy") for cpu in online()], "rows")
    assert found[len(online()) - 1]["value"] >= 30000, found
    done = tally("stat", "-C", last, "-A", "-e", "page-faults", "--", "true")
    assert re.search(rf"^CPU{last} +[\d,]+ +page-faults$", done.stderr, flags=re.M), done.stderr


@test
def cpus_are_summed_by_their_place():
    may_count_cpus()

    def topology(cpu, name):
        try:
            return max(int(open(f"/sys/devices/system/cpu/cpu{cpu}/topology/{name}").read()), 0)
        except OSError:
            return 0
    def where(cpu):
        return tuple(topology(cpu, x) for x in ("physical_package_id", "die_id", "core_id"))
    ways = [("--per-core", ("socket", "die", "core")), ("--per-die", ("socket", "die")), ("--per-socket", ("socket",))]
    for way, keys in ways:
        found = rows(tally("stat", "-a", way, "-j", "-o", "-", "-e", "cpu-clock", "--", "true").stdout)
        wanted = {}
        for cpu in online():
            place = where(cpu)[:len(keys)]
            wanted[place] = wanted.get(place, 0) + 1
        same({tuple(r[k] for k in keys): r["cpus"] for r in found}, wanted, f"CPUs with {way}")
    found = rows(tally("stat", "-a", "--per-node", "-j", "-o", "-", "-e", "cpu-clock", "--", "true").stdout)
    same(sum(r["cpus"] for r in found), len(online()), "CPUs of all nodes")


@test
def a_sum_is_that_of_its_cpus():
    """Both are counted at once, from before a fixed load to after it: that load shows in both."""
    may_count_cpus()
    found = rows(tally("stat", "-a", "--per-socket", "-j", "-o", "-", "-e", "page-faults", "--", TOUCH, "20000").stdout)
    assert sum(r["value"] for r in found) >= 20000, found


def threads(count):
    """A process with threads that wait for a line, then touch 1000, 2000 ... fresh pages; and their ids."""
    code = """
import mmap, os, sys, threading
gate, ids = threading.Barrier(COUNT + 1), []
def touch(n):
    ids.append((n, threading.get_native_id()))
    gate.wait(); gate.wait()
    fresh = mmap.mmap(-1, n * 4096)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        fresh.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range(n):
        fresh[i * 4096] = 1
all = [threading.Thread(target=touch, args=((i + 1) * 1000,)) for i in range(COUNT)]
for t in all: t.start()
gate.wait()
print(*["%d:%d" % x for x in ids], flush=True)
sys.stdin.readline()
gate.wait()
for t in all: t.join()
""".replace("COUNT", str(count))
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = child.stdout.readline().split()
    return child, {int(tid): int(pages) for pages, tid in (x.split(":") for x in line)}


def counting(pid, *words):
    child = subprocess.Popen([TALLY, "stat", "-j", "-o", "-", "-e", "page-faults:u", "-p", str(pid), *words],
                             stdout=subprocess.PIPE, text=True)
    wait_for_counters(child.pid)
    return child


@test
def threads_add_up_to_their_process():
    if os.sysconf("SC_PAGE_SIZE") != 4096:
        skip("the pages are not of 4096 bytes")
    process, ids = threads(4)
    with process, counting(process.pid) as whole, counting(process.pid, "--per-thread") as each:
        process.communicate("\n")
        total, found = rows(whole.stdout.read())[0]["value"], rows(each.stdout.read())
    same(sum(r["value"] for r in found), total, "sum")
    values = {r["tid"]: r["value"] for r in found}
    same(len(values), 5, "threads")
    for tid, pages in ids.items():
        assert pages <= values[tid] < pages + 900, (pages, values[tid])
    assert all(r["thread"] for r in found), found


@test
def threads_are_named_as_perf_names_them():
    process, ids = threads(1)
    with process:
        words = ["stat", "-x,", "-o", "/dev/stdout", "--per-thread", "-e", "dummy", "-p", process.pid]
        ours = tally(*words, "--", "true").stdout
        theirs = run(need("perf"), *words, "--", "true").stdout
        process.communicate("\n")
    first = [x.split(",")[0] for x in theirs.splitlines() if "dummy" in x]
    same(len(first), 2, "perf's threads")
    same(sorted(x.split(",")[0] for x in ours.splitlines()), sorted(first), "names")


@test
def a_delay_leaves_out_what_came_before():
    done = tally("stat", "-j", "-o", "-", "-D", "100000", "-e", "page-faults", "--", TOUCH, "3000")
    same([r["value"] for r in rows(done.stdout)], [None], "value of what never began")
    done = tally("stat", "-D", "100000", "-e", "page-faults", "--", TOUCH, "3000")
    has(done.stderr, "<not counted>")
    has(done.stderr, "never began")
    done = tally("stat", "-j", "-o", "-", "-D", "1", "-e", "page-faults", "--", "sh", "-c", "sleep 1; " + TOUCH + " 3000")
    assert rows(done.stdout)[0]["value"] >= 3000, done.stdout


@test
def groups_are_seen():
    text = tally("stat", "-e", "dummy,{page-faults,minor-faults,major-faults}", "--", "true").stderr
    marks = re.findall(r"^ +\d+ +([{|}]?) ?(?:dummy|\w+-faults)", text, flags=re.M)
    same(marks, ["", "{", "|", "}"], "marks")


@test
def detailed_events_are_those_of_perf():
    for flag in ("-d", "-dd", "-ddd"):
        ours = [r["event"] for r in rows(tally("stat", "-j", "-o", "-", flag, "--", "true").stdout)]
        theirs = run(need("perf"), "stat", *["-d"] * (len(flag) - 1), "-x,", "-o", "/dev/stdout", "--", "true").stdout
        named = [x.split(",")[2] for x in theirs.splitlines() if x.count(",") > 3]
        same(ours, [x.split(":")[0] for x in named if not x.startswith("stalled")], f"events of {flag}")
    same([r["event"] for r in rows(tally("stat", "-j", "-o", "-", "-d", "-e", "dummy", "--", "true").stdout)][:2],
         ["dummy", "L1-dcache-loads"], "events")


def with_tracefs(*words):
    """Runs tally where tracefs is mounted, in a mount namespace of its own."""
    if os.path.isdir("/sys/kernel/tracing/events"):
        return tally(*words)
    done = run("unshare", "-m", "sh", "-c", 'mount -t tracefs t /sys/kernel/tracing || exit 99; exec "$@"', "sh", TALLY,
               *words)
    if done.returncode == 99:
        skip("tracefs cannot be mounted")
    return done


@test
def a_filter_chooses_what_counts():
    """The exit of a process has its pid, which the shell tells."""
    need("unshare")
    event = "sched:sched_process_exit"
    done = with_tracefs("stat", "-j", "-o", "-", "-e", event, "--", "sh", "-c", "true & wait; exit 0")
    if done.returncode:
        skip("this user may not count tracepoints")
    same(rows(done.stdout)[0]["value"], 2, "exits")
    words = ["stat", "-j", "-o", "-", "-e", event, "--filter", 'comm == "tally-other"', "-e", "dummy", "--"]
    with scratch() as folder:
        other = os.path.join(folder, "tally-other")
        os.symlink(need("true"), other)
        done = with_tracefs(*words, "sh", "-c", f"{other} & {other} & true & wait; exit 0")
    same([r["value"] for r in rows(done.stdout)], [2, 0], "exits of the one that is wanted")
    done = with_tracefs("stat", "-e", event, "--filter", "nonsense == 1", "--", "echo", "ran")
    assert done.returncode and not done.stdout, done
    has(done.stderr, "nonsense")


@test
def results_are_added_to_a_file_or_go_to_a_descriptor():
    with scratch() as folder:
        path = os.path.join(folder, "out")
        for _ in range(2):
            same(tally("stat", "-j", "-o", path, "--append", "-e", "dummy", "--", "true").returncode, 0, "status")
        same(len(rows(open(path).read())), 2, "lines")
        tally("stat", "-j", "-o", path, "-e", "dummy", "--", "true")
        same(len(rows(open(path).read())), 1, "lines")
        with open(path, "w") as to:
            done = tally("stat", "-j", "--log-fd", to.fileno(), "-e", "dummy", "--", "true", pass_fds=[to.fileno()])
        same((done.stdout, done.stderr), ("", ""), "output")
        same(len(rows(open(path).read())), 1, "lines")
    done = tally("stat", "--log-fd", "77", "--", "echo", "must not run")
    same((done.returncode, done.stdout), (1, ""), "status and output")
    has(done.stderr, "77")


@test
def quiet_prints_nothing():
    done = tally("stat", "--quiet", "--", "sh", "-c", "exit 3")
    same((done.returncode, done.stdout, done.stderr), (3, "", ""), "answer")


@test
def commands_run_around_each_run():
    done = tally("stat", "-r", "2", "--pre", "echo a", "--post", "echo b", "-j", "-o", "-", "-e", "page-faults", "--",
                 "echo", "x")
    same(done.stdout.split("{")[0].split(), ["a", "x", "b"] * 2, "order")
    done = tally("stat", "--pre", "exit 3", "--", "echo", "must not run")
    same((done.returncode, done.stdout), (1, ""), "status and output")
    has(done.stderr, "--pre")


@test
def each_run_is_told_in_a_table():
    text = tally("stat", "-r", "3", "--table", "-e", "dummy", "--", "true").stderr
    same(len(re.findall(r"^ +\d+\.\d{7} \([+-]\d+\.\d{7}\) #+$", text, flags=re.M)), 3, "runs")


@test
def a_timeout_ends_the_command():
    same(tally("stat", "--timeout", "100", "-e", "dummy", "--", "sleep", "100").returncode, 128 + signal.SIGTERM, "status")


@test
def what_excludes_each_other_is_said():
    wrong = [["-A"], ["--per-core"], ["-p", "1", "--per-socket"], ["--per-thread"], ["-a", "--per-thread"],
             ["-a", "-A", "--per-core"], ["-I", "0"], ["-I", "10", "-r", "2"], ["-I", "10", "-n"], ["--interval-count", "2"],
             ["-j", "-x,"], ["-o", "f", "--log-fd", "2"], ["--append"], ["--table"], ["-D", "-1"], ["-D", "x"],
             ["--timeout", "5", "--duration", "1"], ["--filter", "x == 1"], ["-e", "dummy", "--filter", "x == 1"],
             ["-n", "-d"]]
    for words in wrong:
        done = tally("stat", *words, "--", "echo", "ran")
        same((done.returncode, done.stdout), (2, ""), f"answer to {words}")
        has(done.stderr, "tally stat: ")


if __name__ == "__main__":
    sys.exit(main())
