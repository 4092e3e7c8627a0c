"""Events from memory, for tests and examples."""

from eventproc.sources.memory.hub import MemoryHub
from eventproc.sources.memory.publisher import MemoryPublisher
from eventproc.sources.memory.source import MemoryEventSource, MemoryReceiver

__all__ = ["MemoryEventSource", "MemoryHub", "MemoryPublisher", "MemoryReceiver"]
