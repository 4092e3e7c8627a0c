"""A checkpoint store in an Azure Storage table."""

from eventproc._base.extras import needing
from eventproc._base.public import set_public_module

with needing("tables"):
    from checkpointstores.tables._store import TableCheckpointStore

__all__ = ["TableCheckpointStore"]

set_public_module(__name__, globals())
