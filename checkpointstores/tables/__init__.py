"""A checkpoint store in an Azure Storage table."""

from eventproc.extras import needing

with needing("tables"):
    from checkpointstores.tables.store import TableCheckpointStore

__all__ = ["TableCheckpointStore"]
