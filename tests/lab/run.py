#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The lab: runs tests in a Linux guest whose CPU, with a PMU that counts, is emulated.

  run.py [--arch arm64|x86_64] [--build FOLDER] [--tap] [TEST...]

It gets a kernel (fetch.sh), builds the tests for the guest in FOLDER, boots an emulator for each guest of
the table below, as many at a time as there are CPUs, and shows what the tests print as they print it. A TEST is the name of one, as Meson has it
(live-pmu), or a pattern ('live-pmu*'); none: all that the table has for a guest. The last line is `N passed, N failed, N skipped`; with --tap it
speaks TAP instead. The exit status is 1 when anything failed.

  TALLY_LAB_QEMU       the emulator, where it is not the one in PATH; x86_64 needs one whose PMU counts
  TALLY_SLOW           try a thousand targets with every skid, which takes hours
  TALLY_LAB_CACHE      where the kernels are kept; default: tally-lab in ${XDG_CACHE_HOME:-~/.cache}
"""
import argparse
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.dont_write_bytecode = True  # the tree stays as it is
sys.path[:0] = [str(HERE), str(SOURCE / "scripts")]
Archive = import_module("initramfs").Archive
points = import_module("test-summary").points

STARTED = time.monotonic()
SLOW = bool(os.environ.get("TALLY_SLOW"))
LIMIT_S = 14400 if SLOW else 900  # of wall time, for one guest; it takes a tenth of that where nothing else runs
# Suites whose tests run in guests; what is left out there, with the reason.
SUITES = ("live", "exact")
LEFT_OUT = {
    "live-pfm": "needs libpfm4, which a static program does not load",
    "exact-events": "steps 200,000 instructions, and nothing in it depends on the CPU",
    "exact-points": "has another stepper as its referee, which needs a library that is not static",
    "live-leaks": "takes half a minute, and nothing in it depends on the CPU",
    "live-ring": "maps a gigabyte, and nothing in it depends on the CPU",
    "live-sample": "runs a shell, and counts the libraries that it loads: a guest's is static",
}


@dataclass
class Guest:
    name: str
    cpu: str
    kernel: str = ""  # more words for the kernel
    tests: tuple = ("*",)  # patterns of names
    env: dict = field(default_factory=dict)  # the emulator's environment
    referee: bool = False  # whether the emulator counts by itself as well
    named: bool = False  # whether it needs the emulator that TALLY_LAB_QEMU names, whose interrupts can be late


@dataclass
class Machine:
    deb: str  # the architecture's name in Debian
    emulator: str
    words: list
    console: str
    guests: list


REFEREE = ("live-referee",)
COUNTING = ("live-command", "live-doctor", "live-pmu", "live-pmu_exact", "live-pmu_fast")
# What depends on the PMU. The rest runs on x86-64 wherever this is built there.
PMU = (*COUNTING, *REFEREE, "live-fast", "live-pmu_sample", "exact-counter", "exact-pmu", "exact-run",
       "exact-selftest")

MACHINES = {
    "arm64": Machine(
        "arm64", "qemu-system-aarch64", ["-M", "virt"], "ttyAMA0",
        # The default way of signing pointers is a cipher, which is slow to emulate.
        [Guest("arm64-exact", "max,pauth-impdef=on", tests=("exact-*",)),
         Guest("arm64-live", "max,pauth-impdef=on", tests=("live-*",)),
         Guest("arm64-referee", "max,pauth-impdef=on", tests=REFEREE, referee=True),
         Guest("arm64-short-skid", "max,pauth-impdef=on", tests=("exact-counter",), env={"QEMU_PMU_SKID": "0:100"},
               named=True)]),
    "x86_64": Machine(
        "amd64", "qemu-system-x86_64",
        # An emulator that is not installed does not know where its firmware lies.
        ["-M", "pc", "-parallel", "none", "-vga", "none", "-L", "/usr/share/qemu", "-L", "/usr/share/seabios"], "ttyS0",
        # What takes longest comes first. QEMU_PMU_SKID: interrupts come late by up to so many instructions, as CPUs' do.
        [Guest("intel-short-skid", "Skylake-Client,pmu=on", "nmi_watchdog=0", ("exact-counter",),
               {"QEMU_PMU_SKID": "0:100"}),
         Guest("intel", "Skylake-Client,pmu=on", "nmi_watchdog=0", PMU),
         Guest("amd", "EPYC,pmu=on", "nmi_watchdog=0", PMU),
         Guest("intel-watchdog", "Skylake-Client,pmu=on", "nmi_watchdog=1", COUNTING),
         Guest("intel-skid", "Skylake-Client,pmu=on", "nmi_watchdog=0", ("live-pmu_sample", "exact-counter"),
               {"QEMU_PMU_SKID": "0:2000"}),
         # No table knows it: what counts exactly has to be found by trying.
         Guest("intel-unknown", "Skylake-Client,pmu=on,model=250", "nmi_watchdog=0", ("exact-selftest", "live-command")),
         Guest("intel-referee", "Skylake-Client,pmu=on", "nmi_watchdog=0", REFEREE, referee=True),
         Guest("amd-referee", "EPYC,pmu=on", "nmi_watchdog=0", REFEREE, referee=True)]),
}


class Unable(Exception):
    """The lab cannot run here, by no fault of what it tests."""


def find_emulator(machine, arch):
    named = os.environ.get("TALLY_LAB_QEMU")
    if named:
        found = shutil.which(named)
        if not found:
            sys.exit(f"lab: TALLY_LAB_QEMU names {named}, which cannot be run")
        return found
    if arch == "x86_64":
        raise Unable("no released emulator has a PMU for x86-64: TALLY_LAB_QEMU has to name one (docs/lab.md)")
    return shutil.which(machine.emulator) or unable_without(machine.emulator, "qemu-system-arm")


def unable_without(program, package):
    raise Unable(f"{program} is not installed (Debian's {package})")


def check_compiler(arch):
    if arch == "arm64" and not shutil.which("aarch64-linux-gnu-gcc"):
        unable_without("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")


def do(*words):
    """Runs a step in silence, unless it fails."""
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        print(done.stdout[-6000:], file=sys.stderr)
        sys.exit(f"lab: {' '.join(str(w) for w in words)} ended with status {done.returncode}")
    return done.stdout


_line = threading.Lock()


def tell(text):
    """A line of one guest amid those of others."""
    with _line:
        print(text, flush=True)


def say(text):
    tell(f"# lab: {text} ({time.monotonic() - STARTED:.0f} s)")


def get_kernel(machine):
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("TALLY_LAB_CACHE") or home / "tally-lab") / machine.deb
    fetched = subprocess.run([HERE / "fetch.sh", machine.deb, folder], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True, errors="replace", check=False)
    if fetched.returncode:
        raise Unable("its kernel cannot be fetched: " + fetched.stderr.strip().rpartition("\n")[2])
    kernels = sorted(folder.glob("boot/vmlinuz-*"))
    if not kernels:
        sys.exit(f"lab: no kernel in {folder}: remove that folder")
    return kernels[-1], folder / "root"


def build(arch, folder, root):
    """The tests, by Meson, as static programs; what Meson knows of them."""
    if not (folder / "build.ninja").exists():
        folder.mkdir(parents=True, exist_ok=True)
        if arch == "arm64":
            constants = folder.parent / "root.ini"
            constants.write_text(f"[constants]\nroot = '{root}'\n")
            files = ["--cross-file", constants, "--cross-file", HERE / "arm64.ini", "--cross-file", HERE / "static.ini"]
        else:
            files = ["--native-file", HERE / "x86_64.ini", "--native-file", HERE / "static.ini"]
        do("meson", "setup", folder, SOURCE, *files)
    do("ninja", "-C", folder, "lab")
    tests = json.loads(do("meson", "introspect", folder, "--tests"))
    suites = {f"tally:{suite}" for suite in SUITES}
    # Unit tests of a room of the same name are none of them.
    return {t["name"]: t for t in tests if suites & set(t["suite"]) and "tally:unit" not in t["suite"]}


def script_of(test):
    """A test as a script: what Meson would run, in the environment that Meson would give it."""
    lines = ["#!/bin/sh"]
    for key, value in [*test["env"].items(), *([("TALLY_SLOW", "1")] if SLOW else [])]:
        lines.append(f"export {key}={quoted(value)}")
    return "\n".join(lines + ["exec " + " ".join(quoted(w) for w in test["cmd"])]) + "\n"


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def files_of(test, folder):
    """The programs that a test names, which stand in the guest where they stand here."""
    for word in test["cmd"] + list(test["env"].values()):
        path = Path(word)
        if path.is_absolute() and folder in path.parents and path.is_file():
            yield path


def make_archive(out, folder, root, tests):
    archive = Archive()
    archive.add("/init", (folder / "tests/lab/init").read_bytes(), 0o755)
    archive.add("/bin/busybox", (root / "bin/busybox").read_bytes(), 0o755)
    for number, (name, test) in enumerate(tests.items()):
        archive.add(f"/lab/tests/{number:02}-{name}", script_of(test).encode(), 0o755)
        for path in files_of(test, folder):
            archive.add(str(path), path.read_bytes(), 0o755)
    out.write_bytes(archive.bytes())


class Results:
    """Points of all guests, shown as they come."""

    def __init__(self):
        self.count = {"passed": 0, "failed": 0, "skipped": 0}
        self.bad = []
        self.lock = threading.Lock()

    def point(self, state, name, reason=""):
        with self.lock:
            self.count[state] += 1
            number = sum(self.count.values())
            if state == "failed":
                self.bad.append(f"failed: {name}{': ' + reason if reason else ''}")
            if state == "failed" and reason:
                tell(f"# {reason}")
            skip = f" # SKIP {reason}" if state == "skipped" else ""
            tell(f"{'not ' if state == 'failed' else ''}ok {number} - {name}{skip}")

    def failures_of(self, guest):
        return [line for line in self.bad if line.startswith(f"failed: {guest.name}:")]

    def end(self, tap):
        if tap:
            print(f"1..{sum(self.count.values())}")
        else:
            print()
            for line in self.bad:
                print(line)
            print("{passed} passed, {failed} failed, {skipped} skipped".format(**self.count))
        return 1 if self.count["failed"] else 0


class Listener:
    """Reads a guest's console: what belongs to which test, and whether each of them came to its end."""
    STARTS = re.compile(r"^# lab: begin \d+-(\S+)$")
    ENDS = re.compile(r"^# lab: end \d+-(\S+) (exited|killed) (\d+)$")
    PLAN = re.compile(r"^1\.\.(\d+)")

    def __init__(self, guest, results):
        self.guest, self.results = guest, results
        self.test, self.seen, self.failed, self.plan = "", 0, 0, None
        self.done = False

    def name(self, point=""):
        return f"{self.guest}: {self.test}" + (f": {point}" if point else "")

    def line(self, text):
        begin, end, plan = self.STARTS.match(text), self.ENDS.match(text), self.PLAN.match(text)
        if begin:
            self.test, self.seen, self.failed, self.plan = begin.group(1), 0, 0, None
            say(f"{self.guest}: {self.test}")
        elif end:
            self.ended(end.group(2), int(end.group(3)))
        elif text == "# lab: done":
            self.done = True
        elif plan and not (self.seen == 0 and "skip" in text.lower()):
            self.plan = int(plan.group(1))
        else:
            self.output(text)

    def output(self, text):
        found = list(points(text))
        for state, name, reason in found:
            self.seen += 1
            self.failed += state == "failed"
            self.plan = 1 if name == "all" else self.plan
            self.results.point(state, self.name(name), reason)
        if not found and text.startswith("#"):
            tell(f"# {self.guest}: {text[1:].strip()}")

    def ended(self, how, status):
        if how == "killed":
            self.results.point("failed", self.name(), f"killed by signal {status}")
        elif status and not self.failed:
            self.results.point("failed", self.name(), f"ended with status {status}")
        elif self.plan != self.seen:
            self.results.point("failed", self.name(), f"{self.seen} points of TAP, and a plan of {self.plan}")
        self.test = ""


