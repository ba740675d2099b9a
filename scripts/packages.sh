#!/bin/sh
# SPDX-License-Identifier: MIT
# packages.sh LIST...: sees to the packages of scripts/packages-LIST.txt.
#
# What dpkg knows as installed is left alone, and where nothing is missing nothing is called. What
# is missing is installed with apt-get, by name, as root or through sudo. Where that cannot be, it
# says what to install, and goes on when the tools of the build are there all the same.
set -u
here=$(dirname "$0")

say() {
	echo "packages: $*"
}

wanted() {
	for list; do
		sed 's/#.*//' "$here/packages-$list.txt" || exit 1
	done | tr -s ' \t\n' ' '
}

installed() {
	dpkg-query -W -f='${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

# How to become root: "" for root itself, "sudo", or "no". Without a terminal sudo must not ask.
become() {
	if [ "$(id -u)" -eq 0 ]; then
		echo ""
	elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		echo sudo
	else
		echo no
	fi
}

have_lists() {
	[ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' 2>/dev/null | head -n 1)" ]
}

apt() {
	$root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >>"$log" 2>&1 </dev/null
}

# Lists may be missing or too old to name files that the mirror still has: then a second try.
apt_install() {
	if have_lists && apt install --no-install-recommends "$@"; then
		return 0
	fi
	apt update
	apt install --no-install-recommends "$@"
}

# Whether the build can do without what is missing: its tools are there, whoever installed them.
can_build() {
	for tool in meson pkg-config "${CC:-cc}"; do
		command -v "$tool" >/dev/null || return 1
	done
	{ command -v ninja || command -v ninja-build; } >/dev/null || return 1
	pkg-config --exists libelf libzstd zlib liblzma
}

go_on() {
	if can_build; then
		say "going on without: the build's own tools are here"
		exit 0
	fi
	say "the build cannot do without these"
	exit 1
}

names=$(wanted "$@") || exit 1
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	can_build && exit 0
	say "no apt-get here. Install what corresponds to Debian's:$names"
	go_on
fi

missing=
for name in $names; do
	installed "$name" || missing="$missing $name"
done
[ -z "$missing" ] && exit 0

root=$(become)
if [ "$root" = no ]; then
	say "missing:$missing"
	say "neither root nor sudo here; as root run: apt-get install$missing"
	go_on
fi

say "installing:$missing"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list of words
apt_install $missing && exit 0
tail -n 15 "$log"
say "apt-get could not install them all"
go_on
