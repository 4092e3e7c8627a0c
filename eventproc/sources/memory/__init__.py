"""Events from memory, for tests and examples."""

from eventproc.sources.memory._hub import MemoryHub
from eventproc.sources.memory._source import MemoryEventSource, MemoryPublisher, MemoryReceiver

__all__ = ["MemoryEventSource", "MemoryHub", "MemoryPublisher", "MemoryReceiver"]
