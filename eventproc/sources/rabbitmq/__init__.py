"""Events of RabbitMQ.

``streams``: logs, whose positions a group keeps in its store. ``queues``: partition queues, whose
broker keeps what is acknowledged.
"""
