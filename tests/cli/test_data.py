#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally data: what it makes of recordings says the same to perf(1). Speaks TAP."""
import glob
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

from tapcli import has, main, named, need, run, same, scratch, skip, tally, test, watches_cpus

TOUCH = os.environ["TOUCH"]
MAKE = os.environ["MAKE_PERFDATA"]
SHARED = os.path.join(os.environ.get("TALLY_SHARED", os.path.join(os.environ["SOURCE"], "..", "shared")), "perfdata")
# On all CPUs where that is allowed: what the rest of the machine does is in it, too.
EVERYWHERE = ["-a"] if watches_cpus() else []


def perf(*words):
    """What perf prints on either stream, without what differs between two files of one content."""
    done = run(need("perf"), *words, env=dict(os.environ, LC_ALL="C", PAGER="cat", DEBUGINFOD_URLS=""))
    lines = (done.stderr + done.stdout).splitlines()
    varies = re.compile(r"# (captured on|data offset|data size|feat offset)|perf-vdso\.so-")
    return [line for line in lines if not varies.search(line)]


def script(path, *words):
    done = run(need("perf"), "script", "-i", path, "-F", "comm,pid,tid,cpu,time,event,ip,sym,dso", *words)
    same(done.returncode, 0, done.stderr)
    return done.stdout


def record(folder, name, *words):
    """A recording of a command that has a few processes and threads."""
    path = os.path.join(folder, name)
    command = "for i in 1 2 3; do python3 -c 'sum(range(900000))'; done; exec sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'"
    done = run(need("perf"), "record", "-q", "--sample-cpu", "-o", path, *words, "--", "sh", "-c", command)
    same(done.returncode, 0, done.stderr)
    return path


def check_same(path, copy):
    for words in (["script"], ["report", "--stats"], ["report", "--header-only"], ["evlist", "-v"], ["buildid-list"]):
        got = [line.replace(copy, path) for line in perf(*words, "-i", copy)]
        want = perf(*words, "-i", path)
        if got != want:
            differ = [pair for pair in zip(got, want) if pair[0] != pair[1]][:2]
            raise AssertionError(f"perf {' '.join(words)}: {len(got)} lines, not {len(want)}: {differ}")


@test
def a_copy_says_the_same_to_perf():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock,page-faults", "--call-graph", "fp", *EVERYWHERE)
        copy = os.path.join(folder, "copy")
        done = tally("data", "cut", "-o", copy, path)
        same(done.returncode, 0, done.stderr)
        check_same(path, copy)
        assert not os.path.exists(copy + ".part")


@test
def copies_of_public_files_say_the_same_to_perf():
    files = [f for f in sorted(glob.glob(os.path.join(SHARED, "*.data*"))) if ".pipe" not in f and "corrupt" not in f]
    if not files:
        skip("no recordings of others here (../shared/perfdata)")
    with scratch() as folder:
        copy = os.path.join(folder, "copy")
        for path in files:
            if not os.path.isfile(path) or "incompatible" in "".join(perf("evlist", "-i", path)):
                continue
            done = tally("data", "cut", "-o", copy, path)
            same(done.returncode, 0, done.stderr)
            check_same(path, copy)


@test
def a_file_may_be_its_own_copy():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock")
        before = perf("script", "-i", path)
        same(tally("data", "cut", "-o", path, path).returncode, 0)
        same(perf("script", "-i", path), before)


