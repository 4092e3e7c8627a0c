"""Lock files name exact packages from the public registries."""

import json
import re

REGISTRIES = {"https://pypi.org/simple", "https://files.pythonhosted.org"}
PINNED_JAR = r"[\w.-]+:[\w.-]+:[\w.-]+ sha256:[0-9a-f]{64}"


def test_python_packages_come_from_pypi(root):
    """``uv.lock`` names no mirror and no local path."""
    lock = (root / "uv.lock").read_text("utf-8")
    hosts = set(re.findall(r"https?://[^/\"]+(?:/simple)?", lock))

    assert hosts == REGISTRIES


def test_python_packages_are_not_paths(root):
    """``uv.lock`` has one package from a folder: the project itself."""
    lock = (root / "uv.lock").read_text("utf-8")
    folders = re.findall(r'\b(?:path|directory|editable|virtual) = "([^"]*)"', lock)

    assert folders == ["."]


def test_node_packages_are_pinned_by_content(root):
    """Every npm package has a digest, and none names a host."""
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
    unpinned = [name for name, entry in fetched.items() if "integrity" not in entry]
    hosts = [entry["resolved"] for entry in fetched.values() if "resolved" in entry]

    assert locks
    assert (unpinned, hosts) == ([], [])


def test_jars_are_pinned_by_content(root):
    """Each has a version and a digest."""
    lines = [
        line
        for jars in (root / "bootstrap").glob("*.txt")
        for line in jars.read_text("utf-8").splitlines()
        if not line.startswith("#")
    ]

    assert lines
    assert [line for line in lines if not re.fullmatch(PINNED_JAR, line)] == []
