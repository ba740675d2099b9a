#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh BUILD: all benchmarks, each of which prints ratios against a named peer, measured in one run.
# A ratio beyond its target is marked; the exit status is 1 then.
here=$(dirname "$0")
status=0

for bench in "$here"/bench-*.py; do
	PYTHONDONTWRITEBYTECODE=1 python3 "$bench" "$1" || status=1
done
exit $status
