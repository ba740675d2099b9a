#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions, files, lines, columns and inlined calls of random addresses, as the symbolizer tells them, against
llvm-symbolizer and addr2line, for what compilers and linkers make of one source: DWARF 2 to 5, split, packed,
compressed, shared by dwz; C++, Rust and Go; and the C library with its debug package.

Where the three do not agree the test says who is right:

* The outermost function's name. Ours is the symbol that perf shows; where several have the address, as the D1 and D2
  destructors of C++ do, llvm-symbolizer may take another. It must be one of that address. addr2line takes DWARF's name
  for functions that have clones (".cold", ".constprop.0"); the code is the clone's, and so is our name.
* Lines. addr2line 2.40 does not read DWARF 5's range lists that are found by an index, does not look into .dwo files for
  inlined calls, and takes a file for the first one of its unit in some of DWARF 5's tables. llvm-symbolizer, which
  shares no code with it, must say what we say, to the column, everywhere.
* dwz's shared file. llvm-symbolizer 14 knows none, and addr2line 2.40 loses the names of inlined functions there; but the
  program is the one that dwz was given, and before that all agree. So nothing may change by dwz."""
import os
import random
import re
import shutil
import subprocess
import sys

from tapcli import main, need, run, same, scratch, skip, test

SYMBOLIZE = os.environ["SYMBOLIZE"]
COUNT = 2000

CPP = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace zoo {
template <class T> struct Cage {
	std::map<int, std::vector<T>> animals;
	void put(int key, T animal) { animals[key].push_back(animal); }
	T sum() const
	{
		T total{};
		for (auto &entry : animals)
			for (auto &animal : entry.second)
				total += animal;
		return total;
	}
};
struct Animal {
	virtual ~Animal() {}
	virtual int noise(int n) const = 0;
};
static inline int twice(int n) { return n * 2 + 1; }
struct Dog : Animal {
	std::string name = "dog";
	int noise(int n) const override { return twice(n) ^ twice(n + (int)name.size()); }
};
}
namespace {
int middle(std::vector<int> &list)
{
	std::sort(list.begin(), list.end(), [](int a, int b) { return (a ^ 5) < (b ^ 5); });
	return list.empty() ? 0 : list[list.size() / 2];
}
}
int main(int argc, char **argv)
{
	zoo::Cage<long> cage;
	std::vector<int> list;
	for (int i = 0; i < argc * 100; i++) {
		cage.put(i % 17, i);
		list.push_back(i * 7919 % 1000);
	}
	zoo::Animal *dog = new zoo::Dog;
	int result = dog->noise(argc) + middle(list) + (int)cage.sum();
	delete dog;
	return result & 1;
}
"""

# Functions that the compilers describe within others: of local classes, lambdas, and GNU C's.
WITHIN = r"""
volatile unsigned sink;
static inline unsigned spin(unsigned n) { for (unsigned i = 0; i < n; i++) sink = sink + i; return sink; }
template <class F> __attribute__((noinline)) static unsigned call(F f, unsigned n) { return f(n) + f(n + 1); }
__attribute__((noinline)) static unsigned outer(unsigned n)
{
	struct Local {
		unsigned base;
		static __attribute__((noinline)) unsigned fixed(unsigned z) { return spin(z) * 2; }
		__attribute__((noinline)) unsigned method(unsigned z) { return spin(z + base) * 3; }
	};
	struct Local local = { n };
	auto lambda = [&](unsigned z) __attribute__((noinline)) { return spin(z ^ n) * 5; };
	return Local::fixed(n) + local.method(n) + lambda(n) + call([=](unsigned z) { return spin(z + n) * 7; }, n);
}
int main(int argc, char **argv) { return (int)outer((unsigned)argc * 3) & 1; }
"""

WITHIN_C = r"""
volatile unsigned sink;
static inline unsigned spin(unsigned n) { for (unsigned i = 0; i < n; i++) sink = sink + i; return sink; }
__attribute__((noinline)) static unsigned outer(unsigned n)
{
	__attribute__((noinline)) unsigned inner(unsigned z)
	{
		__attribute__((noinline)) unsigned innermost(unsigned y) { return spin(y + n) * 3; }
		return spin(z ^ n) + innermost(z);
	}
	return inner(n) + inner(n + 1);
}
int main(int argc, char **argv) { return (int)outer((unsigned)argc * 3) & 1; }
"""

