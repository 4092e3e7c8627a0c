"""A checkpoint store in Azure Blob Storage, in the layout of Azure's own processors."""

from eventproc._base.installed import needing

with needing("blob"):
    from checkpointstores.blob._store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]
