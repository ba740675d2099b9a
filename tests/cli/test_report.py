#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally report, with perf report as the referee where there is one."""
import errno
import os
import pty
import re
import subprocess
import sys

from handmade import Program, Recording
from tapcli import TALLY, has, main, need, run, same, scratch, tally, test


def example(path):
    """Two processes, three threads; every stack is of functions of the tally program itself."""
    program = Program(TALLY)
    a, b, c, d, e = (program.at(name) for name in program.names(5))
    r = Recording()
    for pid, tid, name in ((100, 100, "front"), (100, 101, "worker"), (200, 200, "back end")):
        r.comm(pid, tid, name)
    r.map(100, program)
    r.map(200, program)
    stacks = [
        (100, 100, 40, [c, b, a]), (100, 100, 10, [b, a]), (100, 101, 25, [d, c, b, d, c, a]),
        (200, 200, 15, [e, a]), (200, 200, 9, [e, e, e, a]), (100, 101, 1, [a]),
    ]
    for i, (pid, tid, period, chain) in enumerate(stacks):
        r.sample(pid, tid, 1_000_000_000 + 500_000_000 * i, period * 1000, chain)
    r.lost(7, 5_000_000_000)
    r.write(path)
    return program.names(5)


def table(text):
    """The lines of a report as dicts by the column's title, which the dots below it set apart."""
    head, rows, places = None, [], []
    for line in text.splitlines():
        if re.fullmatch(r"# \.+(  \.+)*", line):
            places = [m.span() for m in re.finditer(r"\.+", line)]
            titles = [head[start:end].strip() for start, end in places]
            places[0] = (0, places[0][1])
            places[-1] = (places[-1][0], None)
        elif line.startswith("#"):
            head = line
        elif re.match(r"\s+\d+\.\d+%", line):
            rows.append(dict(zip(titles, (line[start:end].strip() for start, end in places))))
    return rows


def compare(ours, theirs):
    """perf has no column for what a filter leaves only one of."""
    ours, theirs = table(ours), table(theirs)
    assert theirs, "perf shows no line"
    names = [title for title in ("Command", "Shared Object", "Symbol") if title in theirs[0]]
    numbers = [title for title in ("Overhead", "Children", "Self") if title in theirs[0]]
    ours, theirs = (sorted(([row[n] for n in names], [float(row[n].rstrip("%")) for n in numbers]) for row in which)
                    for which in (ours, theirs))
    same([row[0] for row in ours], [row[0] for row in theirs], "the list of lines")
    for one, other in zip(ours, theirs):
        for a, b in zip(one[1], other[1]):
            assert abs(a - b) < 0.0101, f"{one}, perf says {other}"


def perf_report(path, *words):
    # perf keeps build-ids of what it reads in $HOME.
    return run("perf", "report", "--stdio", "-i", path, "--percent-limit", "0", *words).stdout


@test
def children_and_self_are_those_of_perf_report():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        compare(tally("report", "-i", path, "-g", "none").stdout,
                perf_report(path, "--children", "-g", "none"))


@test
def self_alone_is_that_of_perf_report():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        compare(tally("report", "-i", path, "--no-children", "-g", "none").stdout,
                perf_report(path, "--no-children", "-g", "none"))


@test
def filters_are_those_of_perf_report():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        names = example(path)
        for words in (("-c", "worker"), ("-S", names[2]), ("--pid", "200"), ("--tid", "101"),
                      ("-d", os.path.basename(TALLY)), ("-c", "worker", "-S", names[3]),
                      ("--time", "1.4,2.6")):
            compare(tally("report", "-i", path, "--no-children", "-g", "none", *words).stdout,
                    perf_report(path, "--no-children", "-g", "none", *words))


def graphs(text):
    """The call graph of each line: names and percentages in their order, without what is drawn. perf also has one
    of the line's function alone."""
    found = []
    for line in text.splitlines():
        if re.match(r"\s+\d+\.\d+%", line):
            found.append([])
        elif line.startswith(" " * 12) and line.strip(" |"):
            found[-1].append(re.sub(r"^[ |]*-*", "", line).strip())
    return sorted(graph for graph in found if len(graph) > 1)


