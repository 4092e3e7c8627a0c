"""A checkpoint store in Azure Blob Storage, in the layout of Azure's own processors."""

from checkpointstores.blob.store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]
