#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Vendors' event tables given with --event-tables."""
import json
import os
import sys

from tapcli import has, main, same, scratch, tally, test

ROWS = [
    {"EventName": "MEM_LOAD_RETIRED.L3_MISS", "EventCode": "0xD1", "UMask": "0x20",
     "BriefDescription": "Retired loads that missed the L3 cache."},
    {"EventName": "UNC_M_CAS_COUNT.RD", "EventCode": "0x4", "UMask": "0x3", "Unit": "nobodys", "ScaleUnit": "64Bytes"},
]


def tables(folder, mapfile=None):
    """A model's folder, or with a mapfile the one above it."""
    os.mkdir(f"{folder}/model")
    with open(f"{folder}/model/memory.json", "w") as file:
        json.dump(ROWS, file)
    if mapfile is None:
        return f"{folder}/model"
    with open(f"{folder}/mapfile.csv", "w") as file:
        file.write(mapfile)
    return folder


def listed(folder, *words):
    done = tally("list", "--event-tables", folder, "--json", *words)
    same((done.returncode, done.stderr), (0, ""), "the end")
    return [json.loads(line) for line in done.stdout.splitlines()]


@test
def the_tables_events_are_listed():
    with scratch() as folder:
        model = tables(folder)
        rows = listed(model, "vendor")
        same([row["event"] for row in rows], [row["EventName"] for row in ROWS], "the events")
        same(rows[0]["description"], "Retired loads that missed the L3 cache", "the description")
        same((rows[1]["pmu"], rows[1]["unit"], rows[1]["openable"]), ("uncore_nobodys", "Bytes", False))
        has(rows[1]["why"], "uncore_nobodys")
        same(listed(model, "l3_miss"), rows[:1], "those that match in any case")
        text = tally("list", "--event-tables", model, "vendor").stdout
        has(text, "Events of the CPU's vendor\n")
        has(text, "MEM_LOAD_RETIRED.L3_MISS")


@test
def without_tables_there_are_none():
    done = tally("list", "vendor")
    same((done.returncode, done.stdout), (1, ""), "the end")


@test
def the_mapfile_is_for_this_cpu():
    with scratch() as folder:
        arch = tables(folder, "No-CPU-has-this,v1,model,core\n")
        done = tally("list", "--event-tables", arch, "vendor")
        same(done.returncode, 1, "status")
        has(done.stderr, "mapfile.csv")


@test
def what_cannot_be_read_is_named():
    with scratch() as folder:
        model = tables(folder)
        with open(f"{model}/broken.json", "w") as file:
            file.write('[\n{"EventName": }]')
        done = tally("list", "--event-tables", model)
        same(done.returncode, 1, "status")
        has(done.stderr, "broken.json, line 2, column 15: a value is missing here")
        done = tally("list", "--event-tables", f"{folder}/nowhere")
        same(done.returncode, 1, "status")
        has(done.stderr, f"{folder}/nowhere")
        # Also where no name has to be looked up in it.
        for wrong in f"{folder}/nowhere", folder:
            done = tally("stat", "--event-tables", wrong, "-e", "page-faults", "--", "echo", "ran")
            same((done.returncode, done.stdout), (1, ""), "status and output")
            has(done.stderr, "tally stat: --event-tables: ")
            has(done.stderr, wrong)


sys.exit(main())
