#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums up what `meson test` ran, by its testlog.json.

Each point of TAP counts, and a program that crashed, timed out or broke its plan is a failure of its
own. What failed is shown with its output, what was skipped with its reason. The last line is
`N passed, N failed, N skipped`; the exit status is 1 when anything failed or nothing ran.

  test-summary.py LOG [STATUS]    STATUS is that of meson, which may have failed by itself
"""
import json
import re
import sys

POINT = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*([^#]*?)\s*(?:#\s*(skip|todo)\w*:?\s*(.*))?$", re.I)
BAIL_PLAN = re.compile(r"^1\.\.0\s*#\s*skip\w*:?\s*(.*)$", re.I)
GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}


def points(stdout):
    """(state, name, reason) of each point of TAP."""
    for line in stdout.splitlines():
        whole = BAIL_PLAN.match(line)
        if whole:
            yield "skipped", "all", whole.group(1)
            continue
        found = POINT.match(line)
        if not found:
            continue
        bad, name, directive, reason = found.groups()
        if (directive or "").lower() == "skip":
            yield "skipped", name, reason
        elif bad and (directive or "").lower() != "todo":
            yield "failed", name, ""
        else:
            yield "passed", name, ""


def results(test):
    """As points, for one entry of the log, TAP or not."""
    found = list(points(test.get("stdout") or ""))
    if test["result"] not in GOOD and not any(state == "failed" for state, _, _ in found):
        found.append(("failed", f"ends with {test['result'].lower()}, status {test['returncode']}", ""))
    if not found and test["result"] == "SKIP":
        found.append(("skipped", "all", "says no reason"))
    return found or [("passed", "", "")]


def show_failure(test):
    print(f"\n--- {test['name']}: {' '.join(test['command'])}")
    for stream in ("stdout", "stderr"):
        text = (test.get(stream) or "").rstrip()
        if text:
            print(text)


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0}
    skips, failures = [], []
    try:
        with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except OSError as error:
        print(f"no test log: {error}")
        tests = []
    for test in tests:
        found = results(test)
        for state, name, reason in found:
            count[state] += 1
            if state == "skipped":
                skips.append(f"skipped: {test['name']}: {name}: {reason or 'says no reason'}")
            elif state == "failed":
                failures.append(f"failed: {test['name']}: {name}")
        if any(state == "failed" for state, _, _ in found):
            show_failure(test)
    if not tests:
        count["failed"] = 1
        failures.append("failed: no test ran")
    elif not count["failed"] and sys.argv[2:] not in ([], ["0"]):
        count["failed"] = 1
        failures.append(f"failed: meson test ended with status {sys.argv[2]}")
    print()
    for line in skips + failures:
        print(line)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
