"""The handler classes that users subclass, and the context that their methods receive."""

from eventproc.handler.context import BlockingPartitionContext, PartitionContext
from eventproc.handler.handlers import (
    BatchError,
    BlockingPartitionHandler,
    HandlerFactory,
    PartitionHandler,
)

__all__ = [
    "BatchError",
    "BlockingPartitionContext",
    "BlockingPartitionHandler",
    "HandlerFactory",
    "PartitionContext",
    "PartitionHandler",
]
