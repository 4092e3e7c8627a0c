"""Public packages export exactly what they import, and each name has a docstring."""

import importlib
import inspect
import re
import types
from importlib.metadata import version

import pytest

import eventproc
from eventproc.testing import HandlerTestHarness

PUBLIC_PACKAGES = (
    "eventproc",
    "eventproc.telemetry",
    "eventproc.testing",
    "eventproc.emulator",
    "checkpointstores",
    "spark_integration",
)


def exported(package: types.ModuleType) -> list[str]:
    """Return the names that a package declares as its own."""
    return list(getattr(package, "__all__", []))


def imported(package: types.ModuleType) -> set[str]:
    """Return the public names in a package that are not its modules."""
    return {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") or name == "__version__"
        if not isinstance(value, types.ModuleType)
    }


@pytest.mark.parametrize("package_name", PUBLIC_PACKAGES)
def test_a_public_package_exports_exactly_what_it_imports(package_name):
    """``__all__`` has every public name in the package that is not a module, and no other."""
    package = importlib.import_module(package_name)
    for name in exported(package):
        getattr(package, name)  # ``eventproc`` imports a name when it is first used.

    assert sorted(exported(package)) == sorted(imported(package))


@pytest.mark.parametrize("package_name", PUBLIC_PACKAGES)
def test_every_exported_name_has_a_docstring(package_name):
    """Exported classes and functions have a docstring of their own."""
    package = importlib.import_module(package_name)
    things = {name: getattr(package, name) for name in exported(package)}
    undocumented = [
        name
        for name, thing in things.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing)) and not vars(thing).get("__doc__")
        if not inspect.isroutine(thing) or not thing.__doc__
    ]

    assert undocumented == []


def test_every_package_is_typed(root):
    """Each package has a ``py.typed`` file, without which type checkers ignore its annotations."""
    for package in ("eventproc", "checkpointstores", "spark_integration"):
        marker = root / package / "py.typed"

        assert marker.exists()


def test_the_package_has_the_version_of_its_distribution():
    """``eventproc.__version__`` is the version that was installed."""
    assert eventproc.__version__ == version("eventproc")


def test_the_page_on_testing_names_what_the_harness_has(root):
    """Each name in its tables of methods is one of ``HandlerTestHarness``."""
    page = (root / "docs" / "testing.md").read_text("utf-8")
    methods = re.search(r"^\| what happens \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    results = re.search(r"^\| to inspect \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert methods is not None
    assert results is not None
    called = re.findall(r"`(?:with harness\.)?([a-z_]+)\(", methods[0] + results[0])
    read = re.findall(r"`([a-z_]+)`", " ".join(re.findall(r"^\|[^|]*", results[0], re.MULTILINE)))

    assert len(called) > 15
    assert [name for name in called + read if not hasattr(HandlerTestHarness, name)] == []
