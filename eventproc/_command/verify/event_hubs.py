"""What the source assumes of Event Hubs' own protocol; the contract of sources has the rest."""

import asyncio
import uuid
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Final

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType
from azure.eventhub.exceptions import EventDataSendError

from eventproc._command.terminal.console import format_duration
from eventproc._command.verify.bench import HubBench, events_on
from eventproc.errors import SourceError, SourceRejectedError, SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.testing._clauses import SkippedError, require
from eventproc.testing._source_contract.bench import (
    EARLIEST,
    GROUP,
    end_of,
    numbered,
    refused,
    require_bodies,
    take,
)

EMULATOR_BYTES_MAX: Final = 1024 * 1024

_ENOUGH_ABOVE: Final = 100_000
"""So many bytes above the limit of an event are too many, whatever its other fields need."""


async def _end(of: HubBench) -> EventPosition:
    async with of.source() as source:
        return await end_of(source)


async def an_event_keeps_its_properties(bench: HubBench) -> None:
    """Properties of each type come back, with the ids, the key and what the hub assigned.

    Relied on by: eventproc/sources/eventhubs/_direct_path/lazy_event.py
    """
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    properties: dict[str | bytes, object] = {
        "text": "naïve",
        "bytes": b"\x00\xff",
        "true": True,
        "false": False,
        "int": 2**31 - 1,
        "negative": -(2**31),
        "float": 1.5,
        "uuid": uuid.uuid4(),
        "time": moment,
        "none": None,
    }
    event = EventData(b"body")
    event.properties = {**properties}
    event.correlation_id, event.message_id = "correlation", "message"
    event.content_type = "text/plain"
    position = await _end(bench)
    batch = await bench.producer.create_batch(partition_id="0")
    batch.add(event)
    await bench.producer.send_batch(batch)
    (theirs,) = await bench.read_by_azure("0", position, 1)
    async with bench.source() as source:
        events = await take(await source.open_receiver(GROUP, "0", position), 1)
    require_bodies(events, [b"body"], "one event was published")
    ours = events[0]

    wanted = properties | {"time": int(moment.timestamp() * 1000)}
    found = {str(name, "utf-8"): value for name, value in (theirs.properties or {}).items()}  # type: ignore[arg-type]
    require(ours.properties == wanted, f"properties must come back as sent: {ours.properties}")
    as_bytes = {"text": "naïve".encode()}  # Azure's client does not decode text
    require(found == wanted | as_bytes, f"so must they by Azure's client: {found}")
    ids = (ours.correlation_id, ours.message_id, ours.content_type)
    require(ids == ("correlation", "message", "text/plain"), f"so must ids: {ids}")
    place = (theirs.sequence_number, theirs.offset, theirs.enqueued_time)
    require(
        place == (ours.sequence_number, ours.offset, ours.enqueued_time),
        "Azure's client must read the same sequence number, offset and time",
    )
    bench.noted.note(
        (ours.offset == "0") == (ours.sequence_number == 0) and ours.offset.isdecimal(),
        f"the event of sequence number {ours.sequence_number} has the offset {ours.offset}",
    )


async def bodies_of_every_kind_come_back(bench: HubBench) -> None:
    """Data in several sections, sequences and values come back, with annotations and footer.

    Relied on by: eventproc/sources/eventhubs/_event.py
    """
    bodies: dict[AmqpMessageBodyType, dict[str, object]] = {
        AmqpMessageBodyType.DATA: {"data_body": [b"one", b"two"]},
        AmqpMessageBodyType.SEQUENCE: {"sequence_body": [[1, b"x"], [b"y"]]},
        AmqpMessageBodyType.VALUE: {"value_body": {b"key": [1, 2.5, None]}},
    }
    own: dict[str, object] = {
        "annotations": {"x-own": 7},
        "footer": {"checksum": 1},
        "header": {"durable": True},
    }
    position = await _end(bench)
    messages: list[EventData | AmqpAnnotatedMessage] = [
        AmqpAnnotatedMessage(**own, **body) for body in bodies.values()
    ]
    await bench.producer.send_batch(messages, partition_id="0")
    events = await bench.read_by_azure("0", position, 3)
    raw = {event.raw_amqp_message.body_type: event.raw_amqp_message for event in events}

    require(set(raw) == set(bodies), f"bodies of the kinds {set(bodies)} were sent: {set(raw)}")
    for kind, (wanted,) in ((kind, body.values()) for kind, body in bodies.items()):
        found = raw[kind].body
        found = found if kind is AmqpMessageBodyType.VALUE else list(found)
        require(found == wanted, f"the body {wanted} came back as {found}")
    for message in raw.values():
        annotations, footer = message.annotations or {}, message.footer or {}
        require(annotations.get(b"x-own") == 7, "a publisher's annotation must come back")  # noqa: PLR2004
        require(footer.get(b"checksum") == 1, "a footer must come back")
        require(message.header and message.header.durable, "a header must come back")


