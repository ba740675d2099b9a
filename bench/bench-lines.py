#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines and inlined calls of 2,000 addresses, nothing read before: the CPU time of the whole process, against
addr2line -f -i -C. C++ is a program of many units that is compiled here; its debugging information is as it comes from
the compiler. That of Go and of the C library's debug package is compressed. To start a process and to inflate what is
needed, by libdeflate, takes an eighth of addr2line's time for these two, so the target is out of reach there; without
libdeflate, by zlib, all takes up to half as long again. Of Rust's, a small program, half is memory that the kernel makes
ready, demangling and printing; and LLVM does not say where a function ends among the DIEs, so all are walked over."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from benchlib import interleaved, median, need

RUNS = 5
COUNT = 2000
TARGET = 10      # times faster than addr2line
ADDRESS_US = 100  # and no slower than that an address
UNITS = 12

CPP = """
#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
namespace unit@ {
struct key { int a; std::string b; bool operator<(const key &o) const { return a < o.a || (a == o.a && b < o.b); } };
template <class T> struct store {
	std::map<key, std::vector<T>> items;
	std::unordered_map<std::string, T> names;
	void put(int k, const std::string &s, T v) { items[key{k, s}].push_back(v); names.emplace(s, v); }
	T fold() const { T t{}; for (auto &e : items) for (auto &x : e.second) t = t + x; return t; }
};
int run(int n)
{
	store<int> s; store<double> d; store<std::string> t; std::regex re("a(b*)c+[0-9]{@}");
	for (int k = 0; k < n; k++) {
		std::ostringstream o; o << k << "abc";
		s.put(k, o.str(), k); d.put(k, o.str(), k * 0.5); t.put(k, o.str(), o.str());
		if (std::regex_search(o.str(), re)) n--;
	}
	std::vector<key> v; for (auto &e : s.items) v.push_back(e.first);
	std::sort(v.begin(), v.end(), [](auto &x, auto &y) { return y < x; });
	return s.fold() + (int)d.fold() + (int)t.fold().size();
}
}
"""

RUST = """
use std::collections::{BTreeMap, HashMap};
fn main() {
    let mut m: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..1000u64 { m.entry(format!("k{}", i % 37)).or_default().push(i * i); }
    let b: BTreeMap<_, _> = m.iter().map(|(k, v)| (k.clone(), v.iter().sum::<u64>())).collect();
    println!("{:?}", b);
}
"""

GO = """
package main
import ("fmt"; "net/http"; "sort")
func main() { k := []string{"b", "a"}; sort.Strings(k); fmt.Println(k, http.StatusOK) }
"""


def good(*argv, cwd, **more):
    return subprocess.run(argv, cwd=cwd, capture_output=True, env=dict(os.environ, **more)).returncode == 0


def cpp(folder):
    for i in range(UNITS):
        (folder / f"u{i}.cc").write_text(CPP.replace("@", str(i + 1)))
        if not good("g++", "-g", "-O2", "-c", f"u{i}.cc", cwd=folder):
            return None
    calls = "".join(f"namespace unit{i + 1} {{ int run(int); }}\n" for i in range(UNITS))
    body = " + ".join(f"unit{i + 1}::run(c)" for i in range(UNITS))
    (folder / "main.cc").write_text(f"{calls}int main(int c, char **v) {{ return ({body}) & 1; }}\n")
    objects = [f"u{i}.o" for i in range(UNITS)]
    return folder / "cpp" if good("g++", "-g", "-O2", "-o", "cpp", "main.cc", *objects, cwd=folder) else None


def rust(folder):
    (folder / "rs.rs").write_text(RUST)
    return folder / "rs" if good("rustc", "-g", "-O", "rs.rs", "-o", "rs", cwd=folder) else None


def go(folder):
    (folder / "go.go").write_text(GO)
    return folder / "go" if good("go", "build", "-o", "go", "go.go", cwd=folder, GOCACHE=str(folder / "cache")) else None


def libc(folder):
    """The library, and its debug file."""
    found = re.search(r"(\S+/libc\.so\.6) ", subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True).stdout)
    notes = found and subprocess.run(["readelf", "-n", found[1]], capture_output=True, text=True).stdout
    build = notes and re.search(r"Build ID: (..)(\w+)", notes)
    debug = build and pathlib.Path(f"/usr/lib/debug/.build-id/{build[1]}/{build[2]}.debug")
    return (found[1], debug) if debug and debug.exists() else None


def addresses(path):
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    section = re.search(r"\] \.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", text)
    start, size = int(section[1], 16), int(section[2], 16)
    dice = random.Random(1)
    return "".join(f"{start + dice.randrange(size):#x}\n" for _ in range(COUNT))


def seconds(argv, questions):
    """Of CPU time; the questions are in a file."""
    with open(questions) as asked:
        process = subprocess.Popen(argv, stdin=asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{argv} failed with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    symbolize = str(build / "tests/symbolize")
    need("addr2line", "lines")
    status = 0
    with tempfile.TemporaryDirectory(prefix="tally-bench-") as name:
        folder = pathlib.Path(name)
        for what, make in (("C++", cpp), ("Rust", rust), ("Go", go), ("C library", libc)):
            if what != "C library" and not shutil.which({"C++": "g++", "Rust": "rustc", "Go": "go"}[what]):
                continue
            made = make(folder)
            if not made:
                continue
            path, debug = made if isinstance(made, tuple) else (made, made)
            questions = folder / "addresses"
            questions.write_text(addresses(str(path)))
            ours, theirs = interleaved(
                RUNS, lambda: seconds([symbolize, str(path)], questions),
                lambda: seconds(["addr2line", "-f", "-i", "-C", "-e", str(debug)], questions))
            us, times = 1e6 * median(ours) / COUNT, median(theirs) / median(ours)
            met = us <= ADDRESS_US and times >= TARGET
            print(f"lines, {what}: {us:.1f} us an address, target {ADDRESS_US}; addr2line takes {times:.1f} times as "
                  f"much, target {TARGET}{'' if met else '  MISSED'}")
            status |= not met
    sys.exit(status)


main()
