#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the engine of timers in one place after the other: its tests have to fail each time.

  mutate-timer.py [SOURCE [NAME...]]

Takes minutes, so it is skipped unless TALLY_SLOW is set. Speaks TAP.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
CC = os.environ.get("CC", "cc")
TESTS = [["timer_plan"], ["calibration"], ["clock"], ["timer"], ["timer_points"], ["timer_faults"],
         ["timer_random", "20000"]]
ENGINE = ["calibration", "clock", "clock-sim", "point", "sim", "timer", "timer-next", "timer-plan"]
BASE = ["base/error", "base/proc", "base/buf", "base/vec", "base/system", "base/sys", "base/sys-table", "event/cpu"]

# What is broken, in which file, the text there, and what it becomes.
MUTATIONS = [
    ("the margin is one too small", "timer-plan", "distance - margin < plan->most ? distance - margin",
     "distance - margin < plan->most ? distance - margin + 1"),
    ("no margin at least", "timer-plan", "plan.full = at_least_one(full_margin(wish));", "plan.full = full_margin(wish);"),
    ("the margin is not taken off", "timer-plan", "? distance - margin : plan->most", "? distance : plan->most"),
    ("periods below the least are armed", "timer-plan",
     "	if (distance < margin || distance - margin < plan->least)\n		return 0;", "	if (distance <= margin)\n		return 0;"),
    ("a retry keeps its margin", "timer-plan", "i < wish->retries; i++", "i < 0; i++"),
    ("evidence is not asked for", "calibration", "seen->count / EVIDENCE < one_in", "seen->count < 1"),
    ("a late interrupt is not learned from", "timer-next", "skids_add(&timer->stats.skids, skid);", ""),
    ("a signal of others is taken", "clock-sim",
     "stop->signal == sim->opts.signal && stop->code == CODE_IN && stop->fd == SIM_FD",
     "stop->signal == sim->opts.signal"),
    ("the descriptor is not looked at", "clock-sim", "&& stop->fd == SIM_FD", ""),
    ("a stale interrupt is left to the program", "timer", "		timer->stats.unasked += ours;\n		return ours;",
     "		return 0;"),
    ("an interrupt counts as the target", "timer-next",
     "	if (timer->now.ticks > timer->ticks || timer->gap)\n		return late(timer);",
     "	if (timer->now.ticks > timer->ticks)\n		return late(timer);"),
    ("a gap is never closed", "timer-next", "		timer->gap = NULL;\n		timer->untold", "		timer->untold"),
    ("the instructions are forgotten", "timer-next", "timer->done == timer->instructions ? reached : ahead", "reached"),
    ("an instruction is dropped", "timer", "	if (timer->there)\n		timer->done += n;",
     "	if (timer->there)\n		timer->done += n && timer->done + 1 < timer->instructions;"),
    ("arming anew forgets the instructions", "timer-next", "	timer->due = timer->now.ticks + period;",
     "	if (timer->stats.early)\n		timer->instructions = 0;\n	timer->due = timer->now.ticks + period;"),
    ("steps before the tick count", "timer", "	if (timer->there)\n		timer->done += n;", "	timer->done += n;"),
    ("leaps go unseen", "timer-next", "	if (timer->stepped > 1 && !timer->gap)\n		timer->gap = timer_leapt;", ""),
    ("early interrupts end the wait", "timer-next", "	if (timer->rang || due)\n		timer->armed = false;",
     "	if (due)\n		timer->armed = false;"),
    ("a moved clock is not armed anew", "timer-next", "timer->armed && timer->epoch == epoch && timer->now", "timer->armed && timer->now"),
    ("a new request takes the old arming", "timer", "timer->rang = timer->watched = timer->armed = false;",
     "timer->rang = timer->watched = false;"),
    ("breakpoints before the tick are the place", "timer-next",
     "static struct look look_address(struct tally_timer *timer)\n{\n	if (timer->now.ticks < timer->ticks)\n		return ahead;",
     "static struct look look_address(struct tally_timer *timer)\n{\n"
     "	if (timer->now.ticks + 1 < timer->ticks)\n		return ahead;"),
    ("it runs from where it stands at the address", "timer-next", "	    point_pc(&timer->regs) == timer->address) {\n		step",
     "	    false) {\n		step"),
    ("registers are not compared", "point", "		if (differ && i != m->apart)\n			return false;", ""),
    ("the trap flag is compared", "point", "			differ &= ~m->flags_apart;", "			;"),
    ("the clock's validity is not asked", "timer-next",
     "	if (timer->now.validity)\n		return tally_clock_validity_name(timer->now.validity);", ""),
    ("what steps count is not checked", "timer-next", "	if (checks && timer->now.ticks - before != timer->expected)",
     "	if (false)"),
    ("the checkpoint's clock is not checked", "timer-next",
     "timer->returned && timer->now.ticks != timer->checkpoint_ticks", "false"),
    ("events leave the checkpoint", "timer", "	if (timer->checkpoint == CHECKPOINT_TAKEN) {\n		timer->checkpoint = CHECKPOINT_NONE;",
     "	if (timer->checkpoint == CHECKPOINT_TAKEN) {"),
    ("nothing is cancelled by events", "timer", "timer->open && !(timer->flags & TALLY_TIMER_KEEP)", "false"),
    ("all is cancelled by events", "timer", "timer->open && !(timer->flags & TALLY_TIMER_KEEP)", "timer->open"),
    ("the watchdog is not heard", "timer", "		timer->watched = runs;\n		return runs;", "		return 0;"),
    ("pauses count", "clock", "clock->paused ? clock->frozen : raw.ticks + clock->shift", "raw.ticks + clock->shift"),
    ("it may go backward", "clock", "		clock->went_backward = true;", "		;"),
]


