#!/bin/sh
# SPDX-License-Identifier: MIT
# test.sh BUILD [OPTION...]: runs the tests of a build folder, with meson test's options, and sums
# them up. The last line is `N passed, N failed, N skipped`.
set -u
here=$(dirname "$0")
build=$1
shift

rm -f "$build"/meson-logs/testlog.json
status=0
meson test -C "$build" --no-rebuild "$@" </dev/null || status=$?
exec python3 "$here/test-summary.py" "$build/meson-logs/testlog.json" "$status"
