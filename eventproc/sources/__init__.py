"""Sources of events: one package for each transport.

Nothing is re-exported here, because importing a transport imports its vendor's client:

    from eventproc.sources.eventhubs import EventHubSource
    from eventproc.sources.kafka import KafkaEventSource
    from eventproc.sources.memory import MemoryEventSource, MemoryHub
"""
