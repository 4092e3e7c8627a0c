#!/bin/sh
# Leaves .tools/kafka: Apache Kafka's jars, and the formatted storage of a broker that runs alone,
# which each broker copies. Where the jars cannot be had it says so and leaves nothing; tests of
# Kafka are then skipped.
# Usage, from the project's folder: bootstrap/kafka.sh path/to/python path/to/java
set -eu
python=$1
java=$2
target=.tools/kafka

give_up() { # give_up <reason>
	echo ">> Kafka cannot be had here: $1" >&2
	rm -rf "$target"
	exit 0
}

echo '>> Kafka, from Maven Central (43 MB)'
rm -rf "$target"
"$python" bootstrap/maven.py bootstrap/kafka.txt "$target/jars" || give_up 'see above'
cat >"$target/format.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
log.dirs=$target/formatted
PROPERTIES
"$java" -cp "$target/jars/*" kafka.tools.StorageTool format \
	--cluster-id AAAAAAAAAAAAAAAAAAAAAA --config "$target/format.properties" >"$target/output" 2>&1 ||
	give_up "its storage cannot be formatted: $(tail -n 1 "$target/output")"
rm "$target/format.properties" "$target/output"
touch "$target/.done"
