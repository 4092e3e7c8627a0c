"""Sources of events: one package for each transport.

Import the package of a transport, because each of them imports its vendor's client:

    from eventproc.sources.eventhubs import EventHubSource
    from eventproc.sources.kafka import KafkaEventSource
    from eventproc.sources.capture import BlobCaptureFiles, CapturedHub
    from eventproc.sources.memory import MemoryEventSource, MemoryHub
    from eventproc.sources.rabbitmq import RabbitQueues
"""