@test
def call_graphs_are_those_of_perf_report():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        names = example(path)
        for words in (("--no-children",), ("--no-children", "-S", names[1]), ("--no-children", "-G"), ("--children",),
                      ("--children", "-g", "graph,0.5,callee"), ("--children", "-g", "graph,20,caller")):
            same(graphs(tally("report", "-i", path, *words).stdout), graphs(perf_report(path, *words)),
                 f"the graphs with {words}")


@test
def a_real_recording_has_perf_reports_top_symbol():
    need("perf")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        work = "s = 0\nfor i in range(2000000): s += i * i"
        done = run("perf", "record", "-F", "999", "-g", "-o", path, "--", sys.executable, "-c", work)
        assert done.returncode == 0, done.stderr
        ours = tally("report", "-i", path, "--no-children", "-g", "none").stdout
        theirs = perf_report(path, "--no-children", "-g", "none")
        has(table(ours), table(theirs)[0])


@test
def the_head_tells_what_was_lost_and_when():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        out = tally("report", "-i", path).stdout
        has(out, "# Total Lost Samples: 7\n")
        has(out, "# Time: 1.000000 to 3.500000 (2.500 s)\n")
        has(out, "# Samples: 6 of event 'cpu-clock'\n")
        has(out, "# Event count (approx.): 100000 ns\n")


@test
def broken_stacks_are_counted():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)  # none of the stacks begins in main or below
        has(tally("report", "-i", path).stdout, "# 6 of 6 user stacks (100.0 %) are broken")


@test
def times_count_from_the_first_sample_with_a_plus():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        for span in ("1.5,2.5", "+0.5,+1.5"):
            has(tally("report", "-i", path, "--time", span).stdout, "# Samples: 2 of event")
        has(tally("report", "-i", path, "--time", "+2,").stdout, "# Samples: 2 of event")
        has(tally("report", "-i", path, "--time", ",+0.1").stdout, "# Samples: 1 of event")
        for span in ("", "x", "2,1", "+1,2", "1.2.3,4", "99999999999999,"):
            done = tally("report", "-i", path, "--time", span)
            same(done.returncode, 2, f"the status for {span!r}")
            has(done.stderr, "--time")


@test
def a_module_that_is_gone_is_named_with_the_reason():
    with scratch() as folder:
        path, gone = os.path.join(folder, "perf.data"), os.path.join(folder, "gone")
        program = Program(TALLY)
        r = Recording()
        r.comm(1, 1, "gone")
        program.path, real = gone, program.path
        os.symlink(real, gone)
        r.map(1, program)
        os.unlink(gone)
        r.sample(1, 1, 1000, 10, [program.at(program.names(1)[0])])
        r.write(path)
        out = tally("report", "-i", path).stdout
        has(out, "gone           [.] 0x")
        has(out, f"#   {gone}: ")
        has(out, "# 100.0 % of all frames have no symbol")


@test
def a_damaged_file_is_shown_up_to_the_damage():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        data = bytearray(open(path, "rb").read())
        at = data.rindex(bytes([9, 0, 0, 0, 2, 0]))  # the last sample's header
        data[at + 6:at + 8] = b"\x04\x00"            # a size below that of a header
        open(path, "wb").write(data)
        done = tally("report", "-i", path)
        same(done.returncode, 1, "the status")
        has(done.stderr, "tally report: ")
        has(done.stdout, "# Samples: 5 of event")


@test
def each_event_has_its_section():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        program = Program(TALLY)
        a, b = (program.at(name) for name in program.names(2))
        r = Recording(events=("cpu-clock", "page-faults"))
        r.comm(1, 1, "two")
        r.map(1, program)
        r.sample(1, 1, 1000, 10, [a])
        r.sample(1, 1, 2000, 1, [b], event=1)
        r.write(path)
        out = tally("report", "-i", path).stdout
        has(out, "of event 'cpu-clock'")
        has(out, "of event 'page-faults'")
        out = tally("report", "-i", path, "--event", "page-faults").stdout
        assert "cpu-clock" not in out
        same(tally("report", "-i", path, "--event", "cycles").returncode, 2, "the status")


