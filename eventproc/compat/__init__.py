"""Programs of other clients, unchanged but for their imports.

``eventproc.compat.azure_eventhub`` and ``eventproc.compat.azure_eventhub.aio`` have the names of
``azure.eventhub`` and ``azure.eventhub.aio``; docs/migrate.md says what is the same, what is better
and what is refused.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("blob"), needing("eventhubs"):
    from eventproc.compat._blob_store import BlobCheckpointStore
    from eventproc.compat._receive import ReceiveOptions

__all__ = ["BlobCheckpointStore", "ReceiveOptions"]

_public_names.set_module(__name__, globals())
