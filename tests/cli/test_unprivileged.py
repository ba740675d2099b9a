#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A user without rights, at every level of kernel.perf_event_paranoid, behind filters and with small
limits: what fails says why and what mends it, with the values that it read; what can still work does.
The referees are perf_event_open(2), Documentation/admin-guide/sysctl/kernel.rst and setpriv(1)."""
import contextlib
import json
import os
import re
import signal
import sys

from tapcli import TALLY, TOUCH, has, main, need, run, same, scratch, skip, test

REFUSE = os.environ.get("REFUSE", "refuse-is-not-built")
SYSCTL = "/proc/sys/kernel/"
NOBODY = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
PAGES = 1234
RUNS = 5


def nobody(*words, before=(), **more):
    """Runs tally as a user without rights; `before` runs setpriv."""
    return run(*before, need("setpriv"), *NOBODY, TALLY, *words, **more)


def need_nobody():
    if os.geteuid() != 0:
        skip("only root can become another user and change settings")
    if nobody("version").returncode != 0:
        skip("another user may not run what was built here")


@contextlib.contextmanager
def setting(name, value):
    """A sysctl of the kernel has a value until the `with` ends, however that is."""
    need_nobody()
    try:
        with open(SYSCTL + name) as file:
            before = file.read().strip()
    except OSError as why:
        skip(f"kernel.{name} cannot be read: {why.strerror}")
    try:
        with open(SYSCTL + name, "w") as file:
            file.write(str(value))
    except OSError as why:
        skip(f"kernel.{name} cannot be set to {value}: {why.strerror}")
    try:
        yield
    finally:
        with open(SYSCTL + name, "w") as file:
            file.write(before)


def paranoid(level):
    return setting("perf_event_paranoid", level)


def forbids_all():
    """Linux itself has no level above 2; kernels of distributions forbid everything there."""
    return nobody("stat", "-e", "page-faults:u", "--", "true").returncode != 0


def refused(done, *parts):
    """A failure is status 1, nothing on stdout, and one line with all the parts."""
    same(done.returncode, 1, "status")
    same(done.stdout, "", "stdout")
    lines = done.stderr.splitlines()
    same(len(lines), 1, f"lines of {done.stderr!r}")
    for part in parts:
        has(lines[0], part)


def refused_at(level, allowed, *words):
    """Refused by the level; `allowed` is the highest one at which it would not be."""
    refused(nobody(*words), f"tally {words[0]}: cannot open ", f"kernel.perf_event_paranoid is {level}",
            f"'sudo sysctl kernel.perf_event_paranoid={allowed}'", "'sudo setcap cap_perfmon=ep /", "be root")


def user_faults(pages):
    def once():
        done = run(need("setpriv"), *NOBODY, need("setarch"), "-R", TALLY, "stat", "--json", "-o", "-", "-e",
                   "page-faults:u", "--", TOUCH, pages)
        same(done.returncode, 0, "status")
        row = json.loads(done.stdout)
        same(row["state"], "exact", "state")
        return row["value"]
    return min(once() for _ in range(RUNS))


def checks(*more, **how):
    done = nobody("doctor", "--json", *more, **how)
    return done.returncode, {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}


def levels(*list_of_levels):
    """Makes a test of each level."""
    def make(function):
        for level in list_of_levels:
            def at_level(level=level):
                with paranoid(level):
                    function(level)
            at_level.__name__ = f"at_level_{level}_{function.__name__}".replace("-", "minus_")
            test(at_level)
        return function
    return make


@levels(2, 3, 4)
def user_mode_is_counted_exactly_or_the_level_is_named(level):
    if forbids_all():
        assert level > 2, "level 2 allows events of user mode"
        refused_at(level, 2, "stat", "-e", "page-faults:u", "--", "true")
        refused_at(level, 2, "record", "-o", "/dev/null", "-e", "cpu-clock:u", "--", "true")
        return
    same(user_faults(PAGES) - user_faults(0), PAGES, "pages that were touched")


@levels(2, 3, 4)
def the_kernel_is_left_out_and_that_is_said(level):
    done = nobody("stat", "-e", "page-faults,context-switches", "--", "true")
    if forbids_all():
        same(done.returncode, 1, "status")
        has(done.stderr, f"kernel.perf_event_paranoid is {level}")
        return
    same(done.returncode, 0, "status")
    assert re.search(r"^ +\d+ +page-faults$", done.stderr, flags=re.M), done.stderr
    said = f"user mode only: kernel.perf_event_paranoid is {level}"
    has(done.stderr, f" page-faults: {said}")
    # Where there are no notes, each row tells; in CSV as perf's do.
    row = json.loads(nobody("stat", "--json", "-o", "-", "-e", "page-faults", "--", "true").stdout)
    same((row["event"], row["compromise"]), ("page-faults", said), "event and what was given up")
    pairs = nobody("stat", "--json", "-o", "-", "-r", "2", "--baseline", "true", "-e", "page-faults", "--", "true")
    same([row.get("compromise") for row in map(json.loads, pairs.stdout.splitlines())], [said] + 4 * [None], "baseline's")
    same(nobody("stat", "-x,", "-o", "-", "-e", "page-faults", "--", "true").stdout.split(",")[2], "page-faults:u",
         "event of CSV")
    # A 0 would be a lie: they happen in the kernel.
    assert re.search(r"<not supported> +context-switches$", done.stderr, flags=re.M), done.stderr
    has(done.stderr, "'sudo sysctl kernel.perf_event_paranoid=1'")


@levels(1, 2)
def a_recording_names_what_was_watched(level):
    """As perf record names it: with the modifier of user mode where that is all there was to see."""
    left = "" if level < 2 else "u"
    with scratch() as folder:
        os.chmod(folder, 0o777)
        for event, name in ("page-faults", "page-faults:" + left), ("page-faults:u", "page-faults:u"):
            done = nobody("record", "-q", "-e", event, "-o", folder + "/perf.data", "--", "true")
            same(done.returncode, 0, done.stderr)
            listed = run(need("perf"), "evlist", "-f", "-i", folder + "/perf.data").stdout.split()
            same(listed[0], name.rstrip(":"), f"the name of {event}")


@levels(2, 3, 4)
def what_a_level_refuses_names_it_and_the_mend(level):
    refused_at(level, 1, "stat", "-e", "page-faults:k", "--", "true")
    refused_at(level, 1, "stat", "-e", "context-switches", "--", "true")
    refused_at(level, 1, "record", "-o", "/dev/null", "-e", "cpu-clock:k", "--", "true")
    for words in ["-a"], ["-C", "0"], ["-a", "-A"], ["-a", "-I", "100"]:
        refused_at(level, 0, "stat", *words, "-e", "page-faults", "--", "true")
    refused_at(level, 0, "record", "-o", "/dev/null", "-a", "-e", "cpu-clock", "--", "true")


@levels(-1, 0, 1, 2, 3, 4)
def a_process_of_another_user_names_both_users(level):
    parts = ["it belongs to user 0, this is user 65534", "'sudo setcap cap_perfmon=ep /"]
    for words in ["stat", "-p"], ["stat", "-t"], ["record", "-o", "/dev/null", "-p"]:
        done = nobody(*words, os.getpid(), "--duration", "0.01")
        refused(done, f"tally {words[0]}: cannot open ", *parts)
        # No level lets this user in, so that none is a mend.
        assert "sysctl" not in done.stderr, done.stderr


@test
def stacks_of_another_users_process_say_who_may_look():
    need_nobody()
    done = nobody("stack", "-p", os.getpid())
    same(done.returncode, 1, "status")
    has(done.stderr, f"this user may not look into process {os.getpid()}: be its user, or root")


@levels(-1, 0, 1, 2, 3, 4)
def the_list_marks_what_cannot_be_opened(level):
    def rows(name):
        done = nobody("list", "--json", name)
        same(done.returncode, 0, "status")
        return [json.loads(line) for line in done.stdout.splitlines()]
    nothing = forbids_all()
    same(rows("page-faults")[0]["openable"], not nothing, "page-faults")
    switches = rows("context-switches")[0]
    same(switches["openable"], level < 2, "context-switches")
    if level >= 2:
        has(switches["why"], f"kernel.perf_event_paranoid is {level}")
        has(nobody("list", "context-switches").stdout, "  - context-switches")


@levels(-1, 0, 1, 2, 3, 4)
def the_doctor_tells_the_level_and_its_mend(level):
    status, found = checks()
    nothing = forbids_all()
    same(status, int(nothing), "status")
    same(found["paranoid"]["value"], str(level), "value")
    same(found["count-kernel"]["state"] == "ok", level < 2, "counts the kernel")
    same(found["count-cpus"]["state"] == "ok", level < 1, "counts whole CPUs")
    if level >= 2:
        same(found["count-kernel"]["mend"], "sysctl -w kernel.perf_event_paranoid=1", "mend")
    if level >= 1:
        same(found["count-cpus"]["mend"], "sysctl -w kernel.perf_event_paranoid=0", "mend")


@levels(-1, 0)
def whole_cpus_are_counted(level):
    done = nobody("stat", "-a", "-e", "page-faults", "--json", "-o", "-", "--", TOUCH, PAGES)
    same(done.returncode, 0, "status")
    assert json.loads(done.stdout)["value"] >= PAGES, done.stdout


@levels(-1, 0, 1)
def the_kernel_is_counted_without_a_remark(level):
    done = nobody("stat", "-e", "page-faults,context-switches", "--", "true")
    same(done.returncode, 0, "status")
    for name in "page-faults", "context-switches":
        assert re.search(rf"^ +\d+ +{name}$", done.stderr, flags=re.M), done.stderr
    assert "paranoid" not in done.stderr, done.stderr
    done = nobody("stat", "--json", "-o", "-", "-e", "page-faults", "--", "true")
    assert "compromise" not in json.loads(done.stdout), done.stdout
    same(nobody("stat", "-x,", "-o", "-", "-e", "page-faults", "--", "true").stdout.split(",")[2], "page-faults",
         "event of CSV")


@levels(1)
def whole_cpus_need_a_lower_level(level):
    refused_at(level, 0, "stat", "-a", "--", "true")


@levels(2)
def probes_need_the_capability_at_any_level(level):
    refused(nobody("stat", "-e", f"uprobe:{TOUCH}:main", "--", TOUCH, "0"), "need a capability, whatever "
            "kernel.perf_event_paranoid is", "'sudo setcap cap_perfmon=ep /")


def filtered(answer, *words, able=False):
    who = () if able else (need("setpriv"), *NOBODY)
    return run(*who, REFUSE, answer, TALLY, *words)


def behind_a_filter(answer, cause, mend):
    need_nobody()
    if filtered(answer, "version").returncode != 0:
        skip("no seccomp filter can be installed here")
    for able in False, True:
        for words in (["stat", "--", "true"], ["stat", "-e", "page-faults:u", "--", "true"],
                      ["stat", "-a", "-e", "page-faults", "--", "true"],
                      ["record", "-o", "/dev/null", "--", "true"],
                      ["record", "-o", "/dev/null", "-e", "cpu-clock:u", "--", "true"]):
            done = filtered(answer, *words, able=able)
            refused(done, f"tally {words[0]}: cannot open ", cause, mend)
            assert "sysctl" not in done.stderr, done.stderr
        done = filtered(answer, "list", "page-faults", able=able)
        same(done.returncode, 0, "status")
        has(done.stdout, "  - page-faults")
        has(done.stdout, cause)
        done = filtered(answer, "doctor", "--json", able=able)
        same(done.returncode, 1, "status")
        found = {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}
        same(found["perf-events"]["state"], "fails", "perf-events")
        has(found["seccomp"]["value"], "a filter, which refuses perf_event_open(2)")
        has(found["seccomp"]["mend"], "--security-opt seccomp=unconfined")


@test
def a_filter_that_says_eperm_is_named():
    with paranoid(2):
        behind_a_filter("EPERM", "a seccomp filter of this process refuses perf_event_open", "--cap-add PERFMON")


@test
def a_filter_that_says_what_paranoid_says_is_told_apart():
    with paranoid(2):
        behind_a_filter("EACCES", "a seccomp filter of this process refuses perf_event_open", "--cap-add PERFMON")


@test
def a_filter_that_denies_the_call_is_no_old_kernel():
    with paranoid(2):
        behind_a_filter("ENOSYS", "the kernel has perf_event_open, yet it is refused", "seccomp=unconfined")


def limited(limit, *words):
    return nobody(*words, before=(need("prlimit"), limit))


def faults(count):
    return ["-e", ",".join(["page-faults:u"] * count)]


@test
def a_soft_limit_of_descriptors_is_raised():
    need_nobody()
    done = limited("--nofile=16:4096", "stat", "--json", "-o", "-", *faults(40), "--", "true")
    same(done.returncode, 0, "status")
    same(len(done.stdout.splitlines()), 40, "rows")


@test
def a_hard_limit_of_descriptors_tells_the_number_needed():
    need_nobody()
    done = limited("--nofile=16:16", "stat", *faults(40), "--", "true")
    refused(done, "tally stat: the events take 40 file descriptors", "may have 16 (RLIMIT_NOFILE, hard limit 16)",
            "--nofile=")
    # The mend does.
    enough = re.search(r"--nofile=(\d+)", done.stderr).group(1)
    same(limited(f"--nofile={enough}", "stat", *faults(40), "--", "true").returncode, 0, "status")


@test
def too_few_descriptors_for_a_command_are_told_with_the_number():
    need_nobody()
    done = limited("--nofile=5:5", "stat", *faults(1), "--", "true")
    refused(done, "tally stat: cannot start 'true': it takes 5 file descriptors",
            "may have 5 (RLIMIT_NOFILE, hard limit 5)", "'sudo prlimit --nofile=10 --pid $$'")
    done = limited("--nofile=5:100", "stat", *faults(1), "--", "true")
    refused(done, "may have 5 (RLIMIT_NOFILE, hard limit 100)", "'ulimit -n 100'")


@test
def the_doctor_has_a_mend_for_few_descriptors():
    need_nobody()
    found = checks(before=(need("prlimit"), "--nofile=8:8"))[1]
    same((found["descriptors"]["state"], found["descriptors"]["value"]), ("limited", "8, up to 8"), "descriptors")
    enough = re.fullmatch(r"prlimit --nofile=(\d+) --pid \$\$", found["descriptors"]["mend"]).group(1)
    same(checks(before=(need("prlimit"), f"--nofile={enough}"))[1]["descriptors"]["state"], "ok", "then")


@test
def without_locked_memory_counting_and_small_rings_work():
    need_nobody()
    same(limited("--memlock=0:0", "stat", *faults(1), "--", "true").returncode, 0, "status")
    with scratch() as folder:
        os.chmod(folder, 0o777)
        done = limited("--memlock=0:0", "record", "-m", "8", "-e", "cpu-clock:u", "-o", folder + "/perf.data", "--",
                       "true")
        same((done.returncode, done.stderr.count("\n")), (0, 1), "status and lines")
        mib = str(64 << 20 >> 12)
        done = limited("--memlock=0:0", "record", "-m", mib, "-e", "cpu-clock:u", "-o", folder + "/perf.data", "--",
                       "true")
        refused(done, "cannot map a ring of 65540 KiB", "kernel.perf_event_mlock_kb", "0 KiB by RLIMIT_MEMLOCK",
                "ulimit -l", "cap_ipc_lock")


@test
def without_any_locked_memory_the_doctor_and_record_say_so():
    with setting("perf_event_mlock_kb", 0):
        same(limited("--memlock=0:0", "stat", *faults(1), "--", "true").returncode, 0, "status")
        refused(limited("--memlock=0:0", "record", "-e", "cpu-clock:u", "-o", "/dev/null", "--", "true"),
                "0 KiB for each of", "0 KiB by RLIMIT_MEMLOCK", "'sudo sysctl kernel.perf_event_mlock_kb=")
        status, found = checks(before=(need("prlimit"), "--memlock=0:0"))
        same((status, found["mlock"]["state"], found["sample"]["state"]), (1, "fails", "fails"), "doctor")
        has(found["mlock"]["mend"], "sysctl -w kernel.perf_event_mlock_kb=")


def with_tracefs(mode, *words):
    """In a mount namespace of its own. The mode is tracefs's for all, so that it is put back."""
    script = ('mount -t tracefs -o mode=$0 nodev /sys/kernel/tracing || exit 99; "$@"; status=$?; '
              'mount -o remount,mode=700,gid=0 /sys/kernel/tracing; exit $status')
    done = run(need("unshare"), "-m", "sh", "-c", script, mode, need("setpriv"), *NOBODY, TALLY, *words)
    return skip("tracefs cannot be mounted here") if done.returncode == 99 else done


