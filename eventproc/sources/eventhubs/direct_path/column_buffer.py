"""A receiver's buffer for handlers of columns."""

from collections import deque
from collections.abc import Sequence
from typing import Final, cast

from eventproc.models import ReceivedEvent
from eventproc.sources.amqp.columns import EncodedMessages
from eventproc.sources.eventhubs.direct_path.column_batch import ColumnReader

BATCH_BYTES_MAX: Final = 256 * 1024 * 1024
"""Most bytes in one batch, except for a single part: Arrow's indexes have 32 bits."""


class ColumnBuffer:
    """A buffer that returns an ``EventBatch``."""

    def __init__(self) -> None:
        self._parts: deque[EncodedMessages] = deque()
        self._count = 0
        self._reader = ColumnReader()

    def __len__(self) -> int:
        return self._count

    def add(self, payloads: Sequence[bytes]) -> int:
        if not isinstance(payloads, EncodedMessages):
            payloads = EncodedMessages.of(payloads)
        self._parts.append(payloads)
        self._count += len(payloads)
        return payloads.byte_count

    def take(self, count: int) -> tuple[Sequence[ReceivedEvent], int, int]:
        parts: list[EncodedMessages] = []
        taken_count = byte_count = 0
        while self._parts and taken_count < count and byte_count < BATCH_BYTES_MAX:
            part = self._parts.popleft()
            if len(part) > count - taken_count:
                self._parts.appendleft(part[count - taken_count :])
                part = part[: count - taken_count]
            parts.append(part)
            taken_count += len(part)
            byte_count += part.byte_count
        self._count -= taken_count
        events = self._reader.read(parts) if parts else ()
        return cast("Sequence[ReceivedEvent]", events), taken_count, byte_count

    def clear(self) -> None:
        self._parts.clear()
        self._count = 0
