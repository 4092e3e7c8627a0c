"""Get uv without changing the machine: the one on the PATH if it is new enough, else from PyPI.

This runs before anything is installed, so it imports only the standard library.
Usage: ``python bootstrap/uv.py .tools/bin/uv`` leaves a working ``uv`` at that path.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

UV_MIN = (0, 8)
"""Older versions cannot read dependency groups or the lock file."""

UV_REQUIREMENT = "uv>=0.8,<1"

PIP_INDEX = "https://pypi.org/pypi/pip/json"

DOWNLOAD_TIMEOUT_S = 60


def main() -> None:
    """Make the path given on the command line a working uv."""
    target = Path(sys.argv[1]).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(uv_on_path() or uv_from_pypi(target.parent.parent / "uv"))


def uv_on_path() -> Path | None:
    """Return the uv that is installed already, unless it is too old."""
    found = shutil.which("uv")
    if found is None:
        return None
    output = subprocess.run(
        [found, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"(\d+)\.(\d+)", output)
    if version is None or (int(version[1]), int(version[2])) < UV_MIN:
        return None
    return Path(found).absolute()


def uv_from_pypi(folder: Path) -> Path:
    """Install uv into *folder* with pip, downloaded if need be, and return its path."""
    if run_module("pip", "--version"):
        install([sys.executable, "-m", "pip"], folder)
    else:  # Debian's python3 comes without pip and without ensurepip: pip runs from its own wheel
        with tempfile.TemporaryDirectory() as download:
            install([sys.executable, str(pip_wheel(Path(download)) / "pip")], folder)
    for uv in (folder / "bin" / "uv", folder / "Scripts" / "uv.exe"):
        if uv.exists():
            return uv
    sys.exit(f"eventproc: pip installed {UV_REQUIREMENT} but left no program in {folder}")


def run_module(*arguments: str) -> bool:
    """Say whether this interpreter runs a module successfully."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def install(pip: list[str], folder: Path) -> None:
    """Install uv, and nothing else, into *folder*."""
    shutil.rmtree(folder, ignore_errors=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command = [*pip, "install", *quiet, "--target", str(folder), UV_REQUIREMENT]
    # pip warns about running as root, which does not matter for a folder of this project
    environment = os.environ | {"PIP_ROOT_USER_ACTION": "ignore", "PIP_USER": "0"}
    if subprocess.run(command, env=environment, check=False).returncode != 0:
        sys.exit(
            "eventproc: could not fetch uv from PyPI (see above). Behind a proxy, set HTTPS_PROXY;"
            " with a mirror, set PIP_INDEX_URL; or install uv yourself: https://docs.astral.sh/uv/"
        )


def pip_wheel(folder: Path) -> Path:
    """Download pip's own wheel from PyPI, check its digest, and return its path."""
    try:
        with urllib.request.urlopen(PIP_INDEX, timeout=DOWNLOAD_TIMEOUT_S) as answer:
            files = json.load(answer)["urls"]
        file = next(file for file in files if file["packagetype"] == "bdist_wheel")
        url = urllib.parse.urljoin(PIP_INDEX, file["url"])  # a mirror's may be relative
        with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as answer:
            content = answer.read()
    except OSError as error:
        sys.exit(
            f"eventproc: this Python has no pip, and pypi.org does not answer ({error})."
            " Install pip or uv (Debian, Ubuntu: apt install python3-pip) and run make again."
        )
    if hashlib.sha256(content).hexdigest() != file["digests"]["sha256"]:
        sys.exit("eventproc: the pip that was downloaded is damaged; run make again")
    wheel = folder / str(file["filename"])
    wheel.write_bytes(content)
    return wheel


if __name__ == "__main__":
    main()