RUST = r"""
use std::collections::HashMap;
fn main() {
    let mut m: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..1000u64 { m.entry(format!("k{}", i % 37)).or_default().push(i * i); }
    let mut v: Vec<_> = m.iter().map(|(k, v)| (k.clone(), v.iter().filter(|x| *x % 3 == 0).sum::<u64>())).collect();
    v.sort_by(|a, b| b.1.cmp(&a.1));
    println!("{:?}", v.first());
}
"""

GO = r"""
package main
import ("fmt"; "sort"; "strings")
func main() {
	m := map[string]int{}
	for i := 0; i < 1000; i++ { m[strings.Repeat("x", i%7)] += i }
	k := []string{}
	for s := range m { k = append(k, s) }
	sort.Strings(k)
	fmt.Println(k)
}
"""


def addresses(path, count=COUNT):
    """Some in the program's code, the same ones each time."""
    for line in run("readelf", "-SW", path).stdout.splitlines():
        section = re.search(r"\] \.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", line)
        if section:
            start, size = int(section[1], 16), int(section[2], 16)
            dice = random.Random(1)
            return [start + dice.randrange(size) for _ in range(count)]
    raise AssertionError(f"no .text in {path}")


def ask(asked, *words):
    """What a tool says: for each address a list of (function, file, line, column)."""
    text = subprocess.run(words, input="".join(f"{a:#x}\n" for a in asked), stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, timeout=120).stdout
    answers, now, lines = {}, None, text.split("\n")
    while lines:
        line = lines.pop(0)
        if re.fullmatch("0x[0-9a-f]+", line):
            now = answers.setdefault(int(line, 16), [])
            now.clear()
        elif line and now is not None:
            now.append((line,) + place(lines.pop(0)))
    return answers


def place(text):
    """(file, line, column) of file:line[:column]; nothing is known of a line 0 but its file, which tools guess."""
    parts = re.sub(r" \(discriminator \d+\)", "", text).split(":")
    numbers = []
    while len(parts) > 1 and len(numbers) < 2 and (parts[-1].isdigit() or parts[-1] == "?"):
        numbers.insert(0, parts.pop())
    line = numbers[0] if numbers and numbers[0] != "?" else "0"
    name = os.path.normpath(":".join(parts))
    return ("??", "0", "0") if line == "0" else (name, line, numbers[1] if len(numbers) > 1 else "0")


def ours(path, asked, *more):
    return ask(asked, SYMBOLIZE, "--mangled", path, *more)


def llvm(path, asked):
    return ask(asked, need("llvm-symbolizer"), "-a", "-f", "-i", "--no-demangle", f"--obj={path}")


def binutils(path, asked):
    return ask(asked, need("addr2line"), "-a", "-f", "-i", "-e", path)


def symbols(path):
    """The functions that have an address, by it; those of a clone by the name of the whole too."""
    names = {}
    for option in ("-a", "-D"):
        for line in run("nm", option, path).stdout.splitlines():
            words = line.split()
            if len(words) == 3:
                names.setdefault(words[2].split("@")[0], set()).add(int(words[0], 16))
    return names


def are_one(names, a, b):
    """Whether two names are of one function: the same, of one address, or one a clone of the other."""
    a, b = a.split("@")[0], b.split("@")[0]
    return a == b or bool(names.get(a, set()) & names.get(b, set())) or \
        (a.split(".")[0] == b.split(".")[0] and "." in a + b)


def compare(path, debug=None):
    """Ours and theirs; answers how many were found at all, and on how many addr2line disagrees about lines."""
    asked, debug = addresses(path), debug or path
    mine, theirs, others = ours(path, asked), llvm(debug, asked), binutils(debug, asked)
    names = symbols(path)
    for name, where in (symbols(debug) if debug != path else {}).items():
        names.setdefault(name, set()).update(where)
    known = differ = 0
    for address in asked:
        a, b, c = mine[address], theirs[address], others.get(address, [])
        what = f"{os.path.basename(path)} {address:#x}"
        same([x[1:] for x in a], [x[1:] for x in b], f"{what}: the lines")
        same([x[0] for x in a[:-1]], [x[0] for x in b[:-1]], f"{what}: the inlined functions")
        assert are_one(names, a[-1][0], b[-1][0]), f"{what}: {a[-1][0]} is not {b[-1][0]}"
        known += a[0][1] != "??"
        differ += [x[1:3] for x in a] != [x[1:3] for x in c]
    assert known > COUNT / 2, f"{path}: only {known} of {COUNT} have a line"
    return differ