_emulators = []  # that were started


def read_lines(stream, lines):
    for line in stream:
        lines.put(line.decode(errors="replace").rstrip("\r\n"))
    lines.put(None)


def make_referee(guest, folder):
    """The plugin, and the file that it writes."""
    plugin = folder / f"{guest.name}.so"
    do(os.environ.get("CC") or "cc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fPIC",
       "-shared", "-o", plugin, HERE / "referee.c")
    return plugin, folder / f"{guest.name}.out"


COUNTS = re.compile(r"(\w+)=(\d+)")


def counts_in(lines):
    return [{key: int(value) for key, value in COUNTS.findall(line)} for line in lines]


def judge(guest, console, referee_out, results):
    """Compares what was counted with what the referee saw: but for a constant, each time the same."""
    told = [line for line in console.read_text(encoding="utf-8").splitlines() if line.startswith("# counted ")]
    counted, seen = counts_in(told), counts_in(referee_out.read_text().splitlines())
    names = [line.split(":")[0].removeprefix("# counted ") for line in told]
    if not counted or len(counted) != len(seen):
        results.point("failed", f"{guest.name}: referee", f"{len(counted)} counts, and {len(seen)} of the referee")
        return
    last = {name: number for number, name in enumerate(names)}
    around = {key: counted[last["nothing"]][key] - seen[last["nothing"]][key] for key in counted[0]}
    for number, name in enumerate(names):
        if name == "nothing" or name.endswith("to warm up"):
            continue
        for key, value in counted[number].items():
            right = seen[number][key] + around[key]
            state = "passed" if value == right else "failed"
            results.point(state, f"{guest.name}: referee: {key} of {name}", f"{value}, not {right}")


