#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What all commands share: values of options, help, versions, and one line for a failure."""
import sys

from tapcli import TALLY, has, main, run, same, tally, test


def refused(*words):
    """A usage error is one message, on stderr alone."""
    done = tally(*words)
    same((done.returncode, done.stdout), (2, ""), f"the answer to {words}")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("  hint: ")]
    same(len(lines), 1, f"the number of messages in {done.stderr!r}")
    return lines[0]


@test
def a_value_that_is_none_is_named_with_its_option():
    same(refused("record", "--duration", "0", "--", "true"),
         "tally record: --duration: '0' is not a number of seconds, 0.000000001 at least")
    same(refused("record", "--max-size", "many", "--", "true"),
         "tally record: --max-size: 'many' is not a number of bytes, as 512K or 8M")
    same(refused("report", "--percent-limit", "-1"),
         "tally report: --percent-limit: '-1' is not a percentage from 0 to 100")
    for words in (("record", "--duration", "nan"), ("record", "--duration", "1e-10"), ("report", "--lines", "0"),
                  ("report", "--lines", "-1"), ("report", "--lines", "1.5"), ("report", "--lines", ""),
                  ("flame", "--width", "0")):
        has(refused(*words), f"{words[1]}: '{words[2]}' is not ")


@test
def a_value_beyond_the_limit_is_too_big():
    same(refused("record", "--duration", "1000000001", "--", "true"),
         "tally record: --duration: '1000000001' is too big: it may be 1000000000 seconds at most")
    same(refused("report", "--lines", "18446744073709551616"),
         "tally report: --lines: '18446744073709551616' is too big: it may be 18446744073709551615 at most")
    for words in (("record", "--duration", "1e999"), ("record", "--max-size", "17179869184G"),
                  ("report", "--percent-limit", "100.5"), ("flame", "--width", "99999999999")):
        has(refused(*words, "-i", "none") if words[0] == "flame" else refused(*words), "is too big: it may be ")


@test
def an_option_that_is_none_is_named_also_behind_another():
    has(refused("report", "-qZ"), "no option '-Z'")
    has(refused("report", "--sideways"), "no option '--sideways'")
    has(refused("report", "--quiet=yes"), "'--quiet=yes' takes no value")
    has(refused("report", "-s"), "'-s' needs a value")
    has(refused("report", "-q", "--sort"), "'--sort' needs a value")


@test
def help_of_a_command_is_its_h():
    for name in ("doctor", "flame", "list", "record", "report", "script", "stat", "version"):
        same(tally("help", name).stdout, tally(name, "-h").stdout, f"the help of {name}")
        for line in tally(name, "-h").stdout.splitlines():
            same(line, line.rstrip(), f"a line of the help of {name}")
    same(tally("help").stdout, tally("-h").stdout, "the help")
    has(refused("help", "nothing"), "no command 'nothing'")


@test
def the_version_has_three_spellings():
    for word in ("-v", "-V", "--version"):
        same(tally(word).stdout, tally("version").stdout, f"the answer to {word}")
    has(refused("version", "x"), "'x' is no option")


@test
def a_full_disk_is_one_message():
    for words in (("version",), ("help",), ("help", "stat"), ("list",)):
        done = run("sh", "-c", '"$@" >/dev/full', "sh", TALLY, *words)
        same(done.returncode, 1, f"the status of {words}")
        same(done.stderr, "tally: cannot write to standard output: No space left on device\n", f"what {words} says")


@test
def a_number_below_zero_is_a_number_all_the_same():
    done = tally("stat", "-r", "-1", "--", "true")
    same(done.returncode, 2, "status")
    has(done.stderr, "--repeat: '-1' is not a whole number from 0 on")


if __name__ == "__main__":
    sys.exit(main())
