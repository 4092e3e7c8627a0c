"""Named resources: connections, licence keys, jobs, tenants; each has one holder in a group."""

from eventproc._group.resources.handler import (
    BlockingHeldResource,
    BlockingResourceHandler,
    HeldResource,
    ResourceHandler,
)
from eventproc._group.resources.names import Resources

__all__ = [
    "BlockingHeldResource",
    "BlockingResourceHandler",
    "HeldResource",
    "ResourceHandler",
    "Resources",
]
