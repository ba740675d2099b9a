#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally flame: the SVG by an XML parser, folded stacks by adding up, and what happens to files."""
import os
import re
import stat
import struct
import sys
import xml.etree.ElementTree as xml

from handmade import SAMPLE, USER, Program, Recording
from tapcli import TALLY, has, main, run, same, scratch, tally, test

SVG = "{http://www.w3.org/2000/svg}"


def example(path, comm="front"):
    program = Program(TALLY)
    names = program.names(4)
    a, b, c, d = (program.at(name) for name in names)
    r = Recording()
    r.comm(100, 100, comm)
    r.map(100, program)
    for i, (period, chain) in enumerate(((40, [c, b, a]), (10, [b, a]), (30, [d, c, a]), (20, [b, b, a]))):
        r.sample(100, 100, 1000 * (i + 1), period, chain)
    r.write(path)
    return names


def frames(text):
    """(name, samples, percent, x, width, y) of each frame, from the markup."""
    found = []
    for g in xml.fromstring(text).iter(SVG + "g"):
        if g.get("class") != "func_g":
            continue
        m = re.fullmatch(r"(.*) \(([\d,]+) samples?, ([\d.]+)%\)", g.find(SVG + "title").text)
        rect = g.find(SVG + "rect")
        found.append((m[1], int(m[2].replace(",", "")), float(m[3]), float(rect.get("x").rstrip("%")),
                      float(rect.get("width").rstrip("%")), int(rect.get("y"))))
    return found


@test
def the_picture_is_xml_and_its_widths_add_up():
    with scratch() as folder:
        path, svg = os.path.join(folder, "perf.data"), os.path.join(folder, "out.svg")
        a, b, c, d = example(path)
        done = tally("flame", "-i", path, "-o", svg)
        same(done.returncode, 0, "the status")
        has(done.stderr, "4 samples in " + svg)
        found = frames(open(svg).read())
        by_name = {f[0]: f for f in found}
        same((by_name["all"][1:5], by_name["front"][1:5]), ((4, 100.0, 0.0, 100.0),) * 2, "the bottom")
        same(by_name[a][4], 100.0, "what everything comes from")
        same(by_name[d][4], 30.0, "a leaf's width")
        rows = sorted({f[5] for f in found}, reverse=True)
        for lower, upper in zip(rows, rows[1:]):
            for f in (f for f in found if f[5] == upper):
                assert any(g[3] - 1e-6 <= f[3] and f[3] + f[4] <= g[3] + g[4] + 1e-6
                           for g in found if g[5] == lower), f"{f} stands on nothing"
        same([f[4] for f in found if f[5] == rows[0]], [100.0], "the lowest row")


@test
def folded_stacks_add_up_to_the_periods():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        a, b, c, d = example(path, comm="front end;1")
        out = tally("flame", "-i", path, "--folded").stdout
        stacks = dict(line.rsplit(" ", 1) for line in out.splitlines())
        same(stacks, {f"front_end:1;{a};{b}": "10", f"front_end:1;{a};{b};{b}": "20",
                      f"front_end:1;{a};{b};{c}": "40", f"front_end:1;{a};{c};{d}": "30"}, "the stacks")
        out = tally("flame", "-i", path, "--folded", "--samples").stdout
        same(sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines()), 4, "the number of samples")


@test
def filters_are_those_of_report():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        names = example(path)
        out = tally("flame", "-i", path, "--folded", "-S", names[3]).stdout
        same(out, f"front;{names[0]};{names[2]};{names[3]} 30\n", "the stacks")
        done = tally("flame", "-i", path, "-o", os.path.join(folder, "none.svg"), "-c", "nobody")
        same(done.returncode, 1, "the status")
        same(os.listdir(folder), ["perf.data"], "the folder")


@test
def names_and_titles_cannot_break_the_markup():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path, comm="<&>\"']]>\x01")
        done = tally("flame", "-i", path, "-o", "-", "--title", "a < b & c", "--subtitle", "\x1b]0;x\x07")
        names = [f[0] for f in frames(done.stdout)]
        assert "<&>\"']]>\ufffd" in names, names
        has([t.text for t in xml.fromstring(done.stdout).iter(SVG + "text")], "a < b & c")


