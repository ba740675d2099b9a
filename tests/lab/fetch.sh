#!/bin/sh
# SPDX-License-Identifier: MIT
# fetch.sh ARCH FOLDER: gets a guest's kernel and what its programs are built from, by the names of
# Debian's packages, and leaves them in FOLDER, unpacked. ARCH is Debian's name: arm64, amd64.
#
# Archives, keys and proxies are those of this machine's apt, which keeps lists and a status of its own
# for this below FOLDER, so that nothing of another architecture comes into the machine. Nothing is
# installed, and root is not needed.
set -eu
arch=$1
folder=$2
kernel=linux-image-cloud-$arch
# The libraries of the build and what they need themselves, static ones being among them, and the small
# tools that programs under test run.
lists=$(dirname "$0")/../../scripts
libraries=$(sed -n 's/^\(lib[^ ]*-dev\).*/\1/p' "$lists/packages-build.txt" | grep -v '^libc6-dev$')
names=$(echo "$kernel" "$libraries" zlib1g-dev busybox-static | tr ' ' '\n' | sort -u)

[ "$(cat "$folder/complete" 2>/dev/null)" = "$names" ] && exit 0
rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/debs"
folder=$(cd "$folder" && pwd)
: >"$folder/apt/status"

own_apt() {
	tool=$1
	shift
	"$tool" -q -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::State="$folder/apt" \
		-o Dir::State::lists="$folder/apt/lists" -o Dir::State::status="$folder/apt/status" \
		-o Dir::Cache="$folder/apt" -o Acquire::Languages=none "$@"
}

# A source that this machine has may not carry this architecture: what counts is that the names are found.
own_apt apt-get update >"$folder/apt/log" 2>&1 || true
image=$(own_apt apt-cache depends "$kernel" 2>>"$folder/apt/log" |
	sed -n 's/^ *Depends: *\(linux-image-[^ ]*\).*/\1/p' | head -n 1)
if [ -z "$image" ]; then
	tail -n 5 "$folder/apt/log" >&2
	echo "fetch: no package $kernel:$arch in the archives that apt knows here" >&2
	exit 1
fi
wanted=$(echo "$names" | sed "s/^$kernel\$/$image/")
# shellcheck disable=SC2086 # a list of names
(cd "$folder/debs" && own_apt apt-get download $wanted) >>"$folder/apt/log" 2>&1 || {
	tail -n 5 "$folder/apt/log" >&2
	echo "fetch: could not download" $wanted >&2
	exit 1
}
mkdir "$folder/root"
for deb in "$folder"/debs/*.deb; do
	case $deb in
	*/linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder" ./boot ;;
	*) dpkg-deb -x "$deb" "$folder/root" ;;
	esac
done
rm -rf "$folder/debs" "$folder/apt"
echo "$names" >"$folder/complete"