def boot(emulator, machine, guest, kernel, archive, console, results, more=()):
    # A CPU with one instruction a nanosecond, so that what runs is the same each time; idle time is passed over.
    words = [emulator, *machine.words, "-cpu", guest.cpu, "-icount", "shift=0,sleep=off", "-m", "1024",
             "-display", "none", "-serial", "stdio", "-monitor", "none", "-nic", "none", "-no-reboot",
             "-kernel", kernel, "-initrd", archive,
             "-append", f"console={machine.console} quiet loglevel=2 panic=-1 {guest.kernel}", *more]
    listener, lines = Listener(guest.name, results), queue.Queue()
    end = time.monotonic() + LIMIT_S
    process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env={**os.environ, **guest.env})
    _emulators.append(process)
    threading.Thread(target=read_lines, args=(process.stdout, lines), daemon=True).start()
    try:
        with open(console, "w", encoding="utf-8") as log:
            while (line := lines.get(timeout=max(0.01, end - time.monotonic()))) is not None:
                log.write(line + "\n")
                listener.line(line)
        why = "" if listener.done else f"the guest ended early ({listener.test or 'between tests'})"
    except queue.Empty:
        why = f"not at its end after {LIMIT_S} s ({listener.test or 'between tests'})"
    finally:
        process.kill()
        process.wait()
    return why


