#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples that need another library count what they say."""
import json
import os
import pathlib
import sys

from tapcli import has, main, run, same, skip, test

PROGRAM = os.environ["GOOGLE_BENCHMARK"]
SOURCE = pathlib.Path(os.environ["SOURCE"])


def benchmark(**env):
    if not PROGRAM:
        skip("it was not built: no Google Benchmark (libbenchmark-dev), no C++ compiler, or a build with sanitizers")
    done = run(PROGRAM, "--benchmark_min_time=0.01", "--benchmark_format=json", env={**os.environ, **env})
    same(done.returncode, 0, f"status ({done.stderr})")
    return {row["name"]: row for row in json.loads(done.stdout)["benchmarks"]}


@test
def a_benchmark_counts_the_faults_of_each_iteration():
    for name, row in benchmark().items():
        pages = int(name.split("/")[1])
        # What the benchmark's own loop touches once is shared by thousands of iterations.
        assert pages <= row["page-faults:u"] < pages + 0.5, (name, row["page-faults:u"])


@test
def a_benchmark_says_which_event_it_cannot_count():
    for row in benchmark(BENCHMARK_EVENTS="no-such-event").values():
        has(row["error_message"], "no-such-event")


@test
def no_example_is_longer_than_120_lines():
    for path in (SOURCE / "examples").glob("*.c*"):
        if path.name != "workload.c":  # a program to look at, not one to learn from
            assert len(path.read_text().splitlines()) <= 120, path


sys.exit(main())
