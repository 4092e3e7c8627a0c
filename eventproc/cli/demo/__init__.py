"""The demos: the product at work on one machine, with a check of the result.

``processors/`` is ``eventproc demo``, ``rabbitmq/`` is ``eventproc demo-rabbitmq``, ``spark/`` is
``eventproc demo-spark``; they share the rest.
"""
