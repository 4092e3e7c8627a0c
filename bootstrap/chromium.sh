#!/bin/sh
# Leaves .tools/chromium/chromium, a Chromium for tests of the dashboard's page: the one that is
# installed, or Debian's, which this installs as root. On another machine it says why there is none,
# and leaves nothing; tests with a browser are then skipped.
# Usage, from the project's folder: bootstrap/chromium.sh
set -eu
target=$PWD/.tools/chromium

give_up() { # give_up <reason>
	echo ">> Chromium cannot be had here: $1" >&2
	rm -rf "$target"
	exit 0
}

find_it() {
	for name in chromium chromium-browser google-chrome; do
		command -v $name && return
	done
	return 1
}

mkdir -p "$target"
if ! find_it >/dev/null; then
	command -v apt-get >/dev/null || give_up "it is not installed, and this is no Debian"
	[ "$(id -u)" = 0 ] || give_up "it is not installed; install it: sudo apt-get install chromium"
	echo '>> Chromium, from Debian packages (110 MB)'
	export DEBIAN_FRONTEND=noninteractive
	{
		apt-get -qq update && apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core
	} >"$target/apt.log" 2>&1 || give_up "apt-get failed: $(tail -n 1 "$target/apt.log")"
fi
ln -sfn "$(find_it)" "$target/chromium"
touch "$target/.done"