@test
def filters_are_perfs():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock,page-faults")
        copy = os.path.join(folder, "copy")
        samples = script(path).splitlines()
        pids = sorted({re.search(r"(\d+)/(\d+)", line).group(1) for line in samples})
        times = [float(re.search(r"([\d.]+): ", line).group(1)) for line in samples]
        cpu = str(int(re.search(r"\[(\d+)\]", samples[0]).group(1)))
        span = f"{times[len(times) // 4]:.6f},{times[len(times) // 2]:.6f}"
        # perf prints microseconds, and its span includes its end; so a nanosecond later.
        for ours, theirs in ((["--pid", pids[0]], ["--pid", pids[0]]), (["--tid", pids[-1]], ["--tid", pids[-1]]),
                             (["--comm", "python3"], ["--comms", "python3"]), (["-C", cpu], ["-C", cpu])):
            done = tally("data", "cut", *ours, "-o", copy, path)
            same(done.returncode, 0, done.stderr)
            want = script(path, *theirs)
            assert want.strip(), theirs
            same(script(copy).splitlines(), want.splitlines(), " ".join(ours))
        done = tally("data", "cut", "--time", span, "-o", copy, path)
        same(done.returncode, 0, done.stderr)
        first, last = (float(t) for t in span.split(","))
        want = [line for line, t in zip(samples, times) if first <= t < last]
        assert abs(len(script(copy).splitlines()) - len(want)) <= 2
        done = tally("data", "cut", "-e", named("page-faults"), "-o", copy, path)
        same(done.returncode, 0, done.stderr)
        same(script(copy).splitlines(), [line for line in samples if f" {named('page-faults')}:" in line])
        has(tally("data", "cut", "-e", "cycles", "-o", copy, path).stderr, "has no event 'cycles'")
        # Those of user mode alone by the name without that, too.
        user = record(folder, "user.data", "-e", "cpu-clock:u,page-faults:u")
        for event in ("page-faults", "page-faults:u", "cycles,page-faults"):
            done = tally("data", "cut", "-e", event, "-o", copy, user)
            same(done.returncode, 0, done.stderr)
            same(script(copy).splitlines(), [line for line in script(user).splitlines() if " page-faults:u:" in line])
        same(tally("script", "--event", "page-faults", "-i", user).stdout.count(" page-faults:u:"),
             script(user).count(" page-faults:u:"))
        same(tally("data", "cut", "--pid", "1,x", "-o", copy, path).returncode, 2)


@test
def merged_files_have_the_samples_of_both():
    for events in (["cpu-clock", "cpu-clock"], ["cpu-clock", "page-faults"], ["cpu-clock,page-faults", "page-faults"]):
        with scratch() as folder:
            paths = [record(folder, f"{i}.data", "-e", e) for i, e in enumerate(events)]
            merged = os.path.join(folder, "merged")
            done = tally("data", "merge", "-o", merged, *paths)
            same(done.returncode, 0, done.stderr)
            want = sorted(line for path in paths for line in script(path).splitlines())
            # The column of events is as wide as the longest name of the file.
            got = sorted(re.sub(" +", " ", line) for line in script(merged).splitlines())
            want = sorted(re.sub(" +", " ", line) for line in want)
            assert got == want, f"{events}: {len(got)} samples, not {len(want)}"

            same([e["samples"] for e in json.loads(tally("data", "info", "--json", merged).stdout)["events"]],
                 [e["samples"] for p in paths for e in json.loads(tally("data", "info", "--json", p).stdout)["events"]])


@test
def machines_are_kept_apart():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock")
        with open(path, "rb") as file:
            content = file.read()
        host = os.uname().nodename.encode()
        other = os.path.join(folder, "other")
        with open(other, "wb") as file:
            file.write(content.replace(host + b"\0", b"\x71" + host[1:] + b"\0"))
        merged = os.path.join(folder, "merged")
        done = tally("data", "merge", "-o", merged, path, other)
        same(done.returncode, 0, done.stderr)
        has(done.stderr, "clocks of different machines")
        info = json.loads(tally("data", "info", "--json", merged).stdout)
        same(info["hostname"], f"{os.uname().nodename},q{os.uname().nodename[1:]}")
        same([e["name"] for e in info["events"]], [f"{named('cpu-clock')}@{h}" for h in info["hostname"].split(",")])
        same(len({e["samples"] for e in info["events"]}), 1)
        # Names and places are found for both, each under its own process.
        lines = [re.sub(" +", " ", re.sub(r"@\S+:", ":", line)) for line in script(merged).splitlines()]
        raised = [line for line in lines if int(re.search(r"(\d+)/", line).group(1)) > 1 << 22]
        back = [re.sub(r"(\d+)/(\d+)", lambda m: f"{int(m[1]) - (1 << 22)}/{int(m[2]) - (1 << 22)}", line) for line in raised]
        assert raised and sorted(back) == sorted(line for line in lines if line not in raised and " 0/0 " not in line)


