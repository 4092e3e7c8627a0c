"""The front doors: what is imported there is offered there, and explained."""

import importlib
import inspect
import types
from importlib.metadata import version

import pytest

import eventproc

FRONT_DOORS = (
    "eventproc",
    "eventproc.telemetry",
    "eventproc.testing",
    "eventproc.emulator",
    "checkpointstores",
    "spark_integration",
)


def offered(package: types.ModuleType) -> list[str]:
    """Return the names that a package declares as its own."""
    return list(getattr(package, "__all__", []))


def present(package: types.ModuleType) -> set[str]:
    """Return the public names in a package that are not its modules."""
    return {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") or name == "__version__"
        if not isinstance(value, types.ModuleType)
    }


@pytest.mark.parametrize("door", FRONT_DOORS)
def test_a_front_door_offers_exactly_what_it_imports(door):
    """A name that is imported but not in ``__all__``, or the reverse, is a slip."""
    package = importlib.import_module(door)
    for name in offered(package):
        getattr(package, name)  # ``eventproc`` imports a name when it is first used.

    assert sorted(offered(package)) == sorted(present(package))


@pytest.mark.parametrize("door", FRONT_DOORS)
def test_every_offered_name_is_explained(door):
    """Classes and functions at a front door have a docstring of their own."""
    package = importlib.import_module(door)
    things = {name: getattr(package, name) for name in offered(package)}
    silent = [
        name
        for name, thing in things.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing)) and not vars(thing).get("__doc__")
        if not inspect.isroutine(thing) or not thing.__doc__
    ]

    assert silent == []


def test_every_package_is_typed(root):
    """Type checkers believe our annotations only where ``py.typed`` lies."""
    for package in ("eventproc", "checkpointstores", "spark_integration"):
        marker = root / package / "py.typed"

        assert marker.exists()


def test_the_package_says_its_version():
    """Where people look for it, and as the index has it."""
    assert eventproc.__version__ == version("eventproc")