@test
def what_cannot_be_done_is_said_in_one_line():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        done = tally("report", "-i", path)
        same(done.returncode, 1, "the status")
        has(done.stderr, path)
        example(path)
        for words in (("-s", "color"), ("-g", "flat"), ("--pid", "x"), ("name",)):
            done = tally("report", "-i", path, *words)
            same((done.returncode, done.stdout), (2, ""), f"the answer to {words}")
        done = tally("report", "-i", path, "-c", "nobody")
        same(done.returncode, 1, "the status")
        has(done.stderr, "none of the 6 samples passes the filters")


@test
def colours_and_pager_stay_away_from_pipes():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        assert "\033" not in tally("report", "-i", path, env={**os.environ, "PAGER": "false"}).stdout


def on_terminal(*words, env):
    """The command's output and status when it writes to a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen([TALLY, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
                            env={**os.environ, "TERM": "dumb", **env})
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError as why:  # the way a terminal says that nobody has it open any more
        same(why.errno, errno.EIO, "the error")
    os.close(ours)
    done.stderr.close()
    return text.decode().replace("\r\n", "\n"), done.wait()


@test
def a_pager_that_is_not_there_loses_nothing():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        plain = tally("report", "-i", path).stdout
        script = os.path.join(folder, "pager")
        with open(script, "w") as f:
            f.write("#!/bin/sh\necho paged; cat\n")
        os.chmod(script, 0o755)
        os.mkdir(os.path.join(folder, "folder"))
        search = folder + ":" + os.environ["PATH"]
        for pager, want in (("nosuchpager", plain), ("/no/such/pager -R", plain), ("folder", plain), (" ", plain),
                            (script, "paged\n" + plain), ("pager -x", "paged\n" + plain),
                            ("A=b pager", "paged\n" + plain), ("cat", plain)):
            env = {"PATH": search, "TALLY_PAGER": pager}
            same(on_terminal("report", "-i", path, env=env), (want, 0), f"what {pager!r} shows")


@test
def the_kind_of_call_graph_may_be_left_out():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        example(path)
        flat = tally("report", "-i", path, "--no-children").stdout
        for words in (("-g", "--no-children"), ("--call-graph", "--no-children"), ("--no-children", "-g"),
                      ("-g", "graph", "--no-children"), ("-ggraph", "--no-children")):
            same(tally("report", "-i", path, *words).stdout, flat, f"the report with {words}")
        none = tally("report", "-i", path, "-g", "none").stdout
        same(tally("report", "-i", path, "-gnone").stdout, none, "the report with -gnone")
        same(tally("report", "-i", path, "--call-graph=none").stdout, none, "the report with --call-graph=none")
        same(tally("report", "-i", path, "--call-graph", "none").stdout, none, "the report with --call-graph none")
        assert none != tally("report", "-i", path, "-g").stdout


@test
def quiet_tables_of_several_events_have_their_names():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        program = Program(TALLY)
        r = Recording(events=("cpu-clock", "page-faults"))
        r.comm(1, 1, "two")
        r.map(1, program)
        for event in (0, 1):
            r.sample(1, 1, 1000 + event, 10, [program.at(program.names(2)[event])], event=event)
        r.write(path)
        lines = tally("report", "-i", path, "-q", "-g", "none").stdout.splitlines()
        same([line for line in lines if "%" not in line and line], ["cpu-clock", "page-faults"], "the names")
        same(lines[0], "cpu-clock", "the first line")
        alone = tally("report", "-i", path, "-q", "-g", "none", "--event", "page-faults").stdout
        assert "page-faults" not in alone
        example(path)
        assert "cpu-clock" not in tally("report", "-i", path, "-q").stdout


if __name__ == "__main__":
    sys.exit(main())
