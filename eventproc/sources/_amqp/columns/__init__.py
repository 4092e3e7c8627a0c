"""Converts encoded messages to Arrow columns, without a Python object for each message.

Messages of one publisher resemble each other: their fields have the same names, types and order. So
the first message is decoded field by field, which gives a *pattern*; numpy then finds one field
after another of the pattern in all other messages at once. A message that matches no pattern is
decoded alone.
"""

from eventproc._base.extras import needing

with needing("columns"):
    from eventproc.sources._amqp.columns.buffer import Buffer, Indexes
    from eventproc.sources._amqp.columns.messages import EncodedMessages, joined
    from eventproc.sources._amqp.columns.pattern import Field, Group, Pattern, Patterns

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
