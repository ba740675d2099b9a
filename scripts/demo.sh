#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD: counts and profiles the bundled program examples/workload.c, and draws demo.svg.
set -eu
tally=$1/cli/tally
workload=$1/examples/workload
top=40

title() {
	printf '\n$ %s\n' "$*"
}

title tally stat -- "$workload"
"$tally" stat -- "$workload" >/dev/null

title tally record -g -o demo.data -- "$workload"
"$tally" record -g -o demo.data -- "$workload" >/dev/null

title tally report -i demo.data --no-children "| head -n $top"
"$tally" report -i demo.data --no-children >demo.txt
head -n "$top" demo.txt
rm -f demo.txt

title tally flame -i demo.data -o demo.svg
"$tally" flame -i demo.data -o demo.svg
printf '\nThe flame graph is %s/demo.svg\nOpen it in a browser: click to zoom, Ctrl-F to search.\n' "$PWD"
