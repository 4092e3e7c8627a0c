"""What ``make`` fetches stays in the checkout."""

import shutil
import subprocess

import pytest

STUB = '#!/bin/sh\necho "$0 $*" >>"{calls}"\n'
TOOLS = ("sh", "id", "mkdir", "rm", "ln", "touch", "tail", "env", "cat", "chmod", "sed")


@pytest.mark.parametrize("script", ["chromium.sh", "rabbitmq.sh"])
def test_a_fetched_program_is_never_installed(root, tmp_path, script):
    """apt, called by whoever calls make, keeps its lists in the folder and only downloads."""
    calls, programs = tmp_path / "calls", tmp_path / "bin"
    programs.mkdir()
    shutil.copytree(root / "bootstrap", tmp_path / "bootstrap")
    for name in TOOLS:
        (programs / name).symlink_to(shutil.which(name))
    for name in ("apt-get", "dpkg-deb"):
        (programs / name).write_text(STUB.format(calls=calls))
        (programs / name).chmod(0o755)
    subprocess.run(
        ["sh", f"bootstrap/{script}"],
        cwd=tmp_path,
        env={"PATH": str(programs)},
        capture_output=True,
        check=False,  # The stubs fetch nothing, so there is nothing to start.
    )
    called = [call for call in calls.read_text().splitlines() if "/apt-get " in call]

    assert [call for call in called if f"Dir::State::Lists={tmp_path}" not in call] == []
    assert [call for call in called if " install " in call and "--download-only" not in call] == []
    assert len(called) == 2
