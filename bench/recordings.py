# SPDX-License-Identifier: MIT
"""The recording that benchmarks of its readers share: four threads of one program, whose stacks repeat as those of
real programs do."""
import multiprocessing
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/cli"))
from handmade import Program, Recording  # noqa: E402

SAMPLES = 400_000
STACKS = 3_000  # different ones, as a busy server has


def walk(dice, program, callees, first):
    """A stack of 5 to 20 frames, innermost first: each function calls one of the few that it knows."""
    names = [first]
    for _ in range(dice.randint(4, 19)):
        known = callees[names[-1]]
        names.append(known[int(len(known) * dice.random() ** 2)])
    # Calls come from a few places, samples fall anywhere.
    return [program.at(names[-1], 1 + dice.randrange(16)),
            *(program.at(name, 2 + 4 * dice.randrange(3)) for name in reversed(names[:-1]))]


def write(path, command):
    dice = random.Random(1)
    program = Program(command)
    names = program.names(len(program.functions))
    callees = {name: dice.sample(names, 4) for name in names}
    chains = [walk(dice, program, callees, names[0]) for _ in range(STACKS)]
    r = Recording()
    for tid in range(100, 104):
        r.comm(100, tid, "main" if tid == 100 else "worker")
    r.map(100, program)
    for i in range(SAMPLES):
        # A few stacks are hot, most are rare.
        chain = chains[int(STACKS * dice.random() ** 3)]
        r.sample(100, 100 + i % 4, 1_000_000_000 + 250_000 * i, 1_000_000, chain)
    r.write(path)


def make(path, command):
    """Writes it in a process of its own: what a parent holds counts as its child's peak memory."""
    maker = multiprocessing.Process(target=write, args=(path, command))
    maker.start()
    maker.join()
