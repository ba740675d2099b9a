#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally annotate on recordings by hand: samples at known instructions, with objdump and addr2line as the referees. And
what else shows lines and inlined functions: report -s srcline, --inline, script -F srcline, folded stacks."""
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

from handmade import Program, Recording
from tapcli import has, main, need, run, same, scratch, skip, tally, test

SOURCE = """\
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	x ^= x >> 7;
	return x * 2654435761u / (x | 3);
}

__attribute__((noinline)) unsigned leaf(unsigned n, unsigned s)
{
	for (unsigned i = 0; i < n; i++)
		s += mix(s + i); /* <&> */
	return s;
}

__attribute__((noinline)) unsigned outer(unsigned n)
{
	return leaf(n, 3) + 1;
}

int main(int argc, char **argv)
{
	return outer(argc) & 1;
}
"""


# Each line has code that cannot be merged with that of others.
LONG = ("volatile unsigned sink;\n__attribute__((noinline)) unsigned leaf(unsigned n, unsigned s)\n{\n" +
        "".join(f"\tsink = n * {i} + s;\n" for i in range(1, 100)) +
        "\treturn sink;\n}\n\n__attribute__((noinline)) unsigned outer(unsigned n)\n{\n\treturn leaf(n, 3) + 1;\n}\n"
        "int main(int argc, char **argv) { return outer(argc) & 1; }\n")


def build(folder, *flags, source=SOURCE):
    need("gcc")
    text, source, path = source, os.path.join(folder, "prog.c"), os.path.join(folder, "prog")
    with open(source, "w") as f:
        f.write(text)
    done = run("gcc", "-g", "-O1", "-fno-omit-frame-pointer", *flags, source, "-o", path)
    same(done.returncode, 0, "the status of gcc: " + done.stderr)
    return path


def instructions(path, function):
    """(address, text) of objdump."""
    found = []
    for line in run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", path).stdout.splitlines():
        words = re.match(r"\s+([0-9a-f]+):\s+(.*)", line)
        if words:
            found.append((int(words[1], 16), words[2]))
    return found


def lines(path, addresses):
    """What addr2line says, by address: file and line of the innermost function."""
    text = subprocess.run([need("addr2line"), "-e", path], input="".join(f"{a:#x}\n" for a in addresses), text=True,
                          stdout=subprocess.PIPE).stdout
    return dict(zip(addresses, (re.sub(r" \(.*", "", x) for x in text.splitlines())))


def record(folder, path, counts=None):
    """A recording with so many samples at each instruction of leaf(), which outer() called; answers the counts."""
    program, data = Program(path), os.path.join(folder, "perf.data")
    where = [address for address, _ in instructions(path, "leaf")]
    counts = counts or {address: number for number, address in enumerate(where)}
    call = next(a for a, text in instructions(path, "outer") if "call" in text)
    back = min(a for a, _ in instructions(path, "outer") if a > call)
    r = Recording()
    r.comm(1, 1, "prog")
    r.map(1, program)
    time = 1000
    for address, count in counts.items():
        for _ in range(count):
            time += 1
            r.sample(1, 1, time, 10, [program.base + address, program.base + back])
    r.sample(1, 1, 5000, 10, [program.base + back])
    r.write(data)
    return data, {a: n for a, n in counts.items() if n}


def annotated(*words):
    """The objects of --json: the function, its lines, its instructions."""
    done = tally("annotate", "--json", *words)
    same(done.returncode, 0, f"the status of {words}: {done.stderr}")
    objects = [json.loads(x) for x in done.stdout.splitlines()]
    return (objects[0], [x for x in objects if x["type"] == "line"],
            [x for x in objects if x["type"] == "instruction"])


@test
def each_sample_is_at_its_instruction_and_line():
    with scratch() as folder:
        path = build(folder)
        data, counts = record(folder, path)
        whole = sum(counts.values())
        function, shown, code = annotated("-i", data, "leaf")
        same((function["function"], function["module"], function["samples"], function["total"]),
             ("leaf", path, whole, 10 * (whole + 1)), "the function")
        same({int(x["address"], 16): x["samples"] for x in code if x["samples"]}, counts, "the instructions' samples")
        wanted = {}
        for address, place in lines(path, list(counts)).items():
            wanted[place] = wanted.get(place, 0) + counts[address]
        same({f"{x['file']}:{x['line']}": x["samples"] for x in shown if x["samples"]}, wanted, "the lines' samples")
        texts = dict(enumerate(SOURCE.splitlines(), 1))
        for line in shown:
            same(line["text"], texts[line["line"]], f"the text of line {line['line']}")
        inlined = {x["inlined"] for x in code if "inlined" in x}
        same(inlined, {"mix"}, "what was inlined")


@test
def instructions_are_those_of_objdump():
    with scratch() as folder:
        path = build(folder)
        data, _ = record(folder, path)
        function, _, code = annotated("-i", data, "leaf")
        if any("Zydis" in note for note in function["notes"]):
            skip("Zydis is not installed")
        if any("x86" in note for note in function["notes"]):
            skip("not an x86")
        theirs = instructions(path, "leaf")
        same([int(x["address"], 16) for x in code], [a for a, _ in theirs], "the addresses")
        for ours, (address, text) in zip(code, theirs):
            # Names of jumps differ (jz, je), and zeros of numbers.
            same(ours["text"].split()[0][:1], text.split()[0][:1], f"the beginning of {ours['text']!r}, {text!r}")
        intel = tally("annotate", "-i", data, "-M", "intel", "--no-source", "--all", "leaf").stdout
        assert "%" not in re.sub(r"(?m)^#.*|^ +[0-9.]+%", "", intel), intel


@test
def the_text_has_lines_and_instructions_with_their_shares():
    with scratch() as folder:
        path = build(folder)
        first = instructions(path, "leaf")[0][0]
        data, _ = record(folder, path, {first: 3})
        text = tally("annotate", "-i", data, "leaf").stdout
        has(text, "# Function: leaf\n")
        has(text, "# Samples:  3 in it, 75.00% of all cpu-clock\n")
        line = int(lines(path, [first])[first].split(":")[1])
        assert re.search(rf"(?m)^ +100\.00% +{line} \| ", text), text
        assert re.search(rf"(?m)^ +100\.00% +{first:x}\b", text), text
        same(tally("annotate", "-i", data).stdout, text, "what is shown without a name")
        assert "Instructions" not in tally("annotate", "-i", data, "--no-instructions", "leaf").stdout
        assert "prog.c\n" not in tally("annotate", "-i", data, "--no-source", "leaf").stdout


@test
def of_a_long_function_what_has_samples_is_shown():
    with scratch() as folder:
        path = build(folder, source=LONG)
        where = instructions(path, "leaf")
        data, _ = record(folder, path, {where[len(where) // 2][0]: 4})
        short, whole = (tally("annotate", "-i", data, *words, "leaf").stdout for words in ((), ("--all",)))
        has(short, " lines without samples are left out: --all shows them\n")
        has(short, " without samples\n")
        assert "left out" not in whole and "without samples" not in whole, whole
        for text in (short, whole):
            same(len(re.findall("(?m)^ +100.00% ", text)), 2, "the number of lines and instructions with samples")
        for line in re.findall("sink = .*", LONG):
            has(whole, line)


class Page(html.parser.HTMLParser):
    """Whether what is opened is closed, and the texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        same(self.open.pop(), tag, "what is closed")

    def handle_data(self, data):
        self.texts.append(data)


