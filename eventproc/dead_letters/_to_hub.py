"""Replays dead letters to a hub: their events are published once more."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from eventproc.dead_letters._replay import ReplayTarget
from eventproc.errors import EventRefusedError, LetterRefusedError
from eventproc.models import (
    KAFKA_KEY,
    KAFKA_TOMBSTONE,
    REPLAYED_FROM_PROPERTY,
    DeadLetter,
    OutgoingEvent,
    ReceivedEvent,
)
from eventproc.ports import EventPublisher

PATIENCE: Final = timedelta(seconds=60)
"""How long a request without an answer is repeated."""


class HubTarget(ReplayTarget):
    """Publishes the event of each letter, one after the other.

    Body, properties, key and ids are those of the event. The property ``eventproc_replayed_from``
    has the id of the letter. An event goes to the partition that it came from, if the service
    allows that. Event Hubs does not for an event with a key, which goes to the partition of its
    key.

    Args:
        publisher: Publishes to the hub. The target opens and closes it.
        eventhub_name: The hub's name. An event of another hub is published by its key alone.
        fully_qualified_namespace: The hub's namespace, as letters have it. An event of another
            namespace is one of another hub, whatever that one's name. Empty: the name is enough.
        patience: How long a request without an answer is repeated, which may store the event twice.
    """

    def __init__(
        self,
        publisher: EventPublisher,
        *,
        eventhub_name: str,
        fully_qualified_namespace: str = "",
        patience: timedelta = PATIENCE,
    ) -> None:
        self._publisher = publisher
        self._hub = eventhub_name.lower()
        self._namespace = fully_qualified_namespace.lower()
        self._patience = patience

    async def open(self) -> None:
        """Open the publisher."""
        await self._publisher.open()

    async def close(self) -> None:
        """Close the publisher."""
        await self._publisher.close()

    async def take(self, letter: DeadLetter) -> None:
        """Return when the hub has acknowledged the event.

        Raises:
            LetterRefusedError: the hub does not accept it, or it cannot be published.
            SourceUnavailableError: no answer within the patience.
        """
        event = letter.event
        namespace, hub, _ = letter.group.key
        is_its_hub = hub == self._hub and self._namespace in {"", namespace}
        has_room = event.partition_key is None or self._publisher.takes_both
        outgoing = OutgoingEvent(
            body=None if event.system_properties.get(KAFKA_TOMBSTONE) is True else event.body,
            partition_id=letter.partition_id if is_its_hub and has_room else None,
            partition_key=_key(event),
            properties={
                **{name: _sendable(name, value) for name, value in event.properties.items()},
                REPLAYED_FROM_PROPERTY: letter.letter_id,
            },
            content_type=event.content_type,
            correlation_id=event.correlation_id,
            message_id=event.message_id,
        )
        try:
            await self._publisher.publish([outgoing], patience=self._patience)
        except EventRefusedError as error:
            raise LetterRefusedError(str(error)) from error


def _key(event: ReceivedEvent) -> str | None:
    if KAFKA_KEY in event.system_properties:
        raise LetterRefusedError(
            "its key is no text, and a letter does not keep such a key: replay it through a handler"
        )
    return event.partition_key


def _sendable(name: str, value: object) -> Any:  # noqa: ANN401 - a value of a property
    """Return the value; a header that occurs repeatedly is a list."""
    if isinstance(value, list | tuple) and all(_is_plain(each) for each in value):
        return list(value)
    if isinstance(value, Mapping) or not _is_plain(value):
        raise LetterRefusedError(
            f"its property {name!r} is a {type(value).__name__}, which cannot be published: replay "
            "it through a handler"
        )
    return value


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | bytes | bool | int | float)
