"""Encoded messages to Arrow columns, without a Python object for each message.

Messages of one publisher resemble each other: their fields have the same names, types and order. So
the first of them is decoded field by field and becomes a *pattern*; numpy finds the fields of all
others by one pass of array operations for each field of the pattern. A message that fits no pattern
is decoded by itself.

Layers, each of which imports only those below it:

- ``maps``
- ``values``, ``forms``
- ``pattern``
- ``messages``
- ``buffer``
"""

from eventproc.extras import needing

with needing("columns"):
    from eventproc.sources.amqp.columns.buffer import Buffer, Indexes
    from eventproc.sources.amqp.columns.messages import EncodedMessages, joined
    from eventproc.sources.amqp.columns.pattern import Field, Group, Pattern, Patterns

__all__ = [
    "Buffer",
    "EncodedMessages",
    "Field",
    "Group",
    "Indexes",
    "Pattern",
    "Patterns",
    "joined",
]