def compile_one(folder, name, source):
    out = folder / (name.replace("/", "_") + ".o")
    subprocess.run([CC, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", f"-I{folder}/src", f"-I{TOP}/include", f"-I{TOP}/src",
                    f"-I{TOP}/tests", "-c", source, "-o", out], check=True)
    return out


def build(folder):
    """All objects and the tests' own, by name."""
    objects = {n: compile_one(folder, n, TOP / f"src/exact/{n}.c") for n in ENGINE}
    objects |= {n: compile_one(folder, n, TOP / f"src/{n}.c") for n in BASE}
    tests = {t[0]: compile_one(folder, "test_" + t[0], TOP / f"tests/unit/test_{t[0]}.c") for t in TESTS}
    return objects, tests


def failing_test(folder, objects, tests):
    """The first test that fails, None: all pass."""
    for name, *args in TESTS:
        exe = folder / ("run_" + name)
        subprocess.run([CC, tests[name], *objects.values(), "-lm", "-o", exe], check=True)
        try:
            run = subprocess.run([exe, *args], stdout=subprocess.DEVNULL, timeout=120)
            if run.returncode:
                return name
        except subprocess.TimeoutExpired:
            return name + " (takes for ever)"
    return None


def main():
    if not os.environ.get("TALLY_SLOW"):
        print("1..0 # SKIP takes minutes: set TALLY_SLOW=1")
        return 0
    wanted = sys.argv[2:]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        objects, tests = build(folder)
        number = 1
        found = failing_test(folder, objects, tests)
        print("not ok" if found else "ok", number, "- unbroken, all tests pass", flush=True)
        bad += bool(found)
        for what, file, old, new in MUTATIONS:
            if wanted and what not in wanted:
                continue
            number += 1
            text = (TOP / f"src/exact/{file}.c").read_text()
            if text.count(old) != 1:
                print(f"not ok {number} - {what} # its text is in {file}.c {text.count(old)} times", flush=True)
                bad += 1
                continue
            mutant = folder / "mutant.c"
            mutant.write_text(text.replace(old, new))
            broken = dict(objects)
            broken[file] = compile_one(folder, "mutant", mutant)
            found = failing_test(folder, broken, tests)
            print("ok" if found else "not ok", number, "-", what, f"# {found}" if found else "", flush=True)
            bad += not found
        print(f"1..{number}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
