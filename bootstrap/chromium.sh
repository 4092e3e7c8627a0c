#!/bin/sh
# Leaves .tools/chromium/chromium, a Chromium for tests of the dashboard's page: the one that is
# installed, or Debian's, unpacked beside the libraries and fonts that the machine lacks. On a
# machine without apt it says so and leaves nothing; tests with a browser are then skipped.
# Usage, from the project's folder: bootstrap/chromium.sh
set -eu
what=Chromium
target=$PWD/.tools/chromium
. bootstrap/debian.sh

for name in chromium chromium-browser google-chrome; do
	if command -v $name >/dev/null; then
		rm -rf "$target"
		mkdir -p "$target"
		ln -s "$(command -v $name)" "$target/chromium"
		touch "$target/.done"
		exit 0
	fi
done

echo '>> Chromium, from Debian packages (110 MB)'
begin_unpacking
# Downloads these, and whatever they need that the machine lacks; installs nothing.
apt install --download-only --reinstall --yes --no-install-recommends \
	chromium chromium-common fonts-dejavu-core ||
	give_up "the packages cannot be downloaded: $(tail -n 1 "$target/apt.log")"
finish_unpacking

root=$target/root
libraries=$(printf '%s:' "$root"/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu*/*/)
cat >"$target/fonts.conf" <<FONTS
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>$root/usr/share/fonts</dir>
  <cachedir>$target/fontcache</cachedir>
</fontconfig>
FONTS
cat >"$target/chromium" <<SHIM
#!/bin/sh
export LD_LIBRARY_PATH='$libraries' FONTCONFIG_FILE='$target/fonts.conf'
exec '$root/usr/lib/chromium/chromium' "\$@"
SHIM
chmod +x "$target/chromium"
"$target/chromium" --version >/dev/null 2>"$target/error" ||
	give_up "what was unpacked does not start: $(tail -n 1 "$target/error")"
rm "$target/error"
touch "$target/.done"
