"""Events from memory, for tests and examples."""

from eventproc._base import public as _public
from eventproc.sources.memory._hub import MemoryHub
from eventproc.sources.memory._source import MemoryEventSource, MemoryPublisher, MemoryReceiver

__all__ = ["MemoryEventSource", "MemoryHub", "MemoryPublisher", "MemoryReceiver"]

_public.set_module(__name__, globals())
