"""Events of RabbitMQ. ``queues``: partition queues, whose broker keeps what is acknowledged."""
