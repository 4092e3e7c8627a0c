"""Events from memory, for tests and examples."""

from eventproc._base.public import set_public_module
from eventproc.sources.memory._hub import MemoryHub
from eventproc.sources.memory._source import MemoryEventSource, MemoryPublisher, MemoryReceiver

__all__ = ["MemoryEventSource", "MemoryHub", "MemoryPublisher", "MemoryReceiver"]

set_public_module(__name__, globals())
