"""``import eventproc`` is quick: it imports its names when they are first used."""

import pickle
import subprocess
import sys

import pytest

import eventproc
from eventproc import errors
from eventproc._base.retries import Backoff
from eventproc._runtime.processors import EventProcessor


def run_python(code):
    """Run code in a new interpreter, where nothing is imported yet, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_the_package_imports_nothing_else():
    """Neither modules of its own nor other packages, which would take a hundred times as long."""
    imported = run_python(
        "import sys; before = set(sys.modules); import eventproc\n"
        "print(*(set(sys.modules) - before))"
    )

    assert {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names} == {
        "eventproc"
    }


def test_an_exported_name_is_imported_when_it_is_used():
    """Access to an attribute of the package imports the module of the name."""
    code = "import eventproc; print(eventproc.EventProcessor.__module__)"

    assert run_python(code) == ["eventproc"]


def test_importing_errors_and_models_does_not_import_the_processor():
    """Importing an error or a model from ``eventproc`` does not import ``eventproc._runtime``."""
    code = (
        "import sys; from eventproc import ConfigurationError, ReceivedEvent\n"
        "print('eventproc._runtime.processors' in sys.modules)"
    )

    assert run_python(code) == ["False"]


def test_every_name_is_imported_with_a_star():
    """``from eventproc import *`` imports all names in ``__all__``."""
    code = (
        "from eventproc import *; import eventproc\n"
        "print(*(name for name in eventproc.__all__ if name not in globals()))"
    )

    assert run_python(code) == []


def test_dir_lists_the_names_that_are_not_imported_yet():
    """``dir`` has every name of ``__all__``, so an interactive shell can complete them."""
    code = "import eventproc; print(*(set(eventproc.__all__) - set(dir(eventproc))))"

    assert run_python(code) == []


def test_a_module_is_an_attribute_without_an_import_of_its_own():
    """``import eventproc`` is enough for ``eventproc.errors.StoreError``."""
    code = "import eventproc; print(eventproc.errors.StoreError.__module__)"

    assert run_python(code) == ["eventproc.errors"]


def test_a_name_is_one_object_wherever_it_is_imported_from():
    """An ``except`` clause and ``isinstance`` rely on it."""
    assert eventproc.ConfigurationError is errors.ConfigurationError
    assert eventproc.EventProcessor is EventProcessor
    assert eventproc.Backoff is Backoff


def test_a_config_is_pickled():
    """A pickle names the module, not the package."""
    settings = eventproc.EventProcessorConfig()

    assert pickle.loads(pickle.dumps(settings)) == settings


def test_an_unknown_name_is_an_attribute_error():
    """``from eventproc import`` raises ``ImportError``; a type checker finds both, as comments
    show."""
    with pytest.raises(AttributeError, match="module 'eventproc' has no attribute 'EventProcesor'"):
        eventproc.EventProcesor  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(ImportError, match="EventProcesor"):
        from eventproc import (  # type: ignore[attr-defined] # noqa: PLC0415
            EventProcesor,  # noqa: F401
        )
