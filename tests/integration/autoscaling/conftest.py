"""The command and its hub, as in the tests of the other verbs."""

from tests.integration.cli.conftest import command, orders

__all__ = ["command", "orders"]
