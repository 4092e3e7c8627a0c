"""The handler classes that users subclass, and the context that their methods receive."""

from eventproc.handler.context import BlockingPartitionContext, PartitionContext
from eventproc.handler.handlers import (
    BatchError,
    BlockingPartitionHandler,
    HandlerFactory,
    PartitionHandler,
    RowError,
    defines_columns,
)

__all__ = [
    "BatchError",
    "BlockingPartitionContext",
    "BlockingPartitionHandler",
    "HandlerFactory",
    "PartitionContext",
    "PartitionHandler",
    "RowError",
    "defines_columns",
]
