"""A checkpoint store in an Azure Storage table."""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("tables"):
    from checkpointstores.tables._store import TableCheckpointStore

__all__ = ["TableCheckpointStore"]

_public_names.set_module(__name__, globals())