@test
def a_page_of_html_stands_alone():
    with scratch() as folder:
        data, _ = record(folder, build(folder))
        out = os.path.join(folder, "leaf.html")
        same(tally("annotate", "-i", data, "-o", out, "leaf").returncode, 0, "the status")
        text = open(out, encoding="utf-8").read()
        page = Page(text)
        same(page.open, [], "what is left open")
        assert "\t\ts += mix(s + i); /* <&> */" in page.texts, page.texts
        assert not re.search(r"(src|href)=", text), "it refers to something else"
        links = re.findall(r'data-l="([0-9:]+)"', text)
        assert links and all(links.count(x) > 1 for x in links), "a line without instructions"


@test
def what_is_missing_is_said():
    with scratch() as folder:
        path = build(folder)
        data, counts = record(folder, path)
        done = tally("annotate", "-i", data, "mian")
        same((done.returncode, done.stdout), (1, ""), "the answer to a name that is not there")
        has(done.stderr, "no sample was taken in a function 'mian'")
        has(done.stderr, "'leaf', 'outer'")
        same(tally("annotate", "-i", data, "leaf", "outer").returncode, 2, "the status of two names")
        same(tally("annotate", "-i", data, "-M", "latin").returncode, 2, "the status of another syntax")
        has(tally("annotate", "-i", os.path.join(folder, "none")).stderr, "cannot open")
        os.rename(os.path.join(folder, "prog.c"), os.path.join(folder, "moved.c"))
        has(tally("annotate", "-i", data, "leaf").stdout, "prog.c is not here: --source-dir names")
        os.mkdir(os.path.join(folder, "src"))
        moved = os.path.join(folder, "src", "prog.c")
        shutil.copy(os.path.join(folder, "moved.c"), moved)
        os.utime(moved, (1, 1))
        text = tally("annotate", "-i", data, "--source-dir", os.path.dirname(moved), "leaf").stdout
        assert "is not here" not in text and "is newer" not in text, text
        has(text, "s += mix(s + i);")
        os.utime(moved, (1 << 32, 1 << 32))
        has(tally("annotate", "-i", data, "--source-dir", os.path.dirname(moved), "leaf").stdout, "is newer than")
        same(run("objcopy", "--strip-debug", path, path + ".new").returncode, 0, "the status of objcopy")
        with open(path, "r+b") as program, open(path + ".new", "rb") as new:
            program.write(new.read())
            program.truncate()
        function, shown, code = annotated("-i", data, "leaf")
        has(" ".join(function["notes"]), "compile with -g")
        same((shown, sum(x["samples"] for x in code)), ([], sum(counts.values())), "what is shown without lines")


