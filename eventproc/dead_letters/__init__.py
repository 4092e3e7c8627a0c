"""Sinks for dead letters. ``blob`` needs the extra ``blob``; import it from its own module."""

from eventproc.dead_letters.function import FunctionDeadLetterSink
from eventproc.dead_letters.memory import MemoryDeadLetterSink

__all__ = ["FunctionDeadLetterSink", "MemoryDeadLetterSink"]
