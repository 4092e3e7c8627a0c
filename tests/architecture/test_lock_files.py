"""Everybody installs the same packages, from the public registries."""

import json
import re

REGISTRIES = {"https://pypi.org/simple", "https://files.pythonhosted.org"}


def test_python_packages_come_from_pypi(root):
    """The lock file names no mirror and no path of somebody's machine."""
    lock = (root / "uv.lock").read_text("utf-8")
    hosts = set(re.findall(r"https?://[^/\"]+(?:/simple)?", lock))

    assert hosts == REGISTRIES


def test_python_packages_are_not_paths(root):
    """Only the project itself is installed from a folder."""
    lock = (root / "uv.lock").read_text("utf-8")
    folders = re.findall(r'\b(?:path|directory|editable|virtual) = "([^"]*)"', lock)

    assert folders == ["."]


def test_node_packages_are_pinned_by_content(root):
    """Every package from npm has a digest, and none names a host."""
    locks = [
        path
        for top in ("azurite", "tests")
        for path in (root / top).rglob("package-lock.json")
        if "node_modules" not in path.parts
    ]
    fetched = {
        f"{lock.parent.name}/{name}": entry
        for lock in locks
        for name, entry in json.loads(lock.read_text("utf-8"))["packages"].items()
        if name.startswith("node_modules/") and not entry.get("link")
    }
    loose = [name for name, entry in fetched.items() if "integrity" not in entry]
    hosts = [entry["resolved"] for entry in fetched.values() if "resolved" in entry]

    assert locks
    assert (loose, hosts) == ([], [])
