"""Events from Azure Event Hubs, or from its emulator.

Layers, each of which imports only those below it:

- ``dead_letters``, ``dead_letter_reader``
- ``source``, ``publisher``
- ``public_path``, ``producer``
- ``direct_path``: ``path`` > ``receiver``, ``management`` > ``azure_internals``, ``lazy_event``,
  ``credit`` > ``annotations``, ``frames``
- ``client``
- ``event``, ``batch``, ``errors``, ``letter_parts``, ``options``

Only ``client``, ``azure_internals``, ``public_path``, ``producer`` and ``batch`` import
``azure.eventhub``.
"""

from eventproc._base import public as _public
from eventproc._base.extras import needing
from eventproc._base.network import HttpProxy

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
    "HttpProxy",
    "ReceivePath",
    "Transport",
]

_public.set_module(__name__, globals())
