"""A checkpoint store in Azure Blob Storage, in the layout of Azure's own processors."""

from eventproc._base.extras import needing
from eventproc._base.public import set_public_module

with needing("blob"):
    from checkpointstores.blob._store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]

set_public_module(__name__, globals())
