"""``azure.eventhub.aio`` with another consumer: the client for an event loop.

It has every name of ``azure.eventhub.aio``. All but ``EventHubConsumerClient`` are the same
objects.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("eventhubs"):
    from azure.eventhub.aio import CheckpointStore as CheckpointStore
    from azure.eventhub.aio import EventHubProducerClient as EventHubProducerClient
    from azure.eventhub.aio import EventHubSharedKeyCredential as EventHubSharedKeyCredential
    from azure.eventhub.aio import PartitionContext as PartitionContext

    from eventproc.compat._aio_client import EventHubConsumerClient

__all__ = ["EventHubConsumerClient"]

_public_names.set_module(__name__, globals())