@test
def nothing_tells_whose_an_anonymous_recording_is():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock", *EVERYWHERE, "--call-graph", "fp")
        copy, names = os.path.join(folder, "copy"), os.path.join(folder, "names")
        done = tally("data", "cut", "--anonymise", "--names", names, "-o", copy, path)
        same(done.returncode, 0, done.stderr)
        with open(copy, "rb") as file:
            content = file.read()
        same(json.loads(tally("data", "info", "--json", copy).stdout)["hostname"], "host1")
        for secret in ("python3", "/usr/", "libc.so"):
            assert secret.encode() not in content, f"{secret!r} at {content.index(secret.encode())}"
        with open(names, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        has([row[1] for row in rows if row[0] == "comm"], "python3")
        again = os.path.join(folder, "again")
        same(tally("data", "cut", "--anonymise", "--names", names, "-o", again, path).returncode, 0)
        with open(again, "rb") as file:
            assert file.read() == content, "the same list of names gives another file"
        path = record(folder, "flat", "-e", "cpu-clock")
        same(tally("data", "cut", "--anonymise", "-o", copy, path).returncode, 0)
        fields = ("script", "-F", "pid,tid,time,period,ip", "-i")
        assert perf(*fields, copy) == perf(*fields, path), "samples changed"


@test
def what_was_cut_short_becomes_whole():
    with scratch() as folder:
        whole, cut, copy = (os.path.join(folder, n) for n in ("whole", "cut", "copy"))
        same(run(MAKE, whole, "1000").returncode, 0)
        same(tally("data", "check", whole).returncode, 0)
        with open(whole, "rb") as file:
            content = file.read()
        with open(cut, "wb") as file:
            file.write(content[:len(content) // 2])
        done = tally("data", "check", cut)
        same(done.returncode, 1)
        has(done.stdout, "cut short")
        done = tally("data", "cut", "-o", copy, cut)
        same(done.returncode, 0, done.stderr)
        has(done.stderr, "cut short")
        same(tally("data", "check", copy).returncode, 0)
        assert 300 < json.loads(tally("data", "info", "--json", copy).stdout)["records"]["SAMPLE"] < 1000
        same(run(MAKE, cut, "1000", "killed").returncode, 0)
        done = tally("data", "check", cut)
        same(tally("data", "cut", "-o", copy, cut).returncode, 0)
        same(script(copy), script(whole).replace("cpu-clock:", "cpu-clock:"))


@test
def records_out_of_order_are_found():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        same(run(MAKE, path, "1000").returncode, 0)
        with open(path, "rb") as file:
            content = bytearray(file.read())
        # The time of the last sample but a few becomes that of the first: 1 s.
        last = content.rindex((1000000000 + 990 * 1000000).to_bytes(8, "little"))
        content[last:last + 8] = (1000000000).to_bytes(8, "little")
        with open(path, "wb") as file:
            file.write(content)
        done = tally("data", "check", path)
        same(done.returncode, 1)
        has(done.stdout, "1 records are older than their round allows")


@test
def info_counts_what_perf_counts():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock", "--call-graph", "fp")
        text = tally("data", "info", path).stdout
        got = dict(re.findall(r"^([A-Z_0-9]+) (\d+)$", text, flags=re.M))
        stats = "\n".join(perf("report", "--stats", "-i", path)).split(" stats:\n")[1]
        want = dict(re.findall(r"^ +(\w+) events: +(\d+)", stats, flags=re.M))
        want.pop("TOTAL")
        # perf shortens two names.
        want = {{"ATTR": "HEADER_ATTR", "FEATURE": "HEADER_FEATURE"}.get(k, k): v for k, v in want.items()}
        same(got, want)
        info = json.loads(tally("data", "info", "--json", path).stdout)
        same({k: str(v) for k, v in info["records"].items()}, got)
        has(text, f"# hostname: {os.uname().nodename}")
        has(info["features"], "EVENT_DESC")


@test
def a_stream_and_a_compressed_file_can_be_made():
    with scratch() as folder:
        path = record(folder, "perf.data", "-e", "cpu-clock,page-faults")
        want = perf("script", "-i", path)
        packed, stream = os.path.join(folder, "packed"), os.path.join(folder, "stream")
        same(tally("data", "cut", "-z", "3", "-o", packed, path).returncode, 0)
        same(perf("script", "-i", packed), want)
        assert os.path.getsize(packed) < os.path.getsize(path)
        with open(stream, "wb") as to:
            same(subprocess.run([os.environ["TALLY"], "data", "cut", "-o", "-", path], stdout=to,
                                stderr=subprocess.DEVNULL, check=False).returncode, 0)
        same(perf("script", "-i", stream), want)


@test
def a_packed_recording_needs_nothing_else():
    with scratch() as folder:
        program, path = os.path.join(folder, "program"), os.path.join(folder, "perf.data")
        shutil.copy(os.path.join(os.environ["BUILD"], "examples", "workload"), program)
        done = tally("record", "-q", "--call-graph", "fp", "-e", "cpu-clock", "-o", path, "--", program)
        same(done.returncode, 0, done.stderr)
        want = tally("report", "--no-children", "-i", path).stdout
        has(want, "sift_down")
        done = tally("data", "pack", path)
        same(done.returncode, 0, done.stderr)
        names = run("tar", "tf", path + ".tar").stdout.splitlines()
        same(names[0], "perf.data")
        has(names, program[1:])
        os.remove(program)
        assert "sift_down" not in tally("report", "--no-children", "-i", path).stdout
        before = set(os.listdir("/tmp"))
        done = tally("report", "--no-children", "-i", path + ".tar")
        same(done.returncode, 0, done.stderr)
        same(done.stdout.replace(path + ".tar", path), want)
        same({n for n in set(os.listdir("/tmp")) - before if re.fullmatch(r"tally-\w{6}", n)}, set())
        with open(path + ".tar", "r+b") as file:
            file.seek(100000)
            file.truncate()
        done = tally("report", "-i", path + ".tar")
        same(done.returncode, 1)
        has(done.stderr, "damaged archive")
        done = tally("data", "pack", "-o", path + ".tar", path)
        has(done.stderr, "not here any more")


@test
def an_archive_cannot_write_elsewhere():
    with scratch() as folder:
        path = os.path.join(folder, "evil.tar")
        for name in ("../escaped", "/tmp/tally-escaped", "a/../../escaped"):
            with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
                archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
            done = tally("report", "-i", path, env=dict(os.environ, TMPDIR=folder))
            same(done.returncode, 1)
            has(done.stderr, "damaged archive")
            same(os.listdir(folder), ["evil.tar"])


@test
def mistakes_are_told():
    same(tally("data").returncode, 2)
    has(tally("data", "-h").stdout, "merge")
    has(tally("data", "frobnicate").stderr, "no action 'frobnicate'")
    same(tally("data", "merge", "one").returncode, 2)
    same(tally("data", "info", "/nonexistent").returncode, 1)
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        same(run(MAKE, path, "10").returncode, 0)
        has(tally("data", "cut", "-z", "23", "-o", os.path.join(folder, "x"), path).stderr, "level 23")
        has(tally("data", "cut", "--names", "x", path).stderr, "--anonymise")
        same(sorted(os.listdir(folder)), ["perf.data"])


if __name__ == "__main__":
    raise SystemExit(main())
