"""Positions of Kafka: of a group that the broker keeps, and what its numbers mean over AMQP.

Over Event Hubs' Kafka endpoint, an offset is said to be the sequence number of the event. No
document promises it, so one event of each partition is read over both protocols before a number is
used over the other one.
"""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from eventproc._base.logs import printable
from eventproc._command.arguments.address import HubAddress
from eventproc._command.arguments.sources import kafka_topic
from eventproc._command.foreign.found import FoundGroup, position_before
from eventproc._command.foreign.place import Place
from eventproc._command.group.connection import event_at_or_before
from eventproc.errors import ConfigurationError
from eventproc.models import PartitionProperties, ReceivedEvent
from eventproc.ports import EventSource

if TYPE_CHECKING:
    from eventproc.sources.kafka._address import TopicAddress

_TIMEOUT_S: Final = 15.0
_SAME_TIME_MAX: Final = timedelta(seconds=1)
"""Two protocols may round the time of an event differently."""


async def read_committed(place: Place, address: HubAddress) -> FoundGroup:
    """Read what a consumer group has committed in the topic.

    Raises:
        ConfigurationError: The broker's address is missing or wrong.
        SourceError: The broker did not answer, or refuses.
    """
    from eventproc.sources.kafka._client import read_kafka_group  # noqa: PLC0415 - an extra

    topic = topic_at(place, address)
    found = await asyncio.to_thread(read_kafka_group, topic, place.name, _TIMEOUT_S)
    where = f"Kafka group {place.name!r} in topic {topic.topic!r}"
    members = printable(", ".join(found.members)) or "which the broker does not name"
    return FoundGroup(
        positions=[
            position_before(str(partition), following, where)
            for partition, following in sorted(found.following.items())
        ],
        consumers=[f"{where} has members, {members}"] if found.is_active else (),
    )


def topic_at(place: Place, address: HubAddress) -> "TopicAddress":
    """Return the address of the topic whose offsets the place has."""
    hub = place.settings.get("eventhub") or address.group().eventhub_name
    return kafka_topic(place.hub(address), hub)


def kafka_source(topic: "TopicAddress") -> EventSource:
    """Make the source of a topic, without connecting it."""
    from eventproc.sources.kafka import KafkaEventSource  # noqa: PLC0415 - it is an extra

    return KafkaEventSource(
        topic.bootstrap_servers,
        topic=topic.topic,
        namespace=topic.namespace,
        config=topic.settings,
    )


async def require_same_event(
    source: EventSource, kafka: EventSource, through: str, number: int, end: PartitionProperties
) -> None:
    """Check that a number names the same event over AMQP and over Kafka.

    A number before the first event names none, and begins at the first one over both.

    Raises:
        ConfigurationError: It does not.
        SourceError: One of the two did not answer.
    """
    first, partition_id = end.beginning_sequence_number, end.partition_id
    if end.is_empty or number < first:
        return
    ours = await event_at_or_before(source, through, partition_id, number, first=first)
    theirs = await event_at_or_before(kafka, through, partition_id, number, first=first)
    if not _is_same(ours, theirs):
        raise ConfigurationError(
            f"event {number} of partition {partition_id} is {_text(ours)} over AMQP, and "
            f"{_text(theirs)} over Kafka: the numbers of the two protocols differ in this hub, so "
            "positions of Kafka mean nothing over AMQP. Give kafka+ before the connection string, "
            "to read over Kafka, too; or use `eventproc checkpoints reset --to TIME`"
        )


def _is_same(ours: ReceivedEvent | None, theirs: ReceivedEvent | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return (ours.sequence_number, ours.body) == (theirs.sequence_number, theirs.body) and abs(
        ours.enqueued_time - theirs.enqueued_time
    ) <= _SAME_TIME_MAX


def _text(event: ReceivedEvent | None) -> str:
    if event is None:
        return "missing"
    return f"of {event.enqueued_time:%Y-%m-%d %H:%M:%S} UTC with {len(event.body):,} bytes"
