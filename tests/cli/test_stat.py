#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stat: what it prints, where, and how it exits; with perf stat as the referee of its counts."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from tapcli import (TALLY, TOUCH, has, main, need, needs_kernel_mode, run, same, scratch, skip, tally, test,
                    wait_for_counters, watches_kernel)

# All that a line has, and what some lines have more.
MORE = ["group", "metric", "metric_unit", "compromise"]
KEYS = ["event", "value", "unit", "state", "raw", "enabled_ns", "running_ns", "lost"]
RUNS = 5


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def counts(*words, **more):
    """{event: value} of a run, from its JSON."""
    done = tally("stat", "--json", "-o", "-", *words, **more)
    same(done.returncode, 0, "status")
    return {row["event"]: row["value"] for row in rows(done.stdout)}


def least(measure):
    """A run may be disturbed, which only adds faults and switches: the least is the program's own."""
    return min(measure() for _ in range(RUNS))


def environment_of_perf():
    """perf puts a folder into PATH of what it runs, and longer strings may take another page of its stack."""
    done = run(need("perf"), "stat", "-o", "/dev/null", "--", "env", "-0")
    return dict(word.split("=", 1) for word in done.stdout.split("\0") if word)


def counts_by_turns(event, *command):
    """The least that tally counts, and perf. By turns: what the page cache holds of the program is the same for both.
    Without randomized addresses the loader takes the same faults each time."""
    same_environment = environment_of_perf()

    def ours():
        done = run(need("setarch"), "-R", TALLY, "stat", "--json", "-o", "-", "-e", event, "--", *command,
                   env=same_environment)
        return rows(done.stdout)[0]["value"]

    def theirs():
        done = run(need("setarch"), "-R", need("perf"), "stat", "-x,", "-o", "/dev/stdout", "-e", event, "--",
                   *command)
        line = [x for x in done.stdout.splitlines() if event in x][0]
        return int(line.split(",")[0])
    pairs = [(ours(), theirs()) for _ in range(RUNS)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


@test
def a_command_keeps_its_output_for_itself():
    done = tally("stat", "--", "sh", "-c", "echo out; echo err >&2")
    same(done.returncode, 0, "status")
    same(done.stdout, "out\n", "stdout")
    assert done.stderr.startswith("err\n"), done.stderr
    has(done.stderr, "Performance counter stats for 'sh -c echo out; echo err >&2':")
    has(done.stderr, "seconds time elapsed")
    has(done.stderr, "seconds user")
    has(done.stderr, "seconds sys")


@test
def results_go_to_a_file_or_to_stdout():
    with scratch() as folder:
        path = os.path.join(folder, "out")
        done = tally("stat", "-o", path, "--", "echo", "hello")
        same((done.stdout, done.stderr), ("hello\n", ""), "output")
        with open(path) as file:
            has(file.read(), "page-faults")
    done = tally("stat", "-o", "-", "echo", "hello")
    assert done.stdout.startswith("hello\n"), done.stdout
    has(done.stdout, "page-faults")
    same(done.stderr, "", "stderr")


@test
def results_that_cannot_be_written_are_a_failure():
    done = tally("stat", "-o", "/dev/full", "--", "true")
    same(done.returncode, 1, "status")
    has(done.stderr, "tally stat:")
    has(done.stderr, "/dev/full")
    done = tally("stat", "-o", "/no/such/folder/file", "--", "echo", "must not run")
    same((done.returncode, done.stdout), (1, ""), "status and output")
    has(done.stderr, "/no/such/folder/file")


@test
def the_table_is_aligned_and_separates_thousands():
    done = tally("stat", "-e", "page-faults,task-clock,dummy", "--", TOUCH, "3000")
    lines = [x for x in done.stderr.splitlines() if re.match(r" *[\d,.]+ .*(page-faults|task-clock|dummy)", x)]
    same(len(lines), 3, "rows")
    assert re.search(r"^ *3,\d\d\d      page-faults ", lines[0]), lines[0]
    assert re.search(r"^ *[\d,]+\.\d\d msec task-clock +# +\d\.\d{3} CPUs utilized$", lines[1]), lines[1]
    assert re.search(r"# +[\d.]+ [KM]?/sec$", lines[0]), lines[0]
    for line in lines:
        same(len(re.match(r" *\S+", line).group(0)), 18, "where the figures end")
    done = tally("stat", "--no-big-num", "-e", "page-faults", "--", TOUCH, "3000")
    assert re.search(r"^ *3\d\d\d      page-faults$", done.stderr, flags=re.M), done.stderr


@test
def each_clock_is_set_against_the_time_that_elapsed():
    cpu, task = rows(tally("stat", "--json", "-e", "cpu-clock,task-clock", "--", "true").stderr)
    # Both by the same time: the shares are as the clocks, which were enabled one after the other.
    share = cpu["metric"] / task["metric"], cpu["value"] / task["value"]
    assert abs(share[0] - share[1]) < 1e-4, (cpu, task)


@test
def json_has_one_object_a_line_with_all_keys():
    last = "context-switches" if watches_kernel() else "minor-faults"
    done = tally("stat", "--json", "-e", "task-clock,{page-faults," + last + "}", "--", "true")
    same(done.stdout, "", "stdout")
    found = rows(done.stderr)
    same([r["event"] for r in found], ["task-clock", "page-faults", last], "events")
    for row in found:
        same([key for key in row if key not in MORE], KEYS, "keys")
        same(row["state"], "exact", "state")
        same(row["value"], row["raw"], "value")
        same(row["enabled_ns"], row["running_ns"], "running_ns")
        assert row["enabled_ns"] > 0
        same(row["lost"], 0, "lost")
        same("compromise" in row, not watches_kernel(), "whether something was given up")
    same([r["unit"] for r in found], ["ns", "", ""], "units")
    same([r.get("group") for r in found], [None, 1, 1], "the positions of their groups' leaders")


@test
def json_survives_strange_names():
    done = tally("stat", "--json", "-o", "-", "-e", "page-faults", "--", "sh", "-c", ": \x01\"\\")
    same(len(rows(done.stdout)), 1, "objects")
    done = tally("stat", "--", "true", "line\nbreak\x1b[31m")
    has(done.stderr, "'true line?break?[31m'")


@test
def touched_pages_are_counted_exactly():
    def faults(pages):
        done = run(need("setarch"), "-R", TALLY, "stat", "--json", "-o", "-", "-e", "page-faults:u", "--",
                   TOUCH, pages, "2", "2")
        return rows(done.stdout)[0]["value"]
    # By turns, so that what the page cache holds of the program is the same for both.
    pairs = [(faults("0"), faults("1000")) for _ in range(RUNS)]
    same(min(b for _, b in pairs) - min(a for a, _ in pairs), 5000, f"faults of 5 x 1000 pages, by {pairs}")


@test
def page_faults_are_those_of_perf():
    ours, theirs = counts_by_turns("page-faults", TOUCH, "5000")
    same(ours, theirs, "faults")


@test
def context_switches_are_those_of_perf():
    needs_kernel_mode()
    # Each child is waited for: a switch each, and more by chance.
    ours, theirs = counts_by_turns("context-switches", TOUCH, "0", "0", "20")
    assert ours >= 20 and abs(ours - theirs) <= 5, (ours, theirs)


@test
def task_clock_is_the_time_that_the_command_used():
    """The kernel tells the same run's user and system time at its end, which holds on a busy machine too."""
    text = tally("stat", "-e", "task-clock", "--", "sh", "-c",
                 "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").stderr
    clock = float(re.search(r"([\d.,]+) msec task-clock", text)[1].replace(",", ""))
    used = sum(float(re.search(r"([\d.]+) seconds " + kind, text)[1]) * 1e3 for kind in ("user", "sys"))
    # What came before the exec, and ended after it, is not the command's.
    assert used * 0.75 < clock < used + 5, (clock, used)


@test
def inherited_or_not_is_chosen():
    def faults(*words):
        return least(lambda: counts("-e", "page-faults", *words, "--", TOUCH, "1000", "1", "1")["page-faults"])
    assert faults() >= 3000
    assert 1000 <= faults("-i") < 2000
    assert 1000 <= faults("--no-inherit") < 2000
    assert faults("--inherit") >= 3000


@test
def repeated_runs_give_mean_and_spread():
    done = tally("stat", "-r", "5", "-e", "page-faults", "--", TOUCH, "1000")
    has(done.stderr, "(5 runs):")
    assert re.search(r"^ +1,\d\d\d +page-faults +\( \+- +\d+\.\d\d% \)$", done.stderr, flags=re.M), done.stderr
    assert re.search(r"\d\.\d+ \+- \d+\.\d+ seconds time elapsed  \( \+- ", done.stderr), done.stderr
    done = tally("stat", "-r", "4", "--json", "-o", "-", "-e", "page-faults", "--", TOUCH, "1000")
    row = rows(done.stdout)[0]
    same(row["runs"], 4, "runs")
    assert 1000 <= row["value"] < 1500, row
    assert 0 <= row["spread_percent"] < 50, row
    same(tally("stat", "-r", "3", "-o", "-", "--", "echo", "x").stdout.count("x\n"), 3, "runs of the command")


@test
def the_status_of_the_command_is_passed_on():
    same(tally("stat", "--", "sh", "-c", "exit 41").returncode, 41, "status")
    same(tally("stat", "--", "sh", "-c", "kill -TERM $$").returncode, 128 + 15, "status")
    same(tally("stat", "--", TOUCH, "0", "0", "0", "7").returncode, 7, "status")


@test
def what_cannot_be_run_is_126_or_127():
    done = tally("stat", "--", "no-such-command-anywhere")
    same((done.returncode, done.stdout), (127, ""), "status and output")
    assert re.match(r"tally stat: .*no-such-command-anywhere.*\n$", done.stderr), done.stderr
    done = tally("stat", "--", "/")
    same(done.returncode, 126, "status")
    same(len(done.stderr.splitlines()), 1, "lines")


@test
def wrong_usage_is_2_and_runs_nothing():
    wrong = [[], ["--"], ["-Z", "echo"], ["--no-such", "echo"], ["-e"], ["-e", "", "echo", "ran"],
             ["-e", "no-such-event", "echo", "ran"], ["-e", "{page-faults", "echo", "ran"], ["-r", "x", "echo", "ran"],
             ["-r", "3", "-a"], ["-p", "x"], ["-p", "0"], ["-p", "1,"], ["-t", "-1"], ["-C", "x", "echo", "ran"],
             ["-C", "1-0", "echo", "ran"], ["-p", "1", "-a"], ["--duration", "0", "echo", "ran"],
             ["-n", "-e", "page-faults", "echo", "ran"], ["-n"]]
    for words in wrong:
        done = tally("stat", *words)
        same((done.returncode, done.stdout), (2, ""), f"answer to {words}")
        has(done.stderr, "tally stat: ")


@test
def failures_say_what_and_leave_nobody_behind():
    failing = [["-C", "7777"], ["-p", "2147483646"], ["-t", "2147483646"]]
    for words in failing:
        with subprocess.Popen([TALLY, "stat", *words, "--", "sleep", "100"], stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as child:
            text = child.stderr.read()
            same(child.wait(), 1, f"status of {words}")
            has(text, "tally stat: ")
            has(text, words[1])
            nobody_in(child.pid)


def nobody_in(group):
    """Its session and process group are empty; one that ends may take a moment to be reaped by init."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("somebody is still running")


def interrupt(words, sig, whole_group):
    """Starts it, waits until its command runs, sends the signal; its status and what it printed."""
    with subprocess.Popen([TALLY, "stat", *words, "--", "sh", "-c", "echo ready; exec sleep 100"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        same(child.stdout.readline(), "ready\n", "the command's output")
        (os.killpg if whole_group else os.kill)(child.pid, sig)
        text = child.stderr.read()
        status = child.wait(timeout=30)
        nobody_in(child.pid)
        return status, text


@test
def an_interrupted_command_is_still_counted():
    for sig in (signal.SIGINT, signal.SIGTERM):
        for whole_group in (True, False):
            status, text = interrupt(["-e", "page-faults"], sig, whole_group)
            same(status, 128 + sig, "status")
            assert re.search(r"^ +\d+ +page-faults$", text, flags=re.M), text


@test
def an_interrupt_ends_the_repeating():
    status, text = interrupt(["-r", "0", "-e", "page-faults"], signal.SIGINT, False)
    same(status, 128 + signal.SIGINT, "status")
    same(text.count("seconds time elapsed"), 1, "tables")


@test
def a_duration_ends_the_command():
    done = tally("stat", "--duration", "0.2", "-e", "page-faults", "--", "sleep", "100")
    same(done.returncode, 128 + signal.SIGTERM, "status")
    has(done.stderr, "page-faults")


def sleeper():
    return subprocess.Popen(["sh", "-c", "echo ready; read line; " + TOUCH + " 2000"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


@test
def a_running_process_is_counted_until_it_ends():
    with sleeper() as other:
        same(other.stdout.readline(), "ready\n", "its output")
        with subprocess.Popen([TALLY, "stat", "--json", "-o", "-", "-e", "page-faults", "-p", str(other.pid)],
                              stdout=subprocess.PIPE, text=True) as child:
            wait_for_counters(child.pid)
            other.communicate("\n")
            row = json.loads(child.stdout.read())
            same(child.wait(), 0, "status")
            assert 2000 <= row["value"] < 3000, row


@test
def several_processes_are_summed():
    with sleeper() as one, sleeper() as two:
        for other in (one, two):
            same(other.stdout.readline(), "ready\n", "its output")
        pids = f"{one.pid},{two.pid}"
        with subprocess.Popen([TALLY, "stat", "--json", "-o", "-", "-e", "page-faults", "-p", pids],
                              stdout=subprocess.PIPE, text=True) as child:
            wait_for_counters(child.pid)
            one.communicate("\n")
            two.communicate("\n")
            row = json.loads(child.stdout.read())
            assert 4000 <= row["value"] < 6000, row


@test
def a_thread_is_counted_for_a_duration():
    done = tally("stat", "-t", str(os.getpid()), "--duration", "0.1", "-e", "task-clock")
    same(done.returncode, 0, "status")
    has(done.stderr, f"thread id '{os.getpid()}'")
    assert "seconds user" not in done.stderr, done.stderr


@test
def cpus_are_counted_while_a_command_runs():
    done = tally("stat", "-a", "-e", "page-faults", "--", TOUCH, "1000")
    if "paranoid" in done.stderr:
        skip("this user may not count CPUs")
    same(done.returncode, 0, "status")
    has(done.stderr, "'system wide'")
    assert int(re.search(r"([\d,]+) +page-faults", done.stderr).group(1).replace(",", "")) >= 1000
    done = tally("stat", "-C", "0", "--duration", "0.1")
    has(done.stderr, "'CPU(s) 0'")
    has(done.stderr, "cpu-clock")


@test
def a_null_run_has_times_alone():
    done = tally("stat", "-n", "--", "true")
    same(done.returncode, 0, "status")
    has(done.stderr, "seconds time elapsed")
    assert "task-clock" not in done.stderr and "page-faults" not in done.stderr, done.stderr


@test
def several_lists_of_events_are_one():
    found = counts("-e", "page-faults", "-e", "dummy,task-clock", "--", "true")
    same(list(found), ["page-faults", "dummy", "task-clock"], "events")


@test
def missing_hardware_counters_are_said_once():
    done = tally("stat", "--", "true")
    missing = re.findall(r"^ +<not supported> +(\S+)$", done.stderr, flags=re.M)
    if not missing:
        skip("this machine has hardware counters")
    same(done.returncode, 0, "status")
    # What happens in the kernel alone is not for everybody, for a reason of its own.
    forbidden = [] if watches_kernel() else ["context-switches", "cpu-migrations"]
    same(missing, forbidden + ["cycles", "instructions", "branches", "branch-misses"], "missing events")
    same(len(re.findall(r"<not supported>: ", done.stderr)), 1 + bool(forbidden), "lines that say why")
    row = rows(tally("stat", "--json", "-o", "-", "-e", "cycles", "--", "true").stdout)[0]
    same((row["value"], row["state"]), (None, "error"), "value and state")
    assert row["why"], row


@test
def default_events_are_those_of_perf():
    ours = [r["event"] for r in rows(tally("stat", "--json", "-o", "-", "--", "true").stdout)]
    theirs = run(need("perf"), "stat", "-x,", "-o", "/dev/stdout", "--", "true").stdout
    named = [x.split(",")[2] for x in theirs.splitlines() if x.count(",") > 3]
    # perf adds those on machines that have them.
    same(ours, [x.split(":")[0] for x in named if not x.startswith("stalled")], "events")


@test
def verbose_shows_raw_figures():
    done = tally("stat", "-v", "-e", "page-faults", "--", "true")
    assert re.search(r"page-faults: raw \d+, enabled \d+ ns, running \d+ ns, lost 0, exact", done.stderr), done.stderr


def options(text):
    """{letter: long name} of a help text in the way of perf or tally."""
    return dict(re.findall(r"^ +-(\w), --([\w-]+)", text, flags=re.M))


@test
def letters_mean_what_they_mean_to_perf():
    perf = run(need("perf"), "stat", "-h")
    theirs = options(perf.stdout + perf.stderr)
    ours = options(tally("stat", "-h").stdout)
    assert len(theirs) > 15 and len(ours) > 8, (theirs, ours)
    del ours["h"]
    other_names = {("j", "json"): "json-output"}
    for letter, name in ours.items():
        same(other_names.get((letter, name), name), theirs.get(letter), f"perf's -{letter}")


@test
def a_user_without_rights_is_told_what_is_missing():
    if os.getuid() != 0:
        skip("only root can become another user")
    level = int(open("/proc/sys/kernel/perf_event_paranoid").read())

    def become_nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        run(TALLY, "version", preexec_fn=become_nobody)
    except PermissionError:
        skip("another user may not run the build's files")
    done = tally("stat", "-a", "-e", "page-faults", "--", "true", preexec_fn=become_nobody)
    if level >= 1:
        same(done.returncode, 1, "status")
        has(done.stderr, "perf_event_paranoid")
    done = tally("stat", "-e", "context-switches,page-faults", "--", "true", preexec_fn=become_nobody)
    if level == 2:
        # A 0 would be a lie: switches happen in the kernel.
        assert re.search(r"<not supported> +context-switches", done.stderr), done.stderr
        assert re.search(r"^ +\d+ +page-faults", done.stderr, flags=re.M), done.stderr
        has(done.stderr, "user")


if __name__ == "__main__":
    sys.exit(main())
