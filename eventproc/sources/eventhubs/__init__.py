"""Events from Azure Event Hubs, or from its emulator.

Floors: connection_string, options, event, refusal (values) < vendor < receiver < source.
Only ``vendor`` imports ``azure.eventhub``.
"""

from eventproc.sources.eventhubs.options import EventHubOptions, HttpProxy, Transport
from eventproc.sources.eventhubs.source import EventHubSource

__all__ = ["EventHubOptions", "EventHubSource", "HttpProxy", "Transport"]
