"""Events from memory, for tests and examples."""

from eventproc._base import public_names as _public_names
from eventproc.sources.memory._hub import MemoryHub
from eventproc.sources.memory._source import MemoryEventSource, MemoryPublisher

__all__ = ["MemoryEventSource", "MemoryHub", "MemoryPublisher"]

_public_names.set_module(__name__, globals())