@test
def a_report_sorts_by_lines():
    with scratch() as folder:
        path = build(folder)
        data, counts = record(folder, path)
        whole = sum(counts.values()) + 1
        wanted = {}
        for address, place in lines(path, list(counts)).items():
            place = os.path.basename(place)
            wanted[place] = wanted.get(place, 0) + counts[address]
        text = tally("report", "-i", data, "-s", "srcline", "--no-children", "-g", "none", "-q").stdout
        shown = {x.split()[1]: x.split()[0] for x in text.splitlines() if x.strip()}
        for place, samples in wanted.items():
            same(shown[place], f"{100 * samples / whole:.2f}%", f"the share of {place}")


@test
def inlined_functions_are_frames_when_asked_for():
    with scratch() as folder:
        path = build(folder)
        where = next(a for a, place in lines(path, [a for a, _ in instructions(path, "leaf")]).items()
                     if place.endswith(":4"))
        data, _ = record(folder, path, {where: 5})
        plain = tally("flame", "--folded", "-i", data).stdout
        same(plain, "prog;outer 10\nprog;outer;leaf 50\n", "the folded stacks")
        same(tally("flame", "--folded", "--inline", "-i", data).stdout, "prog;outer 10\nprog;outer;leaf;mix_[i] 50\n",
             "the folded stacks with inlined functions")
        has(tally("report", "--inline", "-i", data).stdout, "mix (inlined)")
        assert "inlined" not in tally("report", "-i", data).stdout
        same(tally("report", "--inline", "-i", data, "-S", "mix", "--no-children", "-g", "none", "-q").stdout.split(),
             ["83.33%", "prog", "prog", "[.]", "mix", "(inlined)"], "the report of an inlined function")
        out = os.path.join(folder, "flame.svg")
        same(tally("flame", "--inline", "-i", data, "-o", out).returncode, 0, "the status of flame")
        has(open(out).read(), "<title>mix (inlined) (5 samples, 83.33%)</title>")


@test
def a_script_tells_the_line_of_each_frame():
    with scratch() as folder:
        path = build(folder)
        where = instructions(path, "leaf")[-1][0]
        data, _ = record(folder, path, {where: 1})
        call = next(a for a, text in instructions(path, "outer") if "call" in text)
        known = lines(path, [where, call])
        text = tally("script", "-i", data, "-F", "ip,srcline").stdout.splitlines()
        # A frame that was called has the line of the call, not of where it goes on.
        same([x.strip() for x in text if x.startswith("  ")][:2], [os.path.basename(known[where]), os.path.basename(known[call])],
             "the lines")
        full = tally("script", "-i", data, "-F", "ip,srcline", "--full-source-path").stdout.splitlines()
        same([x.strip() for x in full if x.startswith("  ")][0], known[where], "the line with its path")
        first = json.loads(tally("script", "-i", data, "-F", "+srcline", "--json").stdout.splitlines()[0])
        same(f"{first['file']}:{first['line']}", known[where], "the line as JSON")


@test
def perf_script_has_the_same_lines_where_samples_were_taken():
    need("perf")
    with scratch() as folder:
        path = build(folder, "-gdwarf-4")
        data, _ = record(folder, path)
        env = dict(os.environ, DEBUGINFOD_URLS="", LC_ALL="C")
        for words in (("-F", "ip,sym,dso,srcline", "-G"), ("-F", "ip,srcline", "-G", "--full-source-path")):
            theirs = run("perf", "script", "-f", "-i", data, *words, env=env).stdout
            if "prog.c:" not in theirs:
                skip("perf has no lines here")
            same(tally("script", "-i", data, *words).stdout, theirs, f"the script with {words}")


if __name__ == "__main__":
    sys.exit(main())
