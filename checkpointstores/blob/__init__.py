"""A checkpoint store in Azure Blob Storage, in the layout of Azure's own processors."""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("blob"):
    from checkpointstores.blob._store import BlobCheckpointStore

__all__ = ["BlobCheckpointStore"]

_public_names.set_module(__name__, globals())
