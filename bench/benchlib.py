# SPDX-License-Identifier: MIT
"""What the benchmarks share: CPU time of a command with its children, medians, ratios with targets."""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time


class Run:
    """What a finished command took: CPU seconds (with its children), wall seconds, peak memory in KiB."""

    def __init__(self, argv, **kwargs):
        kwargs.setdefault("stdout", subprocess.DEVNULL)
        kwargs.setdefault("stderr", subprocess.PIPE)
        start = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **kwargs)
        self.stderr = process.stderr.read().decode(errors="replace") if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.status = process.returncode
        self.wall = time.monotonic() - start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.rss_kb = usage.ru_maxrss

    def must(self):
        if self.status:
            sys.exit(f"failed with status {self.status}: {self.stderr.strip()}")
        return self


def tally():
    """The tally of the build folder that was given."""
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    return str(path / "cli/tally"), str(path / "examples/workload")


def need(tool, what):
    """Ends the benchmark, as skipped, where a peer is missing."""
    if not shutil.which(tool) or subprocess.run([tool, "--version"], capture_output=True).returncode:
        print(f"{what}: skipped, there is no {tool} here")
        sys.exit(0)


def interleaved(count, *makers):
    """Runs the makers in turns, so that a busy machine hits all alike; a list of results for each."""
    results = [[] for _ in makers]
    for _ in range(count):
        for result, maker in zip(results, makers):
            result.append(maker())
    return results


def median(values):
    return statistics.median(values)


def report(what, ours, theirs, unit, target):
    """One line: ours, the peer's, the ratio, and the ratio that was aimed at. True when it is met."""
    ratio = ours / theirs if theirs else float("inf")
    met = ratio <= target
    print(f"{what}: {ours:.4g} {unit}, perf {theirs:.4g} {unit}: {ratio:.3f} of it, "
          f"target {target:.3g}{'' if met else '  MISSED'}")
    return met
