#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""<tally/fast-arm64.h> by what a compiler for arm64 makes of it: each counter is read from the register that has
its number (Arm Architecture Reference Manual, PMEVCNTR<n>_EL0), and what has none is not read."""
import os
import re
import sys

from tapcli import has, main, need, run, same, scratch, test

COMPILER = "aarch64-linux-gnu-gcc"
SOURCE = """
#include <tally/fast.h>
uint64_t cycles(uint64_t *v) { return tally_fast_counter_(31, v); }
int value(const struct tally_fast *f, uint64_t *v) { return tally_fast_read(f, v); }
uint64_t beyond(uint64_t *v) { return tally_fast_counter_(32, v); }
""" + "\n".join(f"uint64_t counter_{n}(uint64_t *v) {{ return tally_fast_counter_({n}, v); }}" for n in range(31))


def assembly():
    """The body of each function."""
    compiler = need(COMPILER)
    with scratch() as folder:
        with open(f"{folder}/it.c", "w") as file:
            file.write(SOURCE)
        done = run(compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Werror", "-Wall", "-Wextra", "-S", "-o", "-",
                   "-I", os.environ["SOURCE"] + "/include", "-I", os.environ["BUILD"] + "/include", f"{folder}/it.c")
    same(done.returncode, 0, f"status ({done.stderr})")
    return dict(re.findall(r"^(\w+):\n(.*?)^\t\.size", done.stdout, flags=re.M | re.S))


@test
def each_counter_is_read_from_its_register():
    bodies = assembly()
    for n in range(31):
        same(re.findall(r"mrs\s+\w+, (\w+)", bodies[f"counter_{n}"]), [f"pmevcntr{n}_el0"], f"registers of {n}")
    same(re.findall(r"mrs\s+\w+, (\w+)", bodies["cycles"]), ["pmccntr_el0"], "the register of cycles")


@test
def what_has_no_register_is_not_read():
    body = assembly()["beyond"]
    same(re.findall(r"mrs", body), [], "registers")
    has(body, "x0, 0" if "x0, 0" in body else "w0, 0")


@test
def the_sequence_number_is_read_with_barriers_on_both_sides():
    body = assembly()["value"]
    before, after = body.find("ldar"), body.rfind("dmb\tishld")
    first, last = body.find("pmevcntr"), body.rfind("pmevcntr")
    assert -1 < before < first <= last, (before, first, last)
    assert after > -1, body


if __name__ == "__main__":
    sys.exit(main())