@test
def an_older_picture_stays_until_the_new_one_is_whole():
    with scratch() as folder:
        path, svg = os.path.join(folder, "perf.data"), os.path.join(folder, "out.svg")
        example(path)
        with open(svg, "w") as f:
            f.write("old")
        same(tally("flame", "-i", path, "-o", svg, "-e", "cycles").returncode, 2, "the status")
        same(open(svg).read(), "old", "the old picture")
        old_mask = os.umask(0o027)
        try:
            same(tally("flame", "-i", path, "-o", svg).returncode, 0, "the status")
        finally:
            os.umask(old_mask)
        frames(open(svg).read())
        same(stat.S_IMODE(os.stat(svg).st_mode), 0o640, "the mode")
        same(sorted(os.listdir(folder)), ["out.svg", "perf.data"], "the folder")


@test
def what_cannot_be_written_is_an_error_with_a_remedy():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        missing = os.path.join(folder, "no/such/folder.svg")
        for target, reason, remedy in ((missing, "No such file or directory", "make it, or choose another"),
                                       (folder, "Is a directory", "name a file in it"),
                                       ("/dev/full", "No space left on device", "make room")):
            done = tally("flame", "-i", path, "-o", target)
            same(done.returncode, 1, f"the status for {target}")
            first, second = done.stderr.splitlines()
            same(first, f"tally flame: cannot write '{target}': {reason}", "the message")
            has(second, remedy)


@test
def a_full_standard_output_is_said_once():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        for words in (("flame", "--folded"), ("flame", "-o", "-"), ("report",)):
            done = run("sh", "-c", '"$@" >/dev/full', "sh", TALLY, *words, "-i", path)
            same(done.returncode, 1, f"the status of {words}")
            first, second = done.stderr.splitlines()
            same(first, f"tally {words[0]}: cannot write to standard output: No space left on device", "the message")
            has(second, "make room")


@test
def a_command_is_not_run_when_its_picture_has_no_place():
    with scratch() as folder:
        ran = os.path.join(folder, "ran")
        done = tally("flame", "-o", os.path.join(folder, "no/f.svg"), "--", "touch", ran)
        same(done.returncode, 1, "the status")
        same(os.listdir(folder), [], "the folder")


@test
def options_that_would_do_nothing_are_refused():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        for words in (("-F", "10"), ("--width", "0"), ("--width", "100001"), ("--width", "99999999999")):
            done = tally("flame", "-i", path, "-o", "-", *words)
            same((done.returncode, done.stdout), (2, ""), f"the answer to {words}")
        same(tally("flame", "-i", path, "-o", "-", "--width", "100000").returncode, 0, "the status")


@test
def chains_that_are_missing_are_those_by_frame_pointers():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        program = Program(TALLY)
        r = Recording()
        r.comm(1, 1, "flat")
        r.map(1, program)
        at = program.at(program.names(1)[0])
        r.record(SAMPLE, USER, struct.pack("<QQiiQQQ", 1, at, 1, 1, 1000, 10, 0))
        r.write(path)
        has(tally("flame", "-i", path, "--folded").stderr, "there are no call chains: ")


@test
def the_same_file_gives_the_same_bytes():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        same(tally("flame", "-i", path, "-o", "-").stdout, tally("flame", "-i", path, "-o", "-").stdout, "the picture")


@test
def a_command_is_recorded_and_drawn_in_one_step():
    with scratch() as folder:
        svg = os.path.join(folder, "out.svg")
        temporary = os.path.join(folder, "tmp")
        os.mkdir(temporary)
        work = "s = 0\nfor i in range(1000000): s += i * i\nraise SystemExit(3)"
        done = tally("flame", "-o", svg, "--", sys.executable, "-c", work,
                     env={**os.environ, "TMPDIR": temporary})
        same(done.returncode, 3, "the command's status")
        assert len(frames(open(svg).read())) > 3
        same(os.listdir(temporary), [], "the folder for temporary files")


@test
def a_command_that_cannot_be_run_leaves_nothing():
    with scratch() as folder:
        svg = os.path.join(folder, "out.svg")
        done = tally("flame", "-o", svg, "--", os.path.join(folder, "missing"), env={**os.environ, "TMPDIR": folder})
        same(done.returncode, 127, "the status")
        same(os.listdir(folder), [], "the folder")


if __name__ == "__main__":
    sys.exit(main())
