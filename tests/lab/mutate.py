#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks what depends on hardware counters in one place after the other: the lab has to fail each time.

  mutate.py [--arch arm64|x86_64] [--guest NAME] [NAME...]

A copy of the tree is broken, and each mutation's tests run in one guest. A NAME is a mutation's; none: all. Takes a
minute for each. Speaks TAP; the exit status is 1 when a mutation went unseen.
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent

# What is broken, in which file, the text there, what it becomes, and the tests that have to fail.
MUTATIONS = [
    ("the margin is one too small", "exact/timer-plan.c", "distance - margin < plan->most ? distance - margin",
     "distance - margin < plan->most ? distance - margin + 1", "exact-counter"),
    ("an interrupt counts as the target", "exact/timer-next.c",
     "	if (timer->now.ticks > timer->ticks || timer->gap)\n		return late(timer);\n	return reached;",
     "	if (timer->now.ticks > timer->ticks)\n		return late(timer);\n	return reached;", "exact-counter"),
    ("a late interrupt is called reached", "exact/timer-next.c",
     "	if (timer->now.ticks > timer->ticks || timer->gap)\n		return late(timer);\n	return reached;",
     "	return reached;", "exact-counter"),
    ("a signal of the program's own is taken for an interrupt", "exact/clock-pmu.c",
     "stop->fd == c->sampling && (stop->code == POLL_IN || stop->code == POLL_HUP)", "true", "exact-counter"),
    ("what is scaled forgets the time that it ran", "count/settle.h", "count->value = mul_div(count->raw, count->enabled_ns, count->running_ns)",
     "count->value = count->raw", "live-pmu_exact"),
    ("what is scaled is called exact", "count/settle.h", "count->state = TALLY_COUNT_SCALED;",
     "count->state = TALLY_COUNT_EXACT;", "live-pmu_exact"),
    ("the clock counts the kernel", "exact/clock-pmu.c", "c->attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;",
     "c->attr.flags |= TALLY_ATTR_EXCLUDE_HV;", "exact-counter"),
]


def copy_tree(folder):
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "-co", "--exclude-standard"], check=True,
                           capture_output=True).stdout.split(b"\0")
    for name in filter(None, (n.decode() for n in names)):
        if (TOP / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, folder / name)


def run_lab(folder, args, tests):
    """Its status, and the first failure that it tells."""
    words = [folder / "tests/lab/run.py", "--arch", args.arch, "--guest", args.guest, *tests]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode and "passed, " not in done.stdout:
        sys.exit(done.stdout[-2000:] + done.stderr)
    if " skipped" in done.stdout and "\nok 1 - all # SKIP" in "\n" + done.stdout:
        sys.exit(f"1..0 # SKIP the lab cannot run: {done.stdout.splitlines()[0]}")
    return done.returncode, next((line for line in done.stdout.splitlines() if line.startswith("failed: ")), "")


def main():
    parser = argparse.ArgumentParser(description="breaks the code, and looks whether the lab fails")
    parser.add_argument("--arch", default="x86_64")
    parser.add_argument("--guest", default="intel")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    chosen = [m for m in MUTATIONS if not args.names or m[0] in args.names]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tree(folder)
        status, why = run_lab(folder, args, sorted({m[4] for m in chosen}))
        print("not ok" if status else "ok", f"1 - unbroken, the tests pass {'# ' + why if why else ''}", flush=True)
        bad += bool(status)
        for number, (what, file, old, new, test) in enumerate(chosen, 2):
            source = folder / "src" / file
            text = source.read_text()
            if text.count(old) != 1:
                sys.exit(f"its text is in {file} {text.count(old)} times: {what}")
            source.write_text(text.replace(old, new))
            status, why = run_lab(folder, args, [test])
            source.write_text(text)
            print("ok" if status else "not ok", f"{number} - {what} {'# ' + why if why else ''}", flush=True)
            bad += not status
    print(f"1..{len(chosen) + 1}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
