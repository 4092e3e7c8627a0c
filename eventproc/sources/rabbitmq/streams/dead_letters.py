"""Reads dead letters from a stream."""

from eventproc.models import DeadLetter, ReceivedEvent, letter_from_json
from eventproc.ports import CheckpointStore
from eventproc.sources.letter_log import LogDeadLetterReader
from eventproc.sources.rabbitmq.streams.source import RabbitStreams


class RabbitStreamDeadLetterReader(LogDeadLetterReader):
    """Reads the letters of a ``RabbitDeadLetterSink`` whose queue is a stream.

    A stream deletes no single messages, so a checkpoint store records which letters are removed.

    Args:
        source: reads the stream of the letters. The reader opens and closes it.
        store: an open store, which may be that of the processors; without one nothing can be
            removed, and letters that were removed before are shown.
    """

    def __init__(self, source: RabbitStreams, *, store: CheckpointStore | None = None) -> None:
        super().__init__(source, _letter_of, store=store, consumer_group="dead-letters")


def _letter_of(event: ReceivedEvent) -> DeadLetter:
    return letter_from_json(event.body)
