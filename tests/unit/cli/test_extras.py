"""A package that is missing is named with the command that brings it."""

import importlib

import pytest

from eventproc.cli.extras import needing
from eventproc.errors import ConfigurationError


def test_a_missing_package_is_named_with_its_extra():
    """Who installed the library without extras learns what to type."""
    with (
        pytest.raises(ConfigurationError, match=r"nobody_has.*pip install 'eventproc\[blob\]'"),
        needing("blob"),
    ):
        importlib.import_module("a_package_that_nobody_has")


def test_a_missing_module_of_our_own_is_a_mistake_of_ours():
    """No extra brings it."""
    with pytest.raises(ModuleNotFoundError), needing("blob"):
        importlib.import_module("eventproc.a_module_that_is_not_there")
