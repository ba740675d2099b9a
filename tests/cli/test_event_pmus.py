#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Events of PMUs that this machine lacks: perf(1) and we read the same made-up sysfs, those of tests/fakepmu.h, mounted
over the real one in mounts of their own. perf prints with -vv the attr that it asks for, which the kernel then refuses."""
import os
import pathlib
import re
import sys

from tapcli import main, need, run, scratch, skip, test

PRINT_PARTS = os.environ.get("PRINT_PARTS", "print-parts-is-not-built")
SOURCE = pathlib.Path(os.environ.get("SOURCE", "."))
DEVICES = "/sys/bus/event_source/devices"

# perf 6.1 ors what is written to what an event of events/ says, so that no term here is there twice.
SAME = {
    "amd": ["cpu/event=0x1c7,umask=0x3/", "cpu/umask=0x3,event=0x1c7/", "cpu/event=0xfff/", "cpu/cpu-cycles/",
            "cpu/event=0x76,edge,inv,cmask=1/", "cpu/event=455,umask=3/", "cpu/cache-misses,cmask=2/",
            "cpu/r1000003c7/", "cpu/config1=7,config2=0x8/", "cpu//", "ibs_op/cnt_ctl/",
            "amd_l3/event=0x4,threadmask=0xff/"],
    "server": ["cpu/mem-loads/", "cpu/MEM-LOADS/", "mem-loads", "cpu/event=0x3c,umask=0x00,any=1/",
               "cpu/event=0xb7,umask=1,offcore_rsp=0x3f80408fff/", "uncore_cha/event=0x36,umask=0xc80ffe01/",
               "uncore_cha_1/event=0x36/", "uncore_imc/cas_count_read/", "uncore_imc_10/clockticks/",
               "imc/clockticks/", "cas_count_read", "uncore_imc_free_running/read/", "power/energy-pkg/",
               "energy-pkg", "msr/tsc/"],
    "hybrid": ["cycles", "instructions", "LLC-loads", "r3c", "cpu_core/cycles/", "cpu_atom/instructions/",
               "cpu_core/event=0x3c/", "cpu_core/r1cd/", "mem-loads", "topdown-bad-spec", "slots"],
    "biglittle": ["armv8_cortex_a53/event=0x11,long/", "armv8_cortex_a72/cpu_cycles/", "cpu_cycles",
                  "arm_spe_0/min_latency=4095/"],
    "odd": ["hv_24x7/CPM_CCYC,core=5/", "hv_24x7/core=5,CPM_CCYC/"],
}
REFUSED = {
    "amd": ["cpu/event=0x1fff/", "cpu/edge=2/", "cpu/evnt=1/", "cpu_core/event=1/"],
    "server": ["uncore_im/clockticks/", "cpu/event=3c/", "msr/umask=1/"],
    "odd": ["hv_24x7/CPM_CCYC/", "hv_24x7/CPM_CCYC,core=0x10000/"],
}


def trees(folder):
    """Writes those of fakepmu.h; answers their names."""
    names = []
    for name, files in re.findall(r"fake_(\w+)\[\] = \{(.*?)\n\};", (SOURCE / "tests/fakepmu.h").read_text(), flags=re.S):
        names.append(name)
        for path, text in re.findall(r'\{ "([^"]+)", "([^"]*)" \}', files):
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
    return names


def below(tree, *words):
    return run("unshare", "-m", "sh", "-c", f'mount --bind "$0" {DEVICES} && exec "$@"', str(tree), *words)


def perf_parts(tree, text):
    """What perf asks for, (type, config, config1, config2) each; None when it does not take the text."""
    done = below(tree, need("perf"), "stat", "-vv", "-e", text, "true")
    if "event syntax error" in done.stderr:
        return None
    parts = set()
    for block in re.findall(r"^perf_event_attr:\n((?:  .*\n)*)", done.stderr, flags=re.M):
        fields = dict(re.findall(r"^  (?:\{ \w+, )?(type|config[12]?)(?: \})?\s+(\w+)$", block, flags=re.M))
        parts.add(tuple(int(fields.get(f, "0"), 0) for f in ("type", "config", "config1", "config2")))
    return parts or None


def our_parts(tree, text):
    done = below(tree, PRINT_PARTS, text)
    if done.stdout.startswith("refused"):
        return None
    return {tuple(int(n, 0) for n in part.split(":")) for part in done.stdout.split()}


def on_each(lists, compare):
    with scratch() as folder:
        folder = pathlib.Path(folder)
        found = trees(folder)
        if below(folder / found[0], "true").returncode != 0:
            skip("this user may not mount over /sys")
        for name, texts in lists.items():
            for text in texts:
                compare(name, text, our_parts(folder / name, text), perf_parts(folder / name, text))


@test
def the_bits_are_perfs():
    def compare(name, text, ours, theirs):
        assert ours and ours == theirs, f"{name} {text}: ours {ours}, perf's {theirs}"
    on_each(SAME, compare)


@test
def what_perf_refuses_is_refused():
    def compare(name, text, ours, theirs):
        assert (ours, theirs) == (None, None), f"{name} {text}: ours {ours}, perf's {theirs}"
    on_each(REFUSED, compare)


if __name__ == "__main__":
    sys.exit(main())
