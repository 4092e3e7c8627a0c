#!/bin/sh
# Leaves .tools/rabbitmq, a RabbitMQ broker with its Erlang, out of Debian's packages. It needs no
# root: they are downloaded by apt with folders of its own, and unpacked. On a machine without apt it
# says so and leaves nothing; tests of RabbitMQ are then skipped.
# Usage, from the project's folder: bootstrap/rabbitmq.sh
set -eu
target=$PWD/.tools/rabbitmq
erlang='base asn1 crypto eldap ftp inets mnesia os-mon parsetools public-key runtime-tools snmp ssl
	syntax-tools tftp tools xmerl'

give_up() { # give_up <reason>
	echo ">> RabbitMQ cannot be had here: $1" >&2
	rm -rf "$target"
	exit 0
}

for program in apt-get dpkg-deb; do
	command -v $program >/dev/null || give_up "this is no Debian (there is no $program)"
done

echo '>> RabbitMQ, from Debian packages (35 MB)'
rm -rf "$target"
mkdir -p "$target/apt/lists/partial" "$target/apt/cache/archives/partial" "$target/debs" "$target/root"
apt() {
	apt-get -qq -o Dir::State::Lists="$target/apt/lists" -o Dir::Cache="$target/apt/cache" \
		-o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)" "$@" >"$target/apt.log" 2>&1
}
apt update || give_up "the package lists cannot be read: $(tail -n 1 "$target/apt.log")"
(cd "$target/debs" && apt download rabbitmq-server $(printf 'erlang-%s ' $erlang)) ||
	give_up "the packages cannot be downloaded: $(tail -n 1 "$target/apt.log")"
for deb in "$target"/debs/*.deb; do
	dpkg-deb --extract "$deb" "$target/root"
done

# Erlang's starter knows only the folder into which Debian installs it.
sed -i "s|/usr/lib/erlang|$target/root/usr/lib/erlang|g" "$target/root/usr/lib/erlang/bin/erl"
ln -s root/usr/lib/erlang "$target/erlang"
(cd "$target" && ln -s root/usr/lib/rabbitmq/lib/rabbitmq_server-* server)
rm -rf "$target/apt" "$target/apt.log" "$target/debs" "$target/root/usr/share/doc"
touch "$target/.done"
