"""Events of RabbitMQ.

``streams``: logs; a group keeps their positions in its store. ``queues``: partition queues; the
broker keeps which messages are acknowledged.
"""