async def a_key_has_one_partition_and_its_order(bench: HubBench) -> None:
    """Events of a key go to one partition in their order, those for a partition to that one.

    Relied on by: eventproc/dead_letters/_to_hub.py, docs/guarantees.md
    """
    async with bench.source() as source:
        ids = await source.partition_ids()
        before = await source.properties_of(ids)
        for half in (numbered(20)[:10], numbered(20)[10:]):
            events: list[EventData | AmqpAnnotatedMessage] = [EventData(body) for body in half]
            await bench.producer.send_batch(events, partition_key="key")
        await bench.publish("1", *numbered(20, b"one "))
        after = await source.properties_of(ids)
        grown = {
            new.partition_id: new.last_enqueued_sequence_number - old.last_enqueued_sequence_number
            for old, new in zip(before, after, strict=True)
        }
        chosen = next((p for p, count in grown.items() if count and p != "1"), "1")
        old = before[list(ids).index(chosen)].last_enqueued_sequence_number
        position = EventPosition.from_sequence_number(old + 1, is_inclusive=True)
        came = await take(await source.open_receiver(GROUP, chosen, position), 20)

    require(sum(grown.values()) == 40, f"40 events were sent, and partitions grew by {grown}")  # noqa: PLR2004
    require(grown["1"] >= 20, f"20 events were for partition 1: {grown}")  # noqa: PLR2004
    require_bodies(came[:20], numbered(20), "20 events of one key were sent")
    require({e.partition_key for e in came[:20]} == {"key"}, "an event must keep its key")


async def an_event_above_the_limit_is_refused(bench: HubBench) -> None:
    """An event just below the limit that the link names is taken; one above it is refused.

    Relied on by: eventproc/sources/eventhubs/_publisher.py, eventproc/sources/eventhubs/_letters.py
    """
    bytes_max = (await bench.producer.create_batch(partition_id="0")).max_size_in_bytes
    position, large = await _end(bench), bytes(bytes_max - _ENOUGH_ABOVE)
    await bench.publish("0", large)
    async with bench.source() as source:
        events = await take(await source.open_receiver(GROUP, "0", position), 1)
    too_large = EventData(bytes(bytes_max + _ENOUGH_ABOVE))
    sending = bench.producer.send_event(too_large, partition_id="0")
    message = await refused(sending, EventDataSendError, "sending an event above the limit")

    require([e.body for e in events] == [large], "an event below the limit must come back whole")
    bench.noted.note("exceeds the limit" in message, "a too large event has another message")
    bench.noted.note(
        bytes_max == EMULATOR_BYTES_MAX,
        f"an event may have {bytes_max} bytes, in the emulator {EMULATOR_BYTES_MAX}",
    )


async def no_more_events_come_than_credit_was_granted(bench: HubBench) -> None:
    """Without credit nothing comes, then as many events as were granted; credit can be withdrawn.

    Relied on by: eventproc/sources/eventhubs/_direct_path/receiver.py
    """
    position = await _end(bench)
    await bench.publish("0", *numbered(20))
    async with bench.link(position, 0) as link:
        for granted in (0, 3, 1):
            if granted:
                await link.grant(granted)
            came = len(await events_on(link, granted))
            require(came == granted, f"{granted} events were granted, and {came} came")
        await link.grant(100)
        require(len(await events_on(link, 16)) == 16, "16 more events must come")  # noqa: PLR2004
        await link.grant(0)
        await asyncio.sleep(1)  # the service may still use credit until it reads this
        await bench.publish("0", b"late")
        require(not await events_on(link, 0), "nothing may come after credit was withdrawn")
        await link.grant(1)
        require(len(await events_on(link, 1)) == 1, "an event must come by new credit")


async def a_receiver_of_a_lower_level_is_refused(bench: HubBench) -> None:
    """While a receiver has level 1, one of level 0 and one without a level are refused.

    Relied on by: eventproc/sources/eventhubs/_source.py, docs/operations.md
    """
    position = await _end(bench)
    async with bench.link(position, 1) as first:
        await first.grant(1)
        for level in (0, None):
            try:
                async with bench.link(position, level) as second:
                    await second.grant(1)
                    await events_on(second, 0)
                    await second.maintain()
            except SourceError as error:
                bench.noted.note(
                    "higher epoch" in str(error) or "non-epoch" in str(error),
                    f"level {level} is refused with other words",
                )
                continue
            raise AssertionError(f"a receiver of level {level} must be refused beside level 1")
        await bench.publish("0", b"for the first")
        require(await events_on(first, 1), "the receiver of level 1 must go on")


async def five_receivers_without_a_level_read_at_once(bench: HubBench) -> None:
    """Five receivers without a level read one partition of one group beside each other.

    Relied on by: eventproc/sources/eventhubs/_options.py
    """
    position = await _end(bench)
    async with AsyncExitStack() as stack:
        links = [await stack.enter_async_context(bench.link(position, None)) for _ in range(5)]
        for link in links:
            await link.grant(1)
        await bench.publish("0", b"for all")
        for link in links:
            require(len(await events_on(link, 1)) == 1, "each of five receivers must get the event")
        try:
            async with bench.link(position, None):
                bench.noted.note(False, "a sixth receiver without a level is not refused")
        except SourceError:
            pass


