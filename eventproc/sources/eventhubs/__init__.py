"""Events from Azure Event Hubs, or from its emulator.

Floors: connection_string, options, event, refusal (values) < vendor < receiver, producer < source,
dead_letters. Only ``vendor`` and ``producer`` import ``azure.eventhub``.
"""

from eventproc.sources.eventhubs.dead_letters import EventHubDeadLetterSink
from eventproc.sources.eventhubs.options import EventHubOptions, HttpProxy, Transport
from eventproc.sources.eventhubs.source import EventHubSource

__all__ = [
    "EventHubDeadLetterSink",
    "EventHubOptions",
    "EventHubSource",
    "HttpProxy",
    "Transport",
]