def matches(name, patterns):
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def run_guest(guest, args, parts, results):
    machine, (emulator, kernel, root, tests) = MACHINES[args.arch], parts
    wanted = [name for name in tests if matches(name, args.tests or ["*"]) and matches(name, guest.tests)]
    chosen = {name: tests[name] for name in wanted if name not in LEFT_OUT}
    for name in wanted:
        if name in LEFT_OUT:
            results.point("skipped", f"{guest.name}: {name}", LEFT_OUT[name])
    if not chosen:
        return
    archive, console = args.build / f"{guest.name}.cpio", args.build / f"{guest.name}.console"
    make_archive(archive, args.build, root, chosen)
    say(f"{guest.name}: booting {kernel.name} on {guest.cpu} {guest.kernel}".rstrip())
    more = []
    if guest.referee:
        plugin, seen = make_referee(guest, args.build)
        more = ["-plugin", f"{plugin},out={seen}"]
    why = boot(emulator, machine, guest, kernel, archive, console, results, more)
    if guest.referee and "plugin" in console.read_text(encoding="utf-8"):
        results.point("skipped", f"{guest.name}: referee", "this emulator takes no plugins of version 1 (QEMU 8.1 does)")
    elif why:
        results.point("failed", f"{guest.name}: the guest", why)
    elif guest.referee:
        judge(guest, console, seen, results)
    if results.failures_of(guest):
        tell(f"# lab: {guest.name}: its console is kept in {console}")
    else:
        console.unlink()
    archive.unlink()


def run_guests(guests, args, parts, results):
    """An emulator keeps one CPU busy: as many at a time as there are."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(run_guest, guest, args, parts, results) for guest in guests]
        try:
            for one in running:
                one.result()
        except BaseException:
            for one in running:
                one.cancel()
            for process in _emulators:
                process.kill()
            raise


def main():
    # Ends as by Ctrl-C, so that no emulator stays behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description="runs tests in emulated guests that have a PMU")
    parser.add_argument("--arch", choices=sorted(MACHINES), default="arm64")
    parser.add_argument("--build", type=Path, help="default: build-lab/ARCH")
    parser.add_argument("--guest", help="one of the architecture's alone")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("tests", nargs="*")
    args = parser.parse_args()
    args.build = (args.build or SOURCE / "build-lab" / args.arch).resolve()
    machine, results = MACHINES[args.arch], Results()
    try:
        emulator = find_emulator(machine, args.arch)
        check_compiler(args.arch)
        kernel, root = get_kernel(machine)
    except Unable as why:
        results.point("skipped", "all", str(why))
        return results.end(args.tap)
    say("building the tests")
    tests = build(args.arch, args.build, root)
    for pattern in args.tests:
        if not any(matches(name, [pattern]) for name in tests):
            sys.exit(f"lab: no test {pattern}; there are {' '.join(tests)}")
    guests = [g for g in machine.guests if args.guest in (None, g.name) and
              (os.environ.get("TALLY_LAB_QEMU") or not g.named)]
    run_guests(guests, args, (emulator, kernel, root, tests), results)
    say("done")
    return results.end(args.tap)


if __name__ == "__main__":
    sys.exit(main())