async def names_of_hubs_and_groups_ignore_case(bench: HubBench) -> None:
    """A hub and its group are the same in other letters: records have their names in lower case.

    Relied on by: eventproc/models/_group.py
    """
    position = await _end(bench)
    await bench.publish("0", b"any")
    async with bench.source(name=bench.hub.name.swapcase()) as source:
        receiver = await source.open_receiver(GROUP.swapcase(), "0", position)
        require_bodies(await take(receiver, 1), [b"any"], "names were given in other letters")


async def a_hub_keeps_the_time_of_its_creation(bench: HubBench) -> None:
    """The hub tells when it was created, always the same time, before its first event.

    Relied on by: eventproc/ports/_event_source.py, docs/guarantees.md
    """
    await bench.publish("0", b"any")
    async with bench.source() as source, bench.source() as other:
        await source.partition_ids()
        await other.partition_ids()
        created_at = source.created_at
        (first,) = await take(await source.open_receiver(GROUP, "0", EARLIEST), 1, events_max=1)
        times = (created_at, other.created_at)

    require(times[0] == times[1], f"a hub must always tell the same time: {times}")
    require(
        created_at is not None and created_at <= first.enqueued_time,
        f"the first event is of {first.enqueued_time}, the hub of {created_at}",
    )


async def an_unknown_hub_is_refused(bench: HubBench) -> None:
    """A hub that does not exist is refused for good, not as an outage.

    Relied on by: eventproc/sources/eventhubs/_errors.py
    """
    async with bench.source(name=f"{bench.hub.name}-unknown") as source:
        opening = source.open_receiver(GROUP, "0", EARLIEST)
        await refused(opening, SourceRejectedError, "opening a receiver of an unknown hub")


async def a_wrong_key_is_refused(bench: HubBench) -> None:
    """A token that was signed with another key is refused for good.

    Relied on by: eventproc/sources/eventhubs/_errors.py
    """
    bench.noted.skip_emulator("the emulator checks no keys")
    wrong = bench.signature(timedelta(hours=1), key="d3Jvbmc=")
    async with bench.source(credential=wrong) as source:
        opening = source.open_receiver(GROUP, "0", EARLIEST)
        await refused(opening, SourceRejectedError, "opening a receiver with a wrong key")


async def a_link_lives_on_by_a_new_token(bench: HubBench) -> None:
    """A link whose token expires goes on if a new one was presented before.

    Relied on by: eventproc/sources/eventhubs/_direct_path/azure_internals.py
    """
    # Long enough for a machine whose clock is not that of the service.
    brief = timedelta(seconds=6 if bench.noted.is_emulator else 30)
    credential = bench.signature(brief)
    async with bench.source(credential=credential) as source:
        receiver = await source.open_receiver(GROUP, "0", await _end(bench))
        credential.update(bench.signature(timedelta(hours=1)).signature)
        events = await receiver.receive(events_max=1, wait_max=brief + timedelta(seconds=3))
        await bench.publish("0", b"after the first token")
        events = events or await take(receiver, 1)

    require_bodies(events, [b"after the first token"], "the first token of a link has expired")


async def a_link_without_events_stays_open(bench: HubBench) -> None:
    """A link on which no event comes for minutes delivers the next one.

    Relied on by: eventproc/sources/eventhubs/_direct_path/azure_internals.py
    """
    async with bench.source() as source:
        receiver = await source.open_receiver(GROUP, "0", await _end(bench))
        early = await receiver.receive(events_max=1, wait_max=bench.idle)
        await bench.publish("0", b"at last")
        events = await take(receiver, 1)

    idle = format_duration(bench.idle)
    require_bodies([*early, *events], [b"at last"], f"the link had no event for {idle}")


async def the_kafka_endpoint_has_the_same_events(bench: HubBench) -> None:
    """Events that were sent over AMQP come over Kafka, in the same partition and order.

    Relied on by: eventproc/sources/kafka/_source.py
    """
    bench.noted.skip_emulator("the emulator has no Kafka endpoint")
    if bench.kafka is None:
        raise SkippedError("it needs `pip install 'eventproc[kafka]'` and a Standard tier")
    position = await _end(bench)
    await bench.publish("0", *numbered(10, b"over both "))
    try:
        async with bench.kafka() as source:
            last = (await source.partition_properties("0")).last_enqueued_sequence_number
            begin = EventPosition.from_sequence_number(last - 9, is_inclusive=True)
            over_kafka = await take(await source.open_receiver(GROUP, "0", begin), 10)
    except SourceUnavailableError as error:
        raise SkippedError(f"the Basic tier has no Kafka endpoint, or: {error}") from error
    async with bench.source() as source:
        over_amqp = await take(await source.open_receiver(GROUP, "0", position), 10)

    require_bodies(over_kafka, [e.body for e in over_amqp], "10 events were sent over AMQP")
    pairs = zip(over_amqp, over_kafka, strict=True)
    apart = {ours.sequence_number - theirs.sequence_number for ours, theirs in pairs}
    bench.noted.note(
        apart == {0}, f"offsets over Kafka are {sorted(apart)} below sequence numbers over AMQP"
    )
