"""Events of RabbitMQ. ``streams``: logs with positions of ours, like partitions of Kafka."""
