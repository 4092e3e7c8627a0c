"""Recipes of sources on RabbitMQ streams, which Spark's Python workers find by ``PYTHONPATH``."""

from eventproc.sources.eventhubs import EventHubOptions
from eventproc.sources.rabbitmq.streams import RabbitStreams, StreamOptions
from tests.spark.faulty_hub import folder


def orders(options: EventHubOptions) -> RabbitStreams:
    """Make a source on the super stream that the test names in a file."""
    url, stream = (folder() / "stream").read_text().split()
    read = StreamOptions(prefetch=options.prefetch or 1000, key="property:customer")
    return RabbitStreams(url, stream=stream, options=read)
