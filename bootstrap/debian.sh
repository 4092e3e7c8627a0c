# Read by other scripts here, which set `what` (a program) and `target` (its folder) first: programs
# out of Debian's packages, for anybody. apt has folders of its own, and packages are unpacked, not
# installed: this needs no root, and nothing outside of $target changes.

give_up() { # give_up <reason>
	echo ">> $what cannot be had here: $1" >&2
	rm -rf "$target"
	exit 0
}

apt() {
	apt-get -qq -o Dir::State::Lists="$target/apt/lists" -o Dir::Cache="$target/apt/cache" \
		-o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" "$@" >"$target/apt.log" 2>&1
}

begin_unpacking() {
	for program in apt-get dpkg-deb; do
		command -v $program >/dev/null || give_up "this is no Debian (there is no $program)"
	done
	rm -rf "$target"
	mkdir -p "$target/apt/lists/partial" "$target/apt/cache/archives/partial" "$target/root"
	apt update || give_up "the package lists cannot be read: $(tail -n 1 "$target/apt.log")"
}

finish_unpacking() {
	for deb in "$target"/apt/cache/archives/*.deb; do
		dpkg-deb --extract "$deb" "$target/root"
	done
	rm -rf "$target/apt" "$target/apt.log" "$target/root/usr/share/doc"
}
