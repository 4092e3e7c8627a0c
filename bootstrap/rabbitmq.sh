#!/bin/sh
# Leaves .tools/rabbitmq, a RabbitMQ broker with its Erlang, out of Debian's packages. On a machine
# without apt it says so and leaves nothing; tests of RabbitMQ are then skipped.
# Usage, from the project's folder: bootstrap/rabbitmq.sh
set -eu
what=RabbitMQ
target=$PWD/.tools/rabbitmq
erlang='base asn1 crypto eldap ftp inets mnesia os-mon parsetools public-key runtime-tools snmp ssl
	syntax-tools tftp tools xmerl'
. bootstrap/debian.sh

echo '>> RabbitMQ, from Debian packages (35 MB)'
begin_unpacking
(cd "$target/apt/cache/archives" && apt download rabbitmq-server $(printf 'erlang-%s ' $erlang)) ||
	give_up "the packages cannot be downloaded: $(tail -n 1 "$target/apt.log")"
finish_unpacking

# Erlang's starter knows only the folder into which Debian installs it.
sed -i "s|/usr/lib/erlang|$target/root/usr/lib/erlang|g" "$target/root/usr/lib/erlang/bin/erl"
ln -s root/usr/lib/erlang "$target/erlang"
(cd "$target" && ln -s root/usr/lib/rabbitmq/lib/rabbitmq_server-* server)
touch "$target/.done"
