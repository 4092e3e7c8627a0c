"""A whole group on virtual time, for tests of handlers."""

from eventproc.testing.stage.stage import HandlerTestHarness

__all__ = ["HandlerTestHarness"]
