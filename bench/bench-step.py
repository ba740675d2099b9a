#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps, beside a bare PTRACE_SINGLESTEP loop: bench-step.c measures both in one run."""
import pathlib
import subprocess
import sys

build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
sys.exit(subprocess.run([build / "bench/bench-step"]).returncode)
