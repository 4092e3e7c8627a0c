"""Where events come from: one file for each transport, imported by whoever uses it.

Nothing is re-exported here, because importing a transport imports its vendor:

    from eventproc.sources.eventhubs import EventHubSource
    from eventproc.sources.kafka import KafkaEventSource
    from eventproc.sources.memory import MemoryEventSource, MemoryHub
"""
