#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stat --baseline: two commands by turns. What differs is known, because the test chose it."""
import json
import re
import signal
import subprocess
import sys

from tapcli import TALLY, TOUCH, has, main, need, run, same, skip, tally, test


# A run may be disturbed, which adds a fault or two: the least is the program's own.
DISTURBED = 2


def rows(done):
    same(done.returncode, 0, "status")
    return {row["event"]: row for row in map(json.loads, done.stdout.splitlines())}


def touch(pages):
    return [TOUCH, str(pages)]


def compared(baseline, command, *words):
    # Without randomized addresses the loader takes the same faults each time.
    return rows(run(need("setarch"), "-R", TALLY, "stat", "-j", "-o", "-", "-e", "page-faults:u", *words, "--baseline",
                    " ".join(baseline), "--", *command))


@test
def a_program_does_not_differ_from_itself():
    row = compared(touch(500), touch(500))["page-faults:u"]
    same((row["verdict"], row["pairs"]), ("same", 10), "verdict and pairs")
    assert row["low"] <= 0 <= row["high"] and abs(row["difference"]) <= DISTURBED, row
    same(row["command"]["min"], row["baseline"]["min"], "least faults of both")
    done = tally("stat", "-e", "page-faults:u", "--baseline", " ".join(touch(500)), "--", *touch(500))
    assert re.search(r"page-faults:u +no difference seen \(", done.stderr), done.stderr


@test
def a_hundred_pages_more_are_a_hundred_faults_more():
    found = compared(touch(500), touch(600))
    row = found["page-faults:u"]
    same(row["verdict"], "more", "verdict")
    same(row["command"]["min"] - row["baseline"]["min"], 100, "difference of the least")
    assert row["low"] <= 100 <= row["high"] and abs(row["difference"] - 100) <= DISTURBED, row
    assert abs(row["percent"] - 100 * row["difference"] / row["baseline"]["median"]) < 0.01, row
    same(list(found)[1:], ["wall", "user", "sys", "max-rss"], "measures beside the events")
    row = compared(touch(600), touch(500))["page-faults:u"]
    same(row["verdict"], "less", "verdict the other way round")
    assert abs(row["difference"] + 100) <= DISTURBED, row


@test
def a_table_tells_the_difference():
    text = tally("stat", "-e", "page-faults:u", "-r", "5", "--baseline", " ".join(touch(500)), "--", *touch(600)).stderr
    assert re.search(r"page-faults:u +\+\d+\.\d\d = \+[\d.]+% \(", text), text
    has(text, "5 pairs of runs")
    has(text, "time elapsed")


@test
def memory_and_time_are_compared_too():
    # 40 MB and a third of a second are more than anything that varies here.
    found = compared(["true"], [sys.executable, "-c", "x = bytearray(b'x') * 40000000; import time; time.sleep(0.3)"],
                     "-r", "4")
    assert found["max-rss"]["verdict"] == "more" and found["max-rss"]["difference"] > 30e6, found["max-rss"]
    assert found["wall"]["verdict"] == "more" and found["wall"]["difference"] > 0.25e9, found["wall"]


@test
def commands_run_by_turns_after_a_warm_up():
    done = tally("stat", "-n", "-r", "2", "-o", "/dev/null", "--baseline", "echo 'a  b'", "--", "echo", "c")
    same(done.stdout.splitlines(), ["a  b", "c"] * 3, "output")


@test
def two_runs_are_not_enough_to_be_sure():
    same(compared(touch(0), touch(100), "-r", "2")["page-faults:u"]["verdict"], "unknown", "verdict")
    text = tally("stat", "-n", "-r", "2", "--baseline", "true", "--", "true").stderr
    has(text, "too few runs to be sure")


@test
def a_shell_runs_what_needs_one():
    done = tally("stat", "-n", "-r", "1", "--baseline", "echo a | cat; echo $((1 + 1))", "--", "true")
    same(done.stdout.splitlines(), ["a", "2"] * 2, "output")
    has(done.stderr, "sh runs it")
    has(done.stderr, "'sh -c echo a | cat; echo $((1 + 1))'")


@test
def what_fails_is_said():
    done = tally("stat", "-n", "-r", "2", "--baseline", "false", "--", "sh", "-c", "exit 3")
    same(done.returncode, 3, "status")
    has(done.stderr, "the baseline exited with 1: 2 of 2 runs failed")
    has(done.stderr, "the command exited with 3: 2 of 2 runs failed")
    same(tally("stat", "-n", "--baseline", "no-such-command-anywhere", "--", "true").returncode, 127, "status")


@test
def an_interrupt_keeps_the_pairs_that_are_whole():
    words = [TALLY, "stat", "-n", "-j", "-o", "-", "-r", "1000", "--baseline", "true", "--", "echo", "x"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(4):
            same(child.stdout.readline(), "x\n", "output")
        child.send_signal(signal.SIGINT)
        found = [json.loads(x) for x in child.stdout.read().splitlines() if x != "x"]
        child.wait(timeout=30)
    same([x["event"] for x in found], ["wall", "user", "sys", "max-rss"], "rows")
    assert 2 <= found[0]["pairs"] < 1000, found


@test
def missing_events_are_no_difference():
    done = tally("stat", "-j", "-o", "-", "-r", "1", "-e", "cycles,page-faults", "--baseline", "true", "--", "true")
    row = rows(done)["cycles"]
    if "why" not in row:
        skip("this machine has hardware counters")
    assert "difference" not in row and "baseline" not in row, row
    same(row["state"], "error", "state")


@test
def wrong_usage_is_said():
    wrong = [["-a"], ["-I", "10"], ["-x,"], ["-r", "0"], ["-r", "1001"], ["--table", "-r", "3"], ["-D", "5"]]
    for words in wrong:
        done = tally("stat", *words, "--baseline", "true", "--", "echo", "ran")
        same((done.returncode, done.stdout), (2, ""), f"answer to {words}")
    same(tally("stat", "--baseline", "true").returncode, 2, "status without a command")
    for words, part in (["--baseline", " "], "--baseline: there is no command in it"), (
            ["--baseline", "true", "-I", "10"], "--baseline cannot be combined with -I"):
        done = tally("stat", *words, "--", "echo", "ran")
        same((done.returncode, done.stdout), (2, ""), f"answer to {words}")
        has(done.stderr, part)
    for text in ("", "a 'b"):
        done = tally("stat", "--baseline", text, "--", "echo", "ran")
        same((done.returncode, done.stdout), (2, ""), f"answer to {text!r}")
        has(done.stderr, "--baseline")


if __name__ == "__main__":
    sys.exit(main())
