"""``eventproc demo-rabbitmq``: the pods of a StatefulSet share the partition queues of RabbitMQ."""