def build(folder, compiler, *flags, name="prog", text=CPP):
    need(compiler)
    source = os.path.join(folder, "prog.c" if compiler in ("gcc", "clang") else "prog.cc")
    with open(source, "w") as f:
        f.write(text)
    path = os.path.join(folder, name)
    done = run(compiler, "-O2", "-g", *flags, source, "-o", path, timeout=120, cwd=folder)
    same(done.returncode, 0, f"the status of {compiler} {flags}: {done.stderr[:500]}")
    return path


@test
def every_version_of_dwarf_by_two_compilers():
    with scratch() as folder:
        for compiler in ("g++", "clang++"):
            for version in (2, 3, 4, 5):
                # Strict DWARF 2 has no lists of ranges: what is not in one piece is in .debug_aranges alone.
                strict = ["-gstrict-dwarf"] if version == 2 and compiler == "g++" else []
                differ = compare(build(folder, compiler, f"-gdwarf-{version}", *strict))
                # DWARF 5 of clang finds range lists by an index; of strict DWARF 2 addr2line misses some places.
                assert differ == 0 or (compiler, version) in (("clang++", 5), ("g++", 2)), (compiler, version, differ)


@test
def functions_within_functions():
    """Also where the symbol table tells of none of them."""
    with scratch() as folder:
        for link in ([], ["-Wl,-x"]):
            for level in ("-O0", "-O1", "-O2"):
                for compiler, text in (("g++", WITHIN), ("clang++", WITHIN), ("gcc", WITHIN_C)):
                    path = build(folder, compiler, level, *link, text=text)
                    few = addresses(path)
                    mine, theirs = ours(path, few), llvm(path, few)
                    names = symbols(path)
                    for address in few:
                        a, b = mine[address], theirs[address]
                        what = f"{compiler} {level} {link} {address:#x}"
                        if not a[0][1].endswith(("prog.cc", "prog.c")):
                            continue  # what the linker brought
                        same([x[1:] for x in a], [x[1:] for x in b], f"{what}: the lines")
                        same([x[0] for x in a[:-1]], [x[0] for x in b[:-1]], f"{what}: the inlined functions")
                        assert are_one(names, a[-1][0], b[-1][0]), f"{what}: {a[-1][0]} is not {b[-1][0]}"
                    known = {x[0] for a in mine.values() for x in a}
                    assert any("spin" in name for name in known) and len(known) > 4, known


@test
def split_dwarf_in_files_beside_the_program():
    with scratch() as folder:
        for compiler in ("g++", "clang++"):
            for version in (4, 5):
                path = build(folder, compiler, f"-gdwarf-{version}", "-gsplit-dwarf")
                assert any(name.endswith(".dwo") for name in os.listdir(folder))
                compare(path)


@test
def split_dwarf_in_a_package():
    with scratch() as folder:
        for compiler, version, packer in (("g++", 4, "dwp"), ("g++", 5, "llvm-dwp"), ("clang++", 5, "llvm-dwp")):
            need(packer)
            path = build(folder, compiler, f"-gdwarf-{version}", "-gsplit-dwarf")
            asked = addresses(path)
            before = ours(path, asked)
            same(run(packer, "-e", path, "-o", path + ".dwp").returncode, 0, f"the status of {packer}")
            for name in os.listdir(folder):
                if name.endswith(".dwo"):
                    os.unlink(os.path.join(folder, name))
            same(ours(path, asked), before, f"what is said from the package of {compiler} {version}")
            os.unlink(path + ".dwp")
            assert ours(path, asked) != before, f"the package of {compiler} {version} was not needed"


