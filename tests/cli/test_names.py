#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The names of code: of programs in containers, of deleted and of stripped ones, and of code that programs
make while they run. What is right is known by the programs, which were written here; perf has its say too."""
import ctypes
import glob
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
import time

from tapcli import TALLY, has, main, need, needs_cpus, run, same, scratch, skip, tally, test

BPF_SPIN = os.environ.get("BPF_SPIN", "bpf-spin-is-not-built")
JIT = os.environ.get("JIT", "jit-is-not-built")

SPIN = """
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void spin_inner(unsigned long n) { while (n--) sink += n; }
__attribute__((noinline)) static void spin_outer(void) { spin_inner(1000000); sink++; }
int main(int argc, char **argv)
{
	while (argc < 2 || clock() < atof(argv[1]) * CLOCKS_PER_SEC)
		spin_outer();
}
"""


def build(folder, name, *flags):
    """A program that spins in spin_inner, called by spin_outer, for ever or so many seconds."""
    need("gcc")
    source, path = os.path.join(folder, "spin.c"), os.path.join(folder, name)
    with open(source, "w") as f:
        f.write(SPIN)
    done = run("gcc", "-O1", "-g", "-fno-omit-frame-pointer", *flags, "-o", path, source)
    same(done.returncode, 0, done.stderr)
    return path


def other_program(folder, *flags):
    """Of the same code at the same addresses as "spin", but by other names."""
    build(folder, "spin", *flags)
    with open(os.path.join(folder, "spin.c")) as f:
        text = f.read()
    with open(os.path.join(folder, "other.c"), "w") as f:
        f.write(text.replace("spin_inner", "other_inner").replace("spin_outer", "other_outer"))
    path = os.path.join(folder, "other")
    same(run("gcc", "-O1", "-g", *flags, "-o", path, os.path.join(folder, "other.c")).returncode, 0)
    return path


def record(path, *words, cache=None, **more):
    env = dict(os.environ, XDG_CACHE_HOME=cache or os.path.join(os.path.dirname(path), "cache"))
    done = tally("record", "-q", "-F", "1000", "-o", path, *words, env=env, **more)
    same(done.returncode, 0, done.stderr)


def functions(path, *words, cache=None):
    """How many samples each function has, by script, whose names are those of report."""
    env = dict(os.environ, XDG_CACHE_HOME=cache or os.path.join(os.path.dirname(path), "cache"))
    done = tally("script", "-i", path, "-F", "ip,sym,dso", *words, env=env)
    same(done.returncode, 0, done.stderr)
    found = {}
    for line in done.stdout.splitlines():
        m = re.match(r"\s*[0-9a-f]+ (.*) \(([^()]*(?:\(deleted\))?)\)$", line)
        if m:
            found[m[1]] = found.get(m[1], 0) + 1
    return found


def mostly(found, name):
    """Most samples of a program that does nothing else; on a busy machine many fall into the kernel."""
    assert found.get(name, 0) > 0.5 * sum(found.values()), f"{name} is not in most of {found}"


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(x) for x in f.read().split()]


def named(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


class Container:
    """A copy of a program, /mnt/NAME, in its own mount, pid and user namespaces; /tmp and /mnt are its own."""

    def __init__(self, program, name, *words):
        need("unshare")
        script = " && ".join(("mount -t tmpfs none /mnt", f"cat {program} > /mnt/{name}", f"chmod +x /mnt/{name}",
                              "mount -t tmpfs none /tmp", " ".join(("exec", f"/mnt/{name}") + words)))
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--user", "--map-root-user", "--fork", "--mount-proc", "sh", "-c",
             script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = None
        for _ in range(500):
            if self.process.poll() is not None:
                skip("no container can be made here: " + self.process.stderr.read().strip())
            self.pid = next((pid for pid in self.below() if named(pid) == name), None)
            if self.pid:
                break
            time.sleep(0.01)
        assert self.pid, f"{name} does not start"

    def below(self):
        pids = [self.process.pid]
        for pid in pids:
            try:
                pids += children(pid)
            except OSError:
                pass
        return pids

    def __enter__(self):
        return self

    def __exit__(self, *why):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


@test
def a_program_in_a_container_has_the_names_that_it_has_outside():
    with scratch() as folder:
        path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
        prog = build(folder, "spin")
        with Container(prog, "boxed") as box:
            record(path, "-p", box.pid, "--duration", "0.5", cache=cache)
            mostly(functions(path, cache=cache), "spin_inner")
            mostly(functions(path, cache="/nonexistent"), "spin_inner")
        assert not os.path.exists("/mnt/boxed"), "the program is outside, too"
        mostly(functions(path, cache=cache), "spin_inner")
        # An archive has what was kept.
        env = dict(os.environ, XDG_CACHE_HOME=cache)
        same(tally("data", "pack", "-o", path + ".tar", path, env=env).returncode, 0)
        done = tally("report", "-i", path + ".tar", env=dict(os.environ, XDG_CACHE_HOME="/nonexistent"))
        has(done.stdout, "spin_inner")
        # Without what the recording kept nothing tells, and that is said.
        mostly(functions(path, cache="/nonexistent"), "[unknown]")
        done = tally("report", "-i", path, env=dict(os.environ, XDG_CACHE_HOME="/nonexistent"))
        has(done.stderr + done.stdout, "boxed")


@test
def code_that_a_container_makes_has_its_names_when_that_is_gone():
    with scratch() as folder:
        for mode in "map", "dump":
            path, cache = os.path.join(folder, mode), os.path.join(folder, "cache")
            with Container(JIT, "maker", mode, "30", "/mnt") as box:
                record(path, "-p", box.pid, "--duration", "0.5", cache=cache)
                mostly(functions(path, cache="/nonexistent"), "made_first")
            mostly(functions(path, cache=cache), "made_first")
            found = functions(path, cache="/nonexistent")
            assert "made_first" not in found, f"nothing should know it: {found}"
            env = dict(os.environ, XDG_CACHE_HOME=cache)
            same(tally("data", "pack", "-o", path + ".tar", path, env=env).returncode, 0)
            done = tally("report", "-i", path + ".tar", env=dict(os.environ, XDG_CACHE_HOME="/nonexistent"))
            has(done.stdout, "made_first")


@test
def two_containers_have_their_own_file_of_one_path():
    needs_cpus()
    with scratch() as folder:
        path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
        one = build(folder, "one")
        with Container(one, "boxed"), Container(other_program(folder), "boxed"):
            record(path, "-a", "--duration", "0.7", cache=cache)
        found = functions(path, "-c", "boxed", cache=cache)
        assert found.get("spin_inner", 0) > 5 and found.get("other_inner", 0) > 5, f"{found}"
        assert found.get("[unknown]", 0) < 0.1 * sum(found.values()), f"{found}"
        # perf may not know better, but must read the file.
        if run("perf", "--version").returncode == 0:
            done = run("perf", "report", "-i", path, "--stdio")
            same(done.returncode, 0, done.stderr)
            has(done.stdout, "boxed")


@test
def a_deleted_program_has_its_names_while_it_runs_and_after():
    with scratch() as folder:
        path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
        prog = build(folder, "spin")
        with subprocess.Popen([prog]) as process:
            try:
                os.remove(prog)
                record(path, "-p", process.pid, "--duration", "0.4", cache=cache)
                mostly(functions(path, cache="/nonexistent"), "spin_inner")
            finally:
                process.kill()
        mostly(functions(path, cache=cache), "spin_inner")
        mostly(functions(path, cache="/nonexistent"), "[unknown]")


@test
def a_program_in_a_memfd_has_its_names_while_it_runs_and_after():
    with scratch() as folder:
        path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
        script = ("import os, sys; fd = os.memfd_create('boxed', 0); os.write(fd, open(sys.argv[1], 'rb').read());"
                  "os.execv(f'/proc/self/fd/{fd}', ['boxed'])")
        with subprocess.Popen([sys.executable, "-c", script, build(folder, "spin")]) as process:
            try:
                while "memfd" not in os.readlink(f"/proc/{process.pid}/exe"):
                    time.sleep(0.01)
                record(path, "-p", process.pid, "--duration", "0.4", cache=cache)
                mostly(functions(path, cache="/nonexistent"), "spin_inner")
            finally:
                process.kill()
        mostly(functions(path, cache=cache), "spin_inner")


@test
def another_build_in_the_place_of_a_program_is_not_taken_for_it():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        prog = build(folder, "spin")
        record(path, "-N", "--", prog, "0.3")
        mostly(functions(path), "spin_inner")
        build(folder, "spin", "-O2", "-Wl,--build-id=0x1234")
        mostly(functions(path), "[unknown]")
        done = tally("report", "-i", path)
        has(done.stdout + done.stderr, "another build")


@test
def a_program_that_is_replaced_while_it_is_recorded_keeps_its_names():
    """By its build-id, from what was kept; where it has none nothing is said rather than another program's names. The
    inode of what was removed may be that of the next file."""
    for flags in ([], ["-Wl,--build-id=none"]):
        for how in ("rm spin; cp other spin", "cp other new; mv new spin"):
            with scratch() as folder:
                path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
                other_program(folder, *flags)
                script = f"./spin 1 & sleep 0.5; {how}; wait"
                record(path, "--", "sh", "-c", script, cache=cache, cwd=folder)
                found = functions(path, "-c", "spin", cache=cache)
                assert "other_inner" not in found, f"{flags} {how}: {found}"
                mostly(found, "[unknown]" if flags else "spin_inner")
                if flags:
                    has(tally("report", "-i", path).stdout, "another inode")


@test
def a_container_that_ends_before_the_recording_does():
    with scratch() as folder:
        path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
        prog = build(folder, "spin")
        with Container(prog, "boxed", "1") as box:
            record(path, "-p", box.pid, cache=cache)
        mostly(functions(path, cache=cache), "spin_inner")


@test
def a_stripped_program_has_the_names_of_its_debug_file():
    with scratch() as folder:
        path, prog = os.path.join(folder, "perf.data"), build(folder, "spin")
        need("objcopy")
        os.mkdir(os.path.join(folder, ".debug"))
        for words in (("--only-keep-debug", prog, os.path.join(folder, "spin.debug")),
                      ("--strip-all", f"--add-gnu-debuglink={folder}/spin.debug", prog)):
            same(run("objcopy", *words).returncode, 0)
        record(path, "--", prog, "0.3")
        mostly(functions(path), "spin_inner")
        os.rename(os.path.join(folder, "spin.debug"), os.path.join(folder, ".debug", "spin.debug"))
        mostly(functions(path), "spin_inner")
        os.remove(os.path.join(folder, ".debug", "spin.debug"))
        mostly(functions(path), "[unknown]")
        done = tally("report", "-i", path)
        has(done.stdout + done.stderr, "-dbgsym")


class Server(http.server.BaseHTTPRequestHandler):
    """What debuginfod(8) answers: /buildid/ID/debuginfo and /buildid/ID/executable."""
    files = {}
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        body = self.files.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *words):
        pass


@test
def servers_are_asked_when_that_is_asked_for():
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError:
        skip("libdebuginfod is not installed")
    need("objcopy")
    with scratch() as folder, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path, prog = os.path.join(folder, "perf.data"), build(folder, "spin", "-Wl,--build-id=0x" + "ab12" * 10)
        same(run("objcopy", "--only-keep-debug", prog, prog + ".debug").returncode, 0)
        same(run("strip", prog).returncode, 0)
        record(path, "--", prog, "0.3")
        Server.files = {f"/buildid/{'ab12' * 10}/debuginfo": open(prog + ".debug", "rb").read(),
                        f"/buildid/{'ab12' * 10}/executable": open(prog, "rb").read()}
        env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}",
               "DEBUGINFOD_CACHE_PATH": os.path.join(folder, "servers")}
        os.environ.update(env)
        try:
            mostly(functions(path), "[unknown]")
            same(Server.asked, [], "what was asked without being told to")
            mostly(functions(path, "--debuginfod"), "spin_inner")
            # The program too, where that is gone.
            os.remove(prog)
            mostly(functions(path, "--debuginfod"), "spin_inner")
            assert any("executable" in asked for asked in Server.asked), f"{Server.asked}"
            has(tally("report", "-i", path, "--debuginfod", "-s", "srcline").stdout, "spin.c:")
        finally:
            server.shutdown()
            for name in env:
                del os.environ[name]


@test
def code_that_is_replaced_has_the_name_of_its_time():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        record(path, "--", JIT, "dump", "0.6", folder)
        done = tally("script", "-i", path, "-F", "time,ip,sym")
        names = [line.split()[-1] for line in done.stdout.splitlines() if "made_" in line]
        first, second = names.count("made_first"), names.count("made_second")
        assert first > 5 and second > 5, f"{first} and {second} samples"
        same(names, ["made_first"] * first + ["made_second"] * second, "the order")
        # The report counts the same ones.
        found = functions(path)
        same((found["made_first"], found["made_second"]), (first, second))


@test
def a_perf_map_names_code_as_perf_reads_it():
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        record(path, "--", JIT, "map", "0.6", folder)
        found = functions(path)
        assert found.get("made_first", 0) > 5 and found.get("made_second", 0) > 5, f"{found}"
        need("perf")
        fields = "ip,sym,dso"
        same(tally("script", "-i", path, "-F", fields).stdout, run("perf", "script", "-i", path, "-F", fields).stdout,
             "what script prints")


@test
def the_kernels_names_are_kept_for_who_may_not_see_them():
    need("setpriv")
    if os.geteuid() != 0:
        skip("not root: the kernel's addresses are hidden already")
    with scratch() as folder:
        path, cache = os.path.join(folder, "perf.data"), os.path.join(folder, "cache")
        record(path, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=30000", cache=cache)
        for at, folders, files in os.walk(folder):
            os.chmod(at, 0o755)
            for name in files:
                os.chmod(os.path.join(at, name), 0o644)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        if run(*nobody, TALLY, "version").returncode != 0:
            skip("another user may not run what was built here")
        if "0000000000000000 T _text" not in run(*nobody, "cat", "/proc/kallsyms").stdout:
            skip("everybody may see the kernel's addresses here")
        for where, name in (cache, "[a-z_]"), ("/nonexistent", "0xffff"):
            done = run(*nobody, TALLY, "report", "-i", path, "--no-call-graph",
                       env=dict(os.environ, XDG_CACHE_HOME=where))
            same(done.returncode, 0, done.stderr)
            found = re.findall(r"\[k\] (\S+)", done.stdout)
            assert found and all(re.match(name, symbol) for symbol in found), done.stdout


@test
def bpf_programs_have_names_when_they_are_gone():
    if run(BPF_SPIN, "0.01").returncode != 0:
        skip("no BPF program can be loaded here")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        record(path, "--", BPF_SPIN, "0.5")
        found = functions(path, "-c", "bpf-spin")
        names = [name for name in found if re.fullmatch("bpf_prog_[0-9a-f]{16}_spin", name)]
        if not names and "[unknown]" not in found:
            skip("this kernel has no compiler for BPF programs")
        same(len(names), 1, f"the number of programs in {found}")
        assert found[names[0]] > 5, f"{found}"
        with open("/proc/kallsyms") as f:
            assert names[0] not in f.read(), "it is still there"
        if run("perf", "--version").returncode == 0:
            has(run("perf", "script", "-i", path, "-F", "ip,sym").stdout, names[0])


NODE = """
function hotNamed(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * i % 7; return s }
const end = Date.now() + 800; let x = 0; while (Date.now() < end) x += hotNamed(20000);
"""


@test
def node_tells_of_its_code_in_both_ways():
    need("node")
    with scratch() as folder:
        script = os.path.join(folder, "hot.js")
        with open(script, "w") as f:
            f.write(NODE)
        for flag in "--perf-basic-prof", "--perf-prof":
            path = os.path.join(folder, flag)
            record(path, "--", "node", flag, script, cwd=folder)
            found = functions(path, "-c", "node")
            assert any("hotNamed" in name for name in found), f"{flag}: {found}"
            # Its compiler puts the loop of the one into the other as it sees fit.
            hot = sum(count for name, count in found.items() if "hot.js" in name)
            assert hot > 0.5 * sum(found.values()), f"{flag}: {hot} of {found}"


def perf_maps():
    return set(glob.glob("/tmp/perf-*.map"))


if __name__ == "__main__":
    before = perf_maps()
    status = main()
    for left in perf_maps() - before:
        os.remove(left)
    sys.exit(status)
