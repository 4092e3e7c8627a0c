"""Handlers of resources that cannot work are refused before anything is opened."""

import pytest

from eventproc import BlockingResourceHandler, ConfigurationError, ResourceHandler
from eventproc._delivery.checks import check_resource_handler


class Good(ResourceHandler):
    """Holds something."""

    async def hold(self, held):
        """Hold it."""


class GoodInThreads(BlockingResourceHandler):
    """Holds something."""

    def hold(self, held):
        """Hold it."""


class NotAwaitable(ResourceHandler):
    """Is not awaited."""

    def hold(self, held):
        """Hold it."""


class Awaitable(BlockingResourceHandler):
    """Nothing awaits it."""

    async def hold(self, held):  # type: ignore[override]
        """Hold it."""


class Empty(ResourceHandler):
    """Holds nothing."""


class NoArgument(Good):
    """Takes nothing."""

    async def drain(self):  # type: ignore[override]
        """Drain it."""


class Needing(Good):
    """Needs an argument."""

    def __init__(self, url):
        self.url = url


@pytest.mark.parametrize("cls", [Good, GoodInThreads, lambda: Needing("x")])
def test_handlers_that_can_work_are_accepted(cls):
    """Classes, and functions that make one."""
    check_resource_handler(cls)


@pytest.mark.parametrize(
    ("cls", "remedy"),
    [
        (Empty, "define hold"),
        (int, "inherit from ResourceHandler or BlockingResourceHandler"),
        (NotAwaitable, "write `async def`, or inherit from BlockingResourceHandler"),
        (Awaitable, "write `def`, or inherit from ResourceHandler"),
        (NoArgument, r"write drain\(self, held\)"),
        (Needing, r"`def make\(\): return Needing\(...\)`"),
    ],
)
def test_handlers_that_cannot_work_are_refused_with_the_remedy(cls, remedy):
    """By their class."""
    with pytest.raises(ConfigurationError, match=remedy):
        check_resource_handler(cls)
