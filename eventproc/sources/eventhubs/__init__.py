"""Events from Azure Event Hubs, or from its emulator.

Only ``_client``, ``_direct_path/azure_internals``, ``_public_path`` and ``_producer`` import
``azure.eventhub``.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("eventhubs"):
    from eventproc.sources.eventhubs._letter_reader import EventHubDeadLetterReader
    from eventproc.sources.eventhubs._letters import EventHubDeadLetterSink
    from eventproc.sources.eventhubs._options import EventHubOptions, ReceivePath, Transport
    from eventproc.sources.eventhubs._publisher import EventHubPublisher
    from eventproc.sources.eventhubs._source import EventHubSource

__all__ = [
    "EventHubDeadLetterReader",
    "EventHubDeadLetterSink",
    "EventHubOptions",
    "EventHubPublisher",
    "EventHubSource",
    "ReceivePath",
    "Transport",
]

_public_names.set_module(__name__, globals())
