"""``EventData`` over an encoded message: Azure's class, at the cost of what is read of it."""

from datetime import datetime
from functools import cached_property
from typing import Any, Final

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.eventhub.exceptions import EventDataError

from eventproc.models import ReceivedEvent

_DATA: Final = b"\x00\x53\x75\xa0"
_LARGE_DATA: Final = b"\x00\x53\x75\xb0"
"""A data section whose length is one byte, or four."""

_LENGTH_OF_ONE_BYTE: Final = 0xFF


class LazyEventData(EventData):
    """An event as Azure's client gives it. Azure's code decodes the message when that is needed.

    Position, time, partition key and a body of one data section are read without that.
    """

    # What Azure's constructor sets, which is not called.
    _sys_properties = None
    _uamqp_message = None
    _last_enqueued_event_properties: dict[str, Any] = {}  # noqa: RUF012 - is replaced, never changed

    def __init__(self, event: ReceivedEvent) -> None:
        self._event = event

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as Azure's own class."""
        return EventData.from_bytes, (self._encoded,)

    @property
    def _encoded(self) -> bytes:
        encoded = self._event.encoded
        if encoded is None:
            raise EventDataError(
                "the event has no encoded message, because it was received by the public methods "
                "of azure-eventhub: unset EVENTPROC_RECEIVE_PATH, and see the log event "
                "direct_receive_unavailable"
            )
        return encoded

    @cached_property
    def _decoded(self) -> EventData:
        return EventData.from_bytes(self._encoded)

    @cached_property
    def _raw_amqp_message(self) -> AmqpAnnotatedMessage:  # type: ignore[override]
        return self._decoded.raw_amqp_message

    @cached_property
    def _message(self) -> Any:  # type: ignore[override] # noqa: ANN401 - of Azure's private class
        return self._decoded._message  # noqa: SLF001 - Azure's producer and spans read it

    @cached_property
    def _only_data(self) -> bytes | None:
        """The body, if it is a single data section at the end of the message."""
        event = self._event
        body, encoded = event.body, event.encoded or b""
        length, begin = len(body), len(encoded) - len(body)
        if 0 < length <= _LENGTH_OF_ONE_BYTE and encoded[begin - 5 : begin - 1] == _DATA:
            return body
        if length > _LENGTH_OF_ONE_BYTE and encoded[begin - 8 : begin - 4] == _LARGE_DATA:
            return body
        return None

    @property
    def _is_decoded(self) -> bool:
        """Whether the user may have changed the message."""
        return "_raw_amqp_message" in self.__dict__

    @property
    def sequence_number(self) -> int | None:
        """The sequence number of the event."""
        return self._event.sequence_number

    @property
    def offset(self) -> str | None:
        """The offset of the event."""
        return self._event.offset

    @property
    def enqueued_time(self) -> datetime | None:
        """When the hub received the event."""
        return self._event.enqueued_time

    @property
    def partition_key(self) -> bytes | None:
        """The partition key of the event."""
        key = self._event.partition_key
        return None if key is None else key.encode()

    @property
    def body(self) -> Any:  # noqa: ANN401 - as Azure's
        """The body as Azure's class gives it: of data sections a new generator at each access."""
        data = None if self._is_decoded else self._only_data
        return super().body if data is None else (part for part in (data,))

    @property
    def body_type(self) -> AmqpMessageBodyType:
        """The kind of the message's body."""
        if self._is_decoded or self._only_data is None:
            return super().body_type
        return AmqpMessageBodyType.DATA
