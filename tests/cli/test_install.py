#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What gets installed: a program can be built with it as the README says, libtally needs libc alone, and
every header stands alone, in C and in C++."""
import os
import pathlib
import re
import sys

from tapcli import TALLY, has, main, need, run, same, scratch, skip, test

BUILD = pathlib.Path(os.environ["BUILD"])
SOURCE = pathlib.Path(os.environ["SOURCE"])
SANITIZED = os.environ.get("SANITIZE", "none") != "none"
LIBC = re.compile(r"^(libc\.so\.\d|ld-linux.*)$")
_folder = scratch()
ROOT = pathlib.Path(_folder.name)


def installed(name):
    found = sorted(ROOT.rglob(name))
    assert found, f"no {name} was installed"
    return found[0]


def needed(path):
    """The libraries that a file's dynamic section asks for."""
    text = run(need("readelf"), "-d", path).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def pkg_config(*words):
    env = {**os.environ, "PKG_CONFIG_PATH": str(installed("libtally.pc").parent), "PKG_CONFIG_SYSROOT_DIR": str(ROOT)}
    done = run(need("pkg-config"), *words, env=env)
    same(done.returncode, 0, f"status ({done.stderr})")
    return done.stdout.split()


def with_libraries():
    return {**os.environ, "LD_LIBRARY_PATH": str(installed("libtally.so").parent)}


def not_sanitized():
    if SANITIZED:
        skip("a library with sanitizers needs a program with sanitizers")


@test
def it_installs_below_destdir():
    done = run(need("meson"), "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", ROOT)
    same(done.returncode, 0, f"status ({done.stderr})")
    for name in ("libtally.so", "libtally-profile.so", "libtally.pc", "libtally-profile.pc", "profiling.h"):
        installed(name)


@test
def libtally_needs_libc_alone():
    not_sanitized()
    for name in needed(installed("libtally.so")):
        assert LIBC.match(name), name


@test
def the_libraries_export_tally_names_alone():
    for library in ("libtally.so", "libtally-profile.so"):
        text = run(need("nm"), "-D", "--defined-only", "--format=posix", installed(library)).stdout
        names = [line.split()[0] for line in text.splitlines()]
        assert "tally_version@@TALLY_0.1" in names or library != "libtally.so", names
        # The nodes of the version map are symbols, too.
        same([n for n in names if not re.match(r"^(tally_|TALLY_)", n)], [], f"strange names in {library}")


@test
def the_example_of_the_readme_is_built_and_counts():
    not_sanitized()
    code = re.search(r"```c\n(.*?)```", (SOURCE / "README.md").read_text(), flags=re.S).group(1)
    (ROOT / "count.c").write_text(code)
    done = run(need("cc"), "-Wall", "-Wextra", "-Werror", "-o", ROOT / "count", ROOT / "count.c",
               *pkg_config("--cflags", "--libs", "libtally"))
    same(done.returncode, 0, f"status ({done.stderr})")
    same([name for name in needed(ROOT / "count") if not LIBC.match(name)], ["libtally.so.0"], "libraries")
    done = run(ROOT / "count", env=with_libraries())
    if done.returncode:
        skip(f"events cannot be counted here: {done.stderr.strip()}")
    assert re.match(r"^\d+ \(exact\)\n$", done.stdout), done.stdout


def stands_alone(compiler, language):
    for header in sorted(installed("tally.h").parent.glob("*.h")):
        (ROOT / "alone").write_text(f"#include <tally/{header.name}>\n")
        done = run(need(compiler), "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                   "-I", header.parent.parent, ROOT / "alone")
        same(done.returncode, 0, f"status for {header.name} ({done.stderr})")


@test
def each_header_stands_alone_in_c():
    stands_alone("cc", "c")


@test
def each_header_stands_alone_in_cxx():
    stands_alone("c++", "c++")


@test
def the_installed_command_runs():
    not_sanitized()
    command = next(path for path in ROOT.rglob("tally") if path.is_file())
    done = run(command, "version", env=with_libraries())
    same(done.returncode, 0, f"status ({done.stderr})")
    has(done.stdout, "tally ")


def commands():
    listed = re.findall(r"^  (\w+) ", run(TALLY, "-h").stdout, flags=re.M)
    assert "stat" in listed, listed
    return [name for name in listed if name != "version"]


@test
def every_command_has_a_manual_page():
    if not list(ROOT.rglob("tally.1")):
        need("scdoc")
    for name in commands():
        installed(f"tally-{name}.1")


def helps(name):
    """Of the command, or of its actions where it has some."""
    text = run(TALLY, name, "-h").stdout
    actions = re.findall(r"^  (\w+) ", text, flags=re.M) if "\nActions:" in text else []
    return [run(TALLY, name, action, "-h").stdout for action in actions] or [text]


@test
def manual_pages_have_the_options_that_there_are():
    """Those of -h, and no others but the negations."""
    for name in commands():
        page = (SOURCE / "man" / f"tally-{name}.1.scd").read_text()
        page = re.search(r"^# OPTIONS\n(.*?)^# ", page, flags=re.M | re.S).group(1)
        described = set(re.findall(r"\*(--?[\w-]+)\*", page))
        table = re.findall(r"^  (-\w)?[ ,]*(--[\w-]+)?", "".join(helps(name)), flags=re.M)
        there = {option for row in table for option in row if option}
        same(sorted(there - described), [], f"what the page of {name} lacks")
        same(sorted(option for option in described - there if not option.startswith("--no-")), [],
             f"what {name} lacks")


status = main()
_folder.cleanup()
sys.exit(status)
