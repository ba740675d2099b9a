#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""perf(1) reads what tally's writer wrote, without a word of complaint. Speaks TAP."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SAMPLES = 1000
MAKE = os.environ["MAKE_PERFDATA"]
RESULTS = []


def perf(folder, *words):
    """What perf printed; its complaints end up in `complaints`."""
    env = dict(os.environ, HOME=folder, DEBUGINFOD_URLS="", LC_ALL="C", PAGER="cat")
    # perf 6.1 reads memory that it never set when it shows the header of a made-up stream, and crashes
    # when the C library fills that with certain bytes.
    env.pop("MALLOC_PERTURB_", None)
    done = subprocess.run(["perf", *words], capture_output=True, text=True, env=env,
                          stdin=subprocess.DEVNULL, timeout=120)
    complaints = [f"perf {words[0]}: {line}" for line in done.stderr.splitlines()]
    if done.returncode:
        complaints.append(f"perf {' '.join(words)} ended with {done.returncode}")
    return done.stdout, complaints


def check(name, complaints):
    for line in complaints[:5]:
        print("#", line)
    RESULTS.append(not complaints)
    print("not ok" if complaints else "ok", len(RESULTS), "-", name)


def differ(what, got, want):
    return [] if got == want else [f"{what}: {got!r}, not {want!r}"]


def expected_samples(two):
    """The samples of make-perfdata.c, as perf script prints them: addresses relative to the module."""
    for i in range(SAMPLES):
        event = "page-faults:u" if two and i % 4 == 0 else "cpu-clock"
        time = f"{1 + i // 1000}.{i % 1000 * 1000:06d}"
        yield (f"{4242 + i % 3}", f"{i % 2:03d}", time, f"{1000 + i}", event,
               [f"{0x100 + i % 16:x}", "800"])


def parse_script(text):
    samples = []
    for line in text.splitlines():
        head = re.match(r"made-up +(\d+) \[(\d+)\] +([\d.]+): +(\d+) +(\S+):", line)
        if head:
            samples.append((*head.groups(), []))
        elif line.strip():
            samples[-1][5].append(line.split()[0])
    return samples


def check_script(folder, path, two):
    text, complaints = perf(folder, "script", "-i", path, "-F", "comm,tid,cpu,time,period,event,ip")
    got, want = parse_script(text), list(expected_samples(two))
    complaints += differ("samples", len(got), SAMPLES)
    complaints += [f"sample {g}, not {w}" for g, w in zip(got, want) if g != w]
    return complaints


# What a stream and compression add to the records.
FORM = {"COMPRESSED", "ATTR", "FEATURE", "EVENT_UPDATE", "BUILD_ID", "TOTAL"}


def check_stats(folder, path, two):
    text, complaints = perf(folder, "report", "--stats", "-i", path)
    all_events = text.split("Aggregated stats:\n")[-1].split(" stats:\n")[0]
    counts = dict(re.findall(r"^ +(\w+) events: +(\d+)", all_events, flags=re.M))
    want = {"MMAP": "1", "COMM": "3", "SAMPLE": str(SAMPLES), "MMAP2": "1",
            "FINISHED_ROUND": str(SAMPLES // 100)}
    complaints += differ("records", {k: v for k, v in counts.items() if k not in FORM}, want)
    if "FEATURE" not in counts:
        complaints += differ("all records", int(counts["TOTAL"]),
                             SAMPLES + 5 + SAMPLES // 100 + int(counts.get("COMPRESSED", 0)))
    events = dict(re.findall(r"^(\S+) stats:\n +SAMPLE events: +(\d+)", text, flags=re.M))
    # Of a stream, perf report --stats reads attrs alone: it takes names from these.
    if "FEATURE" in counts:
        events = {f"{k}:u" if k == "page-faults" else k: v for k, v in events.items()}
    fourth = SAMPLES // 4
    want = {"cpu-clock": str(SAMPLES - fourth), "page-faults:u": str(fourth)} if two else \
        {"cpu-clock": str(SAMPLES)}
    return complaints + differ("samples by event", events, want)


def check_report(folder, path, two):
    text, complaints = perf(folder, "report", "--stdio", "--no-children", "-g", "none", "-i", path)
    if not re.search(r"made-up +made-up +\[\.\] 0x0000000000000100", text):
        complaints.append("perf report does not show the first address in its module")
    return complaints


def check_header(folder, path, clock, streamed_zstd):
    text, complaints = perf(folder, "report", "--header-only", "-i", path)
    host = os.uname()
    wanted = [f"# hostname : {host.nodename}", f"# os release : {host.release}",
              f"# arch : {host.machine}", "# nrcpus avail : ", "# total memory : ",
              f"# cmdline : {MAKE} {path} {SAMPLES}", "# event : name = cpu-clock, ",
              "# time of first sample : 1.000000", "# time of last sample : 1.999000"]
    if clock:
        wanted += ["# clockid: monotonic (1)", "# reference time: "]
    complaints += [f"no line begins {line!r}" for line in wanted if "\n" + line not in "\n" + text]
    if streamed_zstd:
        return complaints
    text, more = perf(folder, "buildid-list", "-i", path)
    return complaints + more + differ("build-ids", text.split(),
                                      ["abcdef" + "0" * 34, "/nonexistent/made-up"])


def judge(folder, name, *words):
    path = os.path.join(folder, "perf.data")
    subprocess.run([MAKE, path, str(SAMPLES), *words], check=True)
    two = "two" in words
    check(f"perf script prints the samples of {name}", check_script(folder, path, two))
    # There perf report --stats and buildid-list do not read the features of a stream, by which they
    # could decompress; perf record -z -o - leaves them the same.
    streamed_zstd = "zstd" in words and "stream" in words
    if not streamed_zstd:
        check(f"perf report counts the records of {name}", check_stats(folder, path, two))
    check(f"perf report shows {name}", check_report(folder, path, two))
    if "killed" not in words:
        check(f"perf knows what describes {name}", check_header(folder, path, "clock" in words, streamed_zstd))


def main():
    if not shutil.which("perf"):
        print("1..0 # SKIP perf(1) is not installed")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        judge(folder, "a file")
        judge(folder, "two events", "two")
        judge(folder, "a clock of choice", "clock")
        judge(folder, "what a killed writer left", "killed")
        judge(folder, "compressed records", "zstd")
        judge(folder, "a stream", "stream", "two", "clock")
        judge(folder, "a compressed stream", "stream", "zstd")
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
