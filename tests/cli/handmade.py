# SPDX-License-Identifier: MIT
"""Recordings by hand: perf.data files with samples at functions of a real program, so that perf and tally
read the same file and find the same names. Layout: perf.data-file-format.txt of the kernel's tools/perf."""
import os
import struct
import subprocess

ATTR_SIZE = 112
IP, TID, TIME, PERIOD, CALLCHAIN, IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 8, 1 << 5, 1 << 16
MMAP, LOST, COMM, EXIT, FORK, SAMPLE, MMAP2, CALLCHAIN_DEFERRED, HEADER_ATTR = 1, 2, 3, 4, 7, 9, 10, 22, 64
FLAGS = (1 << 8) | (1 << 9) | (1 << 13) | (1 << 18) | (1 << 23) | (1 << 24)  # mmap comm task id_all mmap2 exec
KERNEL, USER = 1, 2
CONTEXT_KERNEL, CONTEXT_USER, CONTEXT_USER_DEFERRED = (1 << 64) - 128, (1 << 64) - 512, (1 << 64) - 640
DEFER_CALLCHAIN = 1 << 38
HOSTNAME = 3
EVENTS = {"cpu-clock": 0, "page-faults": 2}


class Program:
    """Functions of an ELF file with symbols, and where it is mapped."""

    def __init__(self, path, base=0x555500000000):
        self.path = os.path.realpath(path)
        data = open(self.path, "rb").read(1 << 16)
        offset, size, count = (struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54))
        for i in range(count):
            kind, flags, at, vaddr, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
            if kind == 1 and flags & 1:  # PT_LOAD, executable
                page = at & ~0xFFF
                self.start, self.pgoff = base + (vaddr & ~0xFFF), page
                self.length = (length + (at - page) + 0xFFF) & ~0xFFF
        self.base = base
        self.functions = {}
        out = subprocess.run(["nm", "-S", self.path], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "tT" and int(words[1], 16) > 16:
                self.functions[words[3]] = (int(words[0], 16), int(words[1], 16))
        # Aliases and parts of functions are named differently by different tools.
        starts = [start for start, _ in self.functions.values()]
        self.functions = {name: place for name, place in self.functions.items()
                          if starts.count(place[0]) == 1 and "." not in name and not name.startswith("_")}

    def names(self, count):
        names = sorted(self.functions)
        assert len(names) >= count, f"{self.path} has {len(names)} functions"
        step = len(names) // count
        return [names[i * step] for i in range(count)]

    def at(self, name, offset=8):
        return self.base + self.functions[name][0] + offset


class Recording:
    """A file in the making. Times are nanoseconds; a chain is innermost first, return addresses behind the ip."""

    def __init__(self, events=("cpu-clock",), flags=FLAGS):
        self.events = events
        self.flags = flags
        self.records = []

    def tail(self, pid, tid, time):
        return struct.pack("<iiQQ", pid, tid, time, 1)

    def record(self, kind, misc, body):
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def comm(self, pid, tid, name, time=0, execs=False):
        text = name.encode() + b"\0"
        text += b"\0" * (-len(text) % 8)
        self.record(COMM, 0x2000 if execs else 0, struct.pack("<ii", pid, tid) + text + self.tail(pid, tid, time))

    def map(self, pid, program, time=0):
        text = program.path.encode() + b"\0"
        text += b"\0" * (-len(text) % 8)
        st = os.stat(program.path)
        body = struct.pack("<iiQQQIIQQII", pid, pid, program.start, program.length, program.pgoff,
                           os.major(st.st_dev), os.minor(st.st_dev), st.st_ino, 0, 5, 2)
        self.record(MMAP2, USER, body + text + self.tail(pid, pid, time))

    def sample(self, pid, tid, time, period, chain, event=0, misc=USER, cookie=None):
        """With a cookie the chain is the kernel's alone, and the rest comes by deferred()."""
        ips = [CONTEXT_USER, *chain] if cookie is None else [CONTEXT_KERNEL, *chain, CONTEXT_USER_DEFERRED, cookie]
        self.record(SAMPLE, misc, struct.pack(f"<QQiiQQQ{len(ips)}Q", event + 1, chain[0], pid, tid, time, period,
                                              len(ips), *ips))

    def deferred(self, pid, tid, time, cookie, chain):
        ips = [CONTEXT_USER, *chain]
        self.record(CALLCHAIN_DEFERRED, USER, struct.pack(f"<QQ{len(ips)}Q", cookie, len(ips), *ips) +
                    self.tail(pid, tid, time))

    def lost(self, count, time):
        self.record(LOST, 0, struct.pack("<QQ", 1, count) + self.tail(0, 0, time))

    def attr(self, event):
        sample_type = IP | TID | TIME | PERIOD | CALLCHAIN | IDENTIFIER
        return struct.pack("<IIQQQQQ", 1, ATTR_SIZE, EVENTS[event], 0, sample_type, 0, self.flags).ljust(ATTR_SIZE, b"\0")

    def write(self, path, keep=None):
        """`keep` bytes of the records alone, as if the disk had been full."""
        ids = 104
        attrs = ids + 8 * len(self.events)
        data = attrs + (ATTR_SIZE + 16) * len(self.events)
        length = sum(map(len, self.records))
        host = b"handmade".ljust(64, b"\0")
        with open(path, "wb") as f:
            f.write(struct.pack("<QQQQQQQQQQQQQ", 0x32454C4946524550, 104, ATTR_SIZE + 16, attrs,
                                data - attrs, data, length, 0, 0, 1 << HOSTNAME, 0, 0, 0))
            for i in range(len(self.events)):
                f.write(struct.pack("<Q", i + 1))
            for i, event in enumerate(self.events):
                f.write(self.attr(event) + struct.pack("<QQ", ids + 8 * i, 8))
            if keep is not None:
                f.write(b"".join(self.records)[:keep])
                return
            f.writelines(self.records)
            f.write(struct.pack("<QQ", data + length + 16, 4 + len(host)))
            f.write(struct.pack("<I", len(host)) + host)

    def write_stream(self, path):
        """As what comes through a pipe, which has its attrs as records."""
        with open(path, "wb") as f:
            f.write(struct.pack("<QQ", 0x32454C4946524550, 16))
            for i, event in enumerate(self.events):
                body = self.attr(event) + struct.pack("<Q", i + 1)
                f.write(struct.pack("<IHH", HEADER_ATTR, 0, 8 + len(body)) + body)
            f.writelines(self.records)
