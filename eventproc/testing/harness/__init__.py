"""A whole group on virtual time, for tests of handlers."""

from eventproc.testing.harness.harness import HandlerTestHarness

__all__ = ["HandlerTestHarness"]
