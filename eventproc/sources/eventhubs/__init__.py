"""Events from Azure Event Hubs, or from its emulator.

Floors: connection_string, options, amqp_values, refusal < event, sections, frames, credit (values)
< positions < wire_event < vendor < receiver < inside < direct, promised, producer < source,
dead_letters. Only ``vendor``, ``inside``, ``promised`` and ``producer`` import ``azure.eventhub``.
"""

from eventproc.sources.eventhubs.dead_letters import EventHubDeadLetterSink
from eventproc.sources.eventhubs.options import (
    EventHubOptions,
    HttpProxy,
    ReceivePath,
    Transport,
)
from eventproc.sources.eventhubs.source import EventHubSource

__all__ = [
    "EventHubDeadLetterSink",
    "EventHubOptions",
    "EventHubSource",
    "HttpProxy",
    "ReceivePath",
    "Transport",
]
