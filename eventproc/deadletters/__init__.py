"""Where dead letters go. ``blob`` needs the extra ``blob``; import it from its own module."""

from eventproc.deadletters.function import FunctionDeadLetterSink
from eventproc.deadletters.memory import MemoryDeadLetterSink

__all__ = ["FunctionDeadLetterSink", "MemoryDeadLetterSink"]
