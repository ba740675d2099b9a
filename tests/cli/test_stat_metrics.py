#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stat -M: metrics are computed here once more, from the counts beside them."""
import json
import os
import re
import sys

from tapcli import TOUCH, has, main, same, scratch, tally, test


def rows(done):
    same(done.returncode, 0, "status")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return ({r["event"]: r["value"] for r in found if "event" in r},
            {r["metric_name"]: r for r in found if "metric_name" in r})


def near(got, want, what):
    assert abs(got - want) <= 1e-6 * max(abs(want), 1), f"{what} is {got}, not {want}"


@test
def a_formula_brings_its_events():
    counts, metrics = rows(tally("stat", "-j", "-o", "-", "-M", "a=page-faults/(dummy+2),b=min(page-faults,10)*3", "--",
                                 TOUCH, "100"))
    same(sorted(counts), ["dummy", "page-faults"], "events")
    near(metrics["a"]["metric"], counts["page-faults"] / (counts["dummy"] + 2), "a")
    near(metrics["b"]["metric"], 30, "b")
    same(metrics["a"]["state"], "exact", "state")


@test
def events_are_counted_once():
    done = tally("stat", "-j", "-o", "-", "-e", "page-faults", "-M", "a=page-faults/2,b=page-faults*2", "--", "true")
    same(done.stdout.count('"event":"page-faults"'), 1, "rows of the event")


@test
def metrics_alone_are_those_that_can_be_computed():
    counts, metrics = rows(tally("stat", "-j", "-o", "-", "-e", "task-clock,page-faults", "--metrics", "--", TOUCH, "100"))
    same([m["metric"] is None for m in metrics.values()], [False] * len(metrics), "without a value")
    wanted = counts["page-faults"] * 1e9 / counts["task-clock"]
    assert any(abs(m["metric"] - wanted) < 1e-6 * wanted for m in metrics.values()), (counts, metrics)


@test
def what_cannot_be_computed_says_why():
    done = tally("stat", "-j", "-o", "-", "-M", "a=page-faults/dummy", "--", "true")
    row = rows(done)[1]["a"]
    same(row["metric"], None, "value of a division by 0")
    assert row["why"], row
    text = tally("stat", "-M", "a=page-faults/dummy", "--", "true").stderr
    assert re.search(r"^ +<not counted> +\S.*'a'", text, flags=re.M), text


@test
def all_shapes_have_metrics():
    text = tally("stat", "-M", "a=page-faults*0+7", "--", "true").stderr
    assert re.search(r"^ +7\.0000 +a$", text, flags=re.M), text
    done = tally("stat", "-x;", "-o", "-", "-r", "2", "-M", "a=page-faults*0+7", "--", "true")
    same(done.stdout.splitlines()[-1], ";;;;;;7;a", "line of the metric")
    same(done.stdout.splitlines()[0].count(";"), 7, "separators in a line of an event")
    done = tally("stat", "-j", "-o", "-", "-I", "20", "-M", "a=page-faults*0+7", "--", "sleep", "0.05")
    found = [json.loads(x) for x in done.stdout.splitlines()]
    same(["metric_name" in r for r in found], [False, True] * (len(found) // 2), "order")
    same({r["metric"] for r in found if "metric_name" in r}, {7}, "values")
    assert all(r["interval"] > 0 for r in found), found


@test
def a_metric_of_several_runs_is_that_of_one():
    counts, metrics = rows(tally("stat", "-j", "-o", "-", "-r", "3", "-M", "a=page-faults+7,b=page-faults/page-faults", "--",
                                 TOUCH, "100"))
    assert abs(metrics["a"]["metric"] - 7 - counts["page-faults"]) <= 0.5, (counts, metrics)
    same(metrics["b"]["metric"], 1, "a ratio")


@test
def tables_have_metrics():
    formula = "page\\-faults * 3 + min(dummy, 0)"
    with scratch() as folder:
        with open(os.path.join(folder, "table.json"), "w") as to:
            json.dump([{"MetricName": "mine", "MetricExpr": formula, "MetricGroup": "ours"}], to)
        for name in ("mine", "ours"):
            counts, metrics = rows(tally("stat", "-j", "-o", "-", "--event-tables", folder, "-M", name, "--", "true"))
            same(metrics["mine"]["metric"], counts["page-faults"] * 3, f"value by {name}")
    same(tally("stat", "-M", "mine", "--", "true").returncode, 2, "status without the tables")


@test
def wrong_metrics_are_said():
    for words in (["-M", "no-such-metric"], ["-M", "a=page-faults/"], ["-M", "a=("], ["-n", "-M", "IPC"],
                  ["--baseline", "true", "-M", "IPC"]):
        done = tally("stat", *words, "--", "echo", "ran")
        same((done.returncode, done.stdout), (2, ""), f"answer to {words}")
        has(done.stderr, "-M")


if __name__ == "__main__":
    sys.exit(main())
