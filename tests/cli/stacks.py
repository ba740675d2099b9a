# SPDX-License-Identifier: MIT
"""What tests of stacks share: eu-stack as the referee, and a function that a signal interrupts where it begins."""
import re

from tapcli import need, run, same

# Its first instruction is none, and what stands before it is another function. Its line is 99.
INTERRUPTED = """
__attribute__((noinline)) void before(void) { __asm__ volatile("nop"); __builtin_unreachable(); }
__asm__(".globl first\\n.type first, %function\\nfirst:\\n.cfi_startproc\\n"
#ifdef __x86_64__
	".loc 1 99\\nud2\\nret\\n"
#else
	".loc 1 99\\nudf #0\\nret\\n"
#endif
	".cfi_endproc\\n.size first, . - first\\n");
void first(void);
int main(void) { signal(SIGILL, handler); first(); }
"""


def eu_stack(*words):
    """The addresses of each thread's frames, by thread; and what it complained of."""
    found, tid = {}, None
    done = run(need("eu-stack"), *words)
    for line in done.stdout.splitlines():
        if thread := re.match(r"TID (\d+):", line):
            tid = int(thread.group(1))
            found[tid] = []
        elif frame := re.match(r"#\d+\s+0x([0-9a-f]+)", line):
            found[tid].append(int(frame.group(1), 16))
    return found, done.stderr.strip()


def same_frames(thread, addresses):
    """A thread of ours has the frames that eu-stack has, which takes 1 off addresses of returns."""
    ours = [int(f["address"], 16) for f in thread["frames"]]
    same(len(ours), len(addresses), "how many frames")
    for one, other in zip(ours, addresses):
        assert one in (other, other + 1), f"{one:x} and {other:x}"