@test
def an_unreadable_tracefs_is_not_a_missing_one():
    need_nobody()
    mend = "this user may not read tracefs at /sys/kernel/tracing: be root, or let your group in with 'sudo mount -o "
    for words in ["stat", "-e", "sched:sched_switch", "--", "true"], ["record", "-e", "sched:*", "--", "true"]:
        done = with_tracefs("700", *words)
        refused(done, mend)
    done = with_tracefs("700", "list", "sched:sched_switch")
    same(done.returncode, 1, "status")
    has(done.stderr, mend)
    has(with_tracefs("700", "list", "page-faults").stdout, "Tracepoints are left out: " + mend)


@test
def a_tracepoint_that_may_be_looked_up_is_counted_at_level_1():
    words = ["stat", "-e", "sched:sched_process_exit", "--", "true"]
    with paranoid(2):
        refused(with_tracefs("750,gid=65534", *words), "kernel.perf_event_paranoid is 2",
                "'sudo sysctl kernel.perf_event_paranoid=1'")
    with paranoid(1):
        done = with_tracefs("750,gid=65534", *words)
        same(done.returncode, 0, "status")
        assert re.search(r"^ +1 +sched:sched_process_exit$", done.stderr, flags=re.M), done.stderr


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was set is put back then, too
    sys.exit(main())