@test
def a_dwo_file_of_another_build_is_not_used():
    with scratch() as folder:
        path = build(folder, "g++", "-gdwarf-5", "-gsplit-dwarf")
        dwo = next(os.path.join(folder, x) for x in os.listdir(folder) if x.endswith(".dwo"))
        asked = addresses(path, 200)
        whole = ours(path, asked)
        shutil.copy(path, path + ".kept")
        build(folder, "g++", "-gdwarf-5", "-gsplit-dwarf", "-O1")
        os.replace(path + ".kept", path)
        alone = ours(path, asked)
        os.unlink(dwo)
        same(ours(path, asked), alone, "what is said without the file")
        assert alone != whole


@test
def compressed_sections():
    with scratch() as folder:
        path = build(folder, "g++")
        asked = addresses(path)
        plain = ours(path, asked)
        for kind in ("zlib", "zlib-gnu", "zstd"):
            done = run("objcopy", f"--compress-debug-sections={kind}", path, path + "." + kind)
            if done.returncode == 0:
                same(ours(path + "." + kind, asked), plain, f"what is said from {kind}")


@test
def dwz_changes_nothing():
    need("dwz")
    with scratch() as folder:
        # It puts aside what several programs have in common.
        shared = os.path.join(folder, "shared")
        # With GNU's sections and forms, and with those of DWARF 5.
        for version, form in ((4, "-m"), (4, "-5m"), (5, "-5m")):
            one = build(folder, "g++", f"-gdwarf-{version}")
            two = build(folder, "g++", f"-gdwarf-{version}", "-DX", name="two")
            asked = addresses(one)
            plain = ours(one, asked)
            same(run("dwz", form, shared, "-M", shared, one, two).returncode, 0, "the status of dwz")
            assert os.path.exists(shared)
            same(ours(one, asked), plain, f"what is said with the shared file of dwz {form}, of DWARF {version}")
            os.unlink(shared)
            assert ours(one, asked) != plain, "the shared file was not needed"
        for version in (4, 5):
            alone = build(folder, "g++", f"-gdwarf-{version}", name="alone")
            before = ours(alone, asked)
            same(run("dwz", alone).returncode, 0, "the status of dwz")
            same(ours(alone, asked), before, f"what is said of one program in DWARF {version}")


@test
def a_rust_program():
    need("rustc")
    with scratch() as folder:
        source, path = os.path.join(folder, "prog.rs"), os.path.join(folder, "prog")
        with open(source, "w") as f:
            f.write(RUST)
        if run("rustc", "-g", "-O", source, "-o", path, timeout=120).returncode != 0:
            skip("rustc makes no program here")
        same(compare(path), 0, "lines of which addr2line says others")


@test
def a_go_program():
    need("go")
    with scratch() as folder:
        source, path = os.path.join(folder, "prog.go"), os.path.join(folder, "prog")
        with open(source, "w") as f:
            f.write(GO)
        env = dict(os.environ, GOCACHE=os.path.join(folder, "cache"), GOFLAGS="-mod=mod", HOME=folder)
        if run("go", "build", "-o", path, source, timeout=300, env=env).returncode != 0:
            skip("go makes no program here")
        same(compare(path), 0, "lines of which addr2line says others")


@test
def the_c_library_with_its_debug_package():
    libc = next((x.split()[2] for x in run("ldd", "/bin/true").stdout.splitlines() if "libc.so" in x), "")
    note = re.search(r"Build ID: (\w+)", run("readelf", "-n", libc).stdout) if libc else None
    debug = note and f"/usr/lib/debug/.build-id/{note[1][:2]}/{note[1][2:]}.debug"
    if not debug or not os.path.exists(debug):
        skip("the debug package of the C library is not installed")
    differ = compare(libc, debug)
    assert differ < COUNT / 10, differ


@test
def names_come_with_parameters_when_asked_for():
    with scratch() as folder:
        path = build(folder, "g++")
        asked = addresses(path)
        plain = {x[0] for frames in ask(asked, SYMBOLIZE, path).values() for x in frames}
        whole = {x[0] for frames in ask(asked, SYMBOLIZE, "--parameters", path).values() for x in frames}
        assert "zoo::Dog::noise(int) const" in whole and "zoo::Dog::noise" not in whole
        assert "zoo::Dog::noise" in plain and "zoo::Dog::noise(int) const" not in plain


if __name__ == "__main__":
    sys.exit(main())
