#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/manners.md, as far as it can be seen from outside: no globals, no code that runs of its own
accord, plugins that come and go, regions that a program's environment turns on."""
import json
import os
import pathlib
import re
import sys

from tapcli import main, need, run, same, scratch, skip, test

HOST = os.environ["PLUGIN_HOST"]
PLUGIN = os.environ["REGION_PLUGIN"]
TWIN = os.environ["REGION_PLUGIN_TWIN"]
REGIONS = os.environ["REGIONS"]
BUILD = os.environ["BUILD"]
SOURCE = pathlib.Path(os.environ["SOURCE"])
SANITIZED = os.environ.get("SANITIZE", "none") != "none"
# What the compiler's own start files put into every shared library.
COMPILERS = {"completed.0", "__dso_handle", "__TMC_END__", "_end", "_edata", "__bss_start"}
# A lock around libpfm4, whose own state one process has one of: it holds nothing of ours.
LOCKS = {"one_at_a_time"}


def not_sanitized():
    if SANITIZED:
        skip("sanitizers bring globals and constructors, and want to be loaded first")


def asking(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TALLY_REGIONS")}
    return {**env, **more}


def writable_symbols(path):
    """Names in .data and .bss: what a program could not have twice."""
    text = run(need("objdump"), "-t", path).stdout
    assert "SYMBOL TABLE" in text, text
    return set(re.findall(r"^\S+ .{7} \.(?:data|bss|tdata|tbss)\t\S+ +(?:\.hidden )?(\S+)$", text, flags=re.M)) - {".data", ".bss"}


@test
def every_test_that_the_manners_name_is_there():
    text = (SOURCE / "docs/manners.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b[a-z]+(?:_[a-z0-9]+){3,}\b", " ".join(re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", text))))
    assert len(named) > 20, named
    there = "".join(path.read_text(encoding="utf-8") for pattern in ("*/test_*", "*/live_*", "*/exact_*")
                    for path in (SOURCE / "tests").glob(pattern))
    same({name for name in named if not re.search(rf"\b{name}\b\(", there)}, set(), "tests that are not there")


@test
def the_library_has_no_variables():
    not_sanitized()
    same(writable_symbols(f"{BUILD}/src/libtally.so.0") - COMPILERS - LOCKS, set(), "variables")


@test
def no_code_of_the_library_runs_of_its_own_accord():
    not_sanitized()
    text = run(need("readelf"), "-SW", f"{BUILD}/src/libtally.so.0").stdout
    for section in (".init_array", ".fini_array"):
        found = re.search(rf"\s{re.escape(section)}\s+\S+\s+\S+\s+\S+\s+(\S+)", text)
        # One entry: frame_dummy and __do_global_dtors_aux, of the compiler's start files.
        assert not found or int(found.group(1), 16) <= 8, f"{section} has more than the compiler's entry"


@test
def regions_that_nobody_asks_for_are_silent():
    done = run(REGIONS, env=asking())
    same((done.returncode, done.stdout, done.stderr), (0, "", ""))


def regions(**more):
    with scratch() as folder:
        path = os.path.join(folder, "regions")
        done = run(REGIONS, env=asking(TALLY_REGIONS="page-faults:u,task-clock:u", TALLY_REGIONS_OUTPUT=path,
                                       **more))
        same((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(path, encoding="utf-8") as f:
            same(os.fstat(f.fileno()).st_mode & 0o777, 0o600, "mode")
            return f.read()


def counted(text):
    if '"troubles":["' in text or "nothing is counted" in text:
        skip("page faults cannot be counted here")
    return text


@test
def json_is_an_object_a_line():
    lines = [json.loads(line) for line in counted(regions(TALLY_REGIONS_FORMAT="json")).splitlines()]
    by_name = {line["region"]: line for line in lines if "region" in line}
    same({name: line["calls"] for name, line in by_name.items()}, {"whole": 2, "fill": 8, "sort": 8}, "calls")
    for place, event in enumerate(("page-faults:u", "task-clock:u")):
        whole, fill, sort = (by_name[n]["counts"][place] for n in ("whole", "fill", "sort"))
        same(whole["event"], event, "the event")
        same(whole["inclusive_state"], "exact", "its state")
        same(whole["inclusive"], whole["exclusive"] + fill["inclusive"] + sort["inclusive"], "the sum of " + event)
        same(fill["inclusive"], fill["exclusive"], "what has nothing inside")
    notes = lines[-1]
    same(notes["threads"], 2, "threads")
    same([v for k, v in notes.items() if k not in ("process", "threads", "troubles")], [0] * 8, "notes")


@test
def text_has_a_line_for_each_event():
    text = counted(regions())
    assert re.search(r"^whole +2  page-faults:u +\d+ +\d+$", text, flags=re.M), text
    assert re.search(r"^ +task-clock:u +\d+ ns +\d+ ns$", text, flags=re.M), text


@test
def output_goes_to_standard_error_and_to_a_file_for_each_process():
    done = run(REGIONS, env=asking(TALLY_REGIONS="page-faults:u"))
    assert "regions of region, process" in done.stderr, done.stderr
    same(done.stdout, "", "standard output")
    with scratch() as folder:
        env = asking(TALLY_REGIONS="page-faults:u", TALLY_REGIONS_OUTPUT=f"{folder}/%p-%%p.%x")
        run(REGIONS, env=env)
        run(REGIONS, env=env)
        names = os.listdir(folder)
        same(len(names), 2, "files")
        for name in names:
            assert re.match(r"^\d+-%p\.%x$", name), name
        # A file that is there is appended to.
        env["TALLY_REGIONS_OUTPUT"] = f"{folder}/all"
        run(REGIONS, env=env)
        run(REGIONS, env=env)
        with open(f"{folder}/all", encoding="utf-8") as f:
            same(f.read().count("regions of region"), 2, "outputs")


@test
def an_output_that_cannot_be_written_stops_nobody():
    done = run(REGIONS, env=asking(TALLY_REGIONS="page-faults:u", TALLY_REGIONS_OUTPUT="/nowhere/at/all"))
    same((done.returncode, done.stdout, done.stderr), (0, "", ""))


def host(*plugins):
    done = run(HOST, *plugins, env=asking(TALLY_REGIONS="page-faults:u", TALLY_REGIONS_FORMAT="json"))
    same(done.returncode, 0, f"status ({done.stderr})")
    states = {m[0]: (int(m[1]), int(m[2])) for m in re.findall(r"^(\w+) tally=(\d+) fds=(\d+)$", done.stdout, flags=re.M)}
    return states, [json.loads(line) for line in done.stderr.splitlines()]


@test
def a_plugin_that_is_closed_says_its_word_and_leaves_nothing():
    not_sanitized()
    states, lines = host(PLUGIN)
    if not any("region" in line for line in lines):
        skip("page faults cannot be counted here")
    same([line["calls"] for line in lines if "region" in line], [15], "calls")
    same(lines[-1]["threads"], 2, "threads")
    assert states["loaded"][0] > 0 and states["loaded"][1] > states["before"][1], states
    same(states["unloaded"], states["before"], "libraries and descriptors after dlclose")
    same(states["after"], states["before"], "libraries and descriptors at the end")


@test
def two_copies_of_the_library_live_side_by_side():
    not_sanitized()
    states, lines = host(PLUGIN, TWIN)
    if not any("region" in line for line in lines):
        skip("page faults cannot be counted here")
    same([line["calls"] for line in lines if "region" in line], [15, 15], "calls")
    same(states["after"], states["before"], "libraries and descriptors at the end")


if __name__ == "__main__":
    sys.exit(main())
