"""A checkpoint store in Azure Blob Storage, in the layout of Azure's own processors."""

from eventproc.extras import needing

with needing("blob"):
    from checkpointstores.blob.store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]
