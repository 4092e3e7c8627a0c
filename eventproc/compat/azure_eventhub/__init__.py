"""``azure.eventhub`` with another consumer: the client for threads.

It has every name of ``azure.eventhub``. All but ``EventHubConsumerClient`` are the same objects.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("eventhubs"):
    from azure.eventhub import CheckpointStore as CheckpointStore
    from azure.eventhub import CloseReason as CloseReason
    from azure.eventhub import EventData as EventData
    from azure.eventhub import EventDataBatch as EventDataBatch
    from azure.eventhub import (
        EventHubConnectionStringProperties as EventHubConnectionStringProperties,
    )
    from azure.eventhub import EventHubProducerClient as EventHubProducerClient
    from azure.eventhub import EventHubSharedKeyCredential as EventHubSharedKeyCredential
    from azure.eventhub import LoadBalancingStrategy as LoadBalancingStrategy
    from azure.eventhub import PartitionContext as PartitionContext
    from azure.eventhub import TransportType as TransportType
    from azure.eventhub import __version__ as __version__
    from azure.eventhub import parse_connection_string as parse_connection_string

    from eventproc.compat._threads_client import EventHubConsumerClient

__all__ = ["EventHubConsumerClient"]

_public_names.set_module(__name__, globals())
