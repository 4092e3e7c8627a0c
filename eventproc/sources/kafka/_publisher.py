"""Publishes events to a Kafka topic."""

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final, Self

from eventproc._base.identity import AnyTokenCredential
from eventproc._base.settings import SECRET, checked
from eventproc.errors import (
    ConfigurationError,
    EventRefusedError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import OutgoingEvent, PropertyValue
from eventproc.ports import EventPublisher
from eventproc.sources.kafka._address import address_of, address_with_identity
from eventproc.sources.kafka._client import Producer
from eventproc.sources.kafka._errors import UNKNOWN_PARTITION, TokenError, error_for
from eventproc.sources.kafka._options import check_config
from eventproc.sources.kafka._producer_config import MESSAGE_BYTES_MAX, REFUSED

CHECK_MAX_S: Final = 15.0
"""Longest time to wait for the topic's metadata at the start."""

_PARTITION_DIGITS_MAX: Final = 9
_TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"
_INVALID: Final = "INVALID_RECORD"
"""The error of a message that the topic does not take; a compacted one takes none without a key. A
broker may give it to all messages that the client has sent together."""


Message = tuple[bytes | None, bytes | None, int | None, list[tuple[str, bytes | None]]]
"""Body, key, partition and headers."""

Failure = tuple[str, str]
"""Name and text of an error."""


class KafkaPublisher(EventPublisher):
    """Publishes to one Kafka topic. The client retries by itself, and keeps the order.

    The key of a message is the event's partition key, headers are its properties. Headers have no
    types: text is UTF-8, bytes are as they are, and numbers and booleans are JSON.

    Args:
        bootstrap_servers: ``host:port``, or several, separated by commas.
        topic: the topic's name. It must exist.
        config: settings for librdkafka, by its names: security, compression, batch sizes.

    Raises:
        ConfigurationError: a name is not valid, or a setting is refused.
    """

    @checked
    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic: str,
        config: Annotated[Mapping[str, object] | None, SECRET] = None,
    ) -> None:
        self._address = address_of(bootstrap_servers, topic, topic, config)
        check_config(self._address.settings, REFUSED)
        self._producer: Producer | None = None
        self._is_stale = False
        """Whether none of the last messages had an answer. The client may have forgotten all
        brokers, so the next messages get a new one."""

        self._turn = threading.Lock()
        """Held while a thread publishes: that of a cancelled call goes on until its patience ends.
        """

        self._first = self._next = 0
        """The numbers of the first message of the newest call, and of the next call's."""

        self._unanswered = 0
        self._failures: dict[int, Failure] = {}

    @classmethod
    @checked
    def with_identity(
        cls,
        fully_qualified_namespace: str,
        topic: str,
        credential: Annotated[AnyTokenCredential, SECRET],
        *,
        bootstrap_servers: str | None = None,
        config: Annotated[Mapping[str, object] | None, SECRET] = None,
    ) -> Self:
        """Build a publisher for Event Hubs' Kafka endpoint that uses tokens of Entra ID.

        The arguments and errors are those of ``KafkaEventSource.with_identity``.
        """
        address = address_with_identity(
            fully_qualified_namespace, topic, credential, bootstrap_servers, config
        )
        return cls(address.bootstrap_servers, topic=address.topic, config=address.settings)

    async def open(self) -> None:
        """Connect, and check that the topic exists.

        Raises:
            ConfigurationError: the client refuses a setting, the broker refuses the user, or the
                topic or its host does not exist.
            SourceUnavailableError: no answer.
        """
        if self._producer is None:
            servers, topic = self._address.bootstrap_servers, self._address.topic
            try:
                if (tokens := self._address.tokens) is not None:
                    await tokens.check()  # Without a token, a client waits for ten seconds.
                producer = await asyncio.to_thread(Producer, self._address, self._note)
                await asyncio.to_thread(producer.check, CHECK_MAX_S)
            except TokenError as error:
                raise ConfigurationError(
                    f"topic {topic!r} at {servers} cannot be published to: {error}"
                ) from error
            except (SourceRejectedError, SuspectSettingError) as error:
                raise ConfigurationError(
                    f"topic {topic!r} at {servers} cannot be published to: {error}. Check the "
                    "servers, the topic's name, and the security settings"
                ) from error
            self._producer, self._is_stale = producer, False

    async def close(self) -> None:
        """Disconnect. Messages without an acknowledgement are given up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await asyncio.to_thread(producer.give_up)

    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        if self._producer is None:
            raise RuntimeError("the publisher is not open: use `async with`, or call open() first")
        await asyncio.to_thread(self._publish_in_turn, events, patience.total_seconds())

    def _note(self, number: int, error_name: str | None, text: str) -> None:
        index = number - self._first
        if index < 0:  # Of a call that has ended without it.
            return
        self._unanswered -= 1
        if error_name is not None:
            self._failures[index] = error_name, text

    def _publish_in_turn(self, events: Sequence[OutgoingEvent], patience_s: float) -> None:
        with self._turn:
            producer = self._producer
            if producer is None:
                raise SourceUnavailableError("the publisher was closed meanwhile")
            self._publish(producer, events, patience_s)

    def _publish(
        self, producer: Producer, events: Sequence[OutgoingEvent], patience_s: float
    ) -> None:
        if self._is_stale:
            former, producer = producer, Producer(self._address, self._note)
            self._producer = producer
            former.abandon()
            self._is_stale = False
        until_s = time.monotonic() + patience_s
        self._first, self._next = self._next, self._next + len(events)
        self._unanswered, self._failures = len(events), {}
        messages = [_message(index, event) for index, event in enumerate(events)]
        for index, message in enumerate(messages):
            while not producer.send(self._first + index, *message) and time.monotonic() < until_s:
                pass
            if self._failures or time.monotonic() >= until_s:
                break
        producer.wait(max(0.0, until_s - time.monotonic()))
        if self._unanswered:
            self._is_stale = self._unanswered == len(events)
            producer.give_up()
        self._raise_failure(producer, events, patience_s)

    def _raise_failure(
        self, producer: Producer, events: Sequence[OutgoingEvent], patience_s: float
    ) -> None:
        what = f"publishing to topic {self._address.topic!r}"
        for index in sorted(self._failures):
            name, text = self._failures[index]
            if name == _TOO_LARGE:
                raise EventRefusedError(index, self._too_large(events[index]))
            error = error_for(what, name, text)
            if name == UNKNOWN_PARTITION:
                raise EventRefusedError(index, f"{error}: {events[index].partition_id!r}")
            if name == _INVALID:
                count = sum(failure[0] == _INVALID for failure in self._failures.values())
                if count == 1:
                    raise EventRefusedError(index, str(error))
                raise SourceRejectedError(f"{error}, at least one of {count} events")
            if isinstance(error, SourceRejectedError):
                raise error
        if open_count := len(self._failures) + self._unanswered:
            last = producer.last_error
            first = self._failures[min(self._failures)] if self._failures else None
            raise SourceUnavailableError(
                f"{what}: {open_count} of {len(events)} messages were not acknowledged within "
                f"{patience_s:g} s"
                + (f"; the first of them: {first[1]} ({first[0]})" if first else "")
                + (f"; the client reported: {last.text} ({last.name})" if last else "")
            )

    def _too_large(self, event: OutgoingEvent) -> str:
        parts = [
            event.body,
            event.partition_key,
            *(part for one in _headers(event) for part in one),
        ]
        size = sum(len(p.encode() if isinstance(p, str) else p or b"") for p in parts)
        limit = self._address.settings.get("message.max.bytes", MESSAGE_BYTES_MAX)
        return (
            f"it is too large for topic {self._address.topic!r}: body, key and headers have {size} "
            f"bytes, and message.max.bytes of the client is {limit} (the topic's own limit may be "
            "lower; it is one of whole batches, too: then set batch.size below it)"
        )


def _message(index: int, event: OutgoingEvent) -> Message:
    try:
        key = None if event.partition_key is None else event.partition_key.encode()
        return event.body, key, _partition(event), _headers(event)
    except ValueError as error:
        raise EventRefusedError(index, f"it cannot be published to a topic: {error}") from error


def _partition(event: OutgoingEvent) -> int | None:
    text = event.partition_id
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _PARTITION_DIGITS_MAX):
        raise ValueError(f"its partition is {text!r}, and a topic's partitions are numbers")
    return int(text)


def _headers(event: OutgoingEvent) -> list[tuple[str, bytes | None]]:
    return [
        (_name(name), _header(one))
        for name, value in event.properties.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def _name(name: str) -> str:
    """Return the name of a header.

    Raises:
        ValueError: the client would cut it off, or end the process with a segmentation fault.
    """
    name.encode()
    if "\0" in name:
        raise ValueError(f"the name of its property {name!r} has a NUL character")
    return name


def _header(value: PropertyValue) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()
