#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally doctor: its table, its JSON and its exit status; settings of this machine are the referee."""
import json
import os
import pathlib
import re
import subprocess
import sys

from tapcli import TALLY, has, main, need, run, same, skip, tally, test

STATES = {"ok", "limited", "fails", "unknown"}


def as_rows(text):
    return {row["check"]: row for row in map(json.loads, text.splitlines())}


def rows():
    return as_rows(tally("doctor", "--json").stdout)


def setting(name):
    path = pathlib.Path("/proc/sys/kernel") / name
    return path.read_text().strip() if path.exists() else None


@test
def each_line_of_json_is_a_check():
    found = rows()
    assert len(found) > 15, found
    for row in found.values():
        same(list(row), ["check", "state", "value", "meaning", "mend"], "keys")
        assert row["state"] in STATES, row
        assert row["value"], row
        assert row["state"] == "ok" or row["meaning"], row


@test
def the_table_has_the_same_checks_in_the_same_order():
    table = re.findall(r"^(?:ok|limited|fails|unknown) +(\S+)", tally("doctor").stdout, flags=re.M)
    same(table, list(rows()), "table")


@test
def settings_are_those_of_the_machine():
    found = rows()
    same(found["paranoid"]["value"], setting("perf_event_paranoid") or "no such setting", "paranoid")
    rate = setting("perf_event_max_sample_rate")
    if rate:
        has(found["max-rate"]["value"], rate)


@test
def the_exit_status_says_whether_own_programs_can_be_profiled():
    done = tally("doctor", "--json")
    needed = [row for name, row in as_rows(done.stdout).items() if name in ("perf-events", "count", "sample")]
    same(len(needed), 3, "needed checks")
    works = all(row["state"] in ("ok", "limited") for row in needed)
    same(done.returncode, 0 if works else 1, "status")


@test
def mends_are_shown_whole():
    """A line that is to be pasted is not wrapped."""
    text = tally("doctor").stdout
    for row in rows().values():
        if row["mend"]:
            assert re.search(r"-> " + re.escape(row["mend"]) + r"$", text, flags=re.M), row


@test
def a_file_gets_no_colours():
    assert "\033" not in tally("doctor", env={**os.environ, "TERM": "xterm"}).stdout


def on_terminal(**environment):
    """What it writes to a terminal."""
    try:
        ours, theirs = os.openpty()
    except OSError as error:
        skip(f"there are no pseudo-terminals here: {error}")
    with subprocess.Popen([TALLY, "doctor"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                          env={**os.environ, "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not more:
                break
            written += more
    os.close(ours)
    assert process.returncode in (0, 1), process.returncode
    return written.decode()


@test
def a_terminal_gets_colours_unless_it_says_no():
    colored = on_terminal(NO_COLOR="")
    assert re.search("\033\\[3[123]m(ok|limited|fails)", colored), colored
    plain = on_terminal(NO_COLOR="1")
    has(plain, "perf-events")
    assert "\033[3" not in plain, plain


@test
def a_plain_user_gets_the_command_that_opens_the_kernel():
    if os.geteuid() != 0:
        skip("only root can become another user")
    if int(setting("perf_event_paranoid") or -1) != 2:
        skip("kernel.perf_event_paranoid is not 2, of which this is true")
    done = run(need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", TALLY, "doctor", "--json")
    if not done.stdout:
        skip("another user cannot run the program that was built here")
    found = as_rows(done.stdout)
    same(found["count-kernel"]["state"], "limited", "count-kernel")
    same(found["count-kernel"]["mend"], "sysctl -w kernel.perf_event_paranoid=1", "mend")
    has(found["capabilities"]["mend"], "setcap cap_perfmon,cap_sys_ptrace")


@test
def words_that_mean_nothing_are_refused():
    done = tally("doctor", "everything")
    same(done.returncode, 2, "status")
    has(done.stderr, "tally doctor: there is nothing to do with 'everything'")


sys.exit(main())
