"""A checkpoint store in an Azure Storage table."""

from eventproc._base.installed import needing

with needing("tables"):
    from checkpointstores.tables._store import TableCheckpointStore

__all__ = ["TableCheckpointStore"]
