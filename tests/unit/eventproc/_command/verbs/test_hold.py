"""Wrong names of resources, functions and handlers are refused before anything is opened."""

import asyncio
import sys
from datetime import timedelta

import pytest

from eventproc import ConfigurationError
from eventproc._command.arguments.modules import load_function, load_resource_handler
from eventproc._command.verbs.hold import _resources

EVERY = timedelta(seconds=30)
MODULE = """
from eventproc import PartitionHandler, ResourceHandler

class Key(ResourceHandler):
    pass

class Orders(PartitionHandler):
    pass

key = Key()
names = ["a"]

async def list_names():
    return names
"""


@pytest.fixture(name="module", autouse=True)
def _module(tmp_path, monkeypatch):
    (tmp_path / "some_keys.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("some_keys", None)


@pytest.mark.parametrize(
    ("names", "function", "message"),
    [
        ("", "", "Give either --resources"),
        ("a", "some_keys:list_names", "Give either --resources"),
        ("a,,b", "", "give a text"),
        ("", "some_keys:names", "'some_keys:names' is no function"),
        ("", "some_keys", "give MODULE:FUNCTION"),
        ("", "some_keys:nope", "is no function"),
    ],
)
def test_wrong_resources_are_refused(names, function, message):
    """With the value and the remedy."""
    with pytest.raises(ConfigurationError, match=message):
        _resources(names, function, EVERY)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("some_keys:Nope", "it has Key"),
        ("some_keys:names", "inherits from eventproc.ResourceHandler"),
        ("some_keys:Orders", "eventproc.ResourceHandler or eventproc.BlockingResourceHandler"),
        ("some_keys:key", "every resource needs its own"),
    ],
)
def test_what_is_no_handler_of_resources_is_refused(spec, message):
    """Also a handler of partitions."""
    with pytest.raises(ConfigurationError, match=message):
        load_resource_handler(spec)


def test_names_and_functions_give_resources():
    """Blanks around a name do not count."""
    assert asyncio.run(_resources(" b, a ", "", EVERY).ids()) == ("a", "b")
    assert asyncio.run(_resources("", "some_keys:list_names", EVERY).ids()) == ("a",)
    assert asyncio.run(load_function("some_keys:list_names")()) == ["a"]
