"""Dead letters are chosen, and replayed to a hub."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc import (
    DeadLetterError,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
    ReceivedEvent,
    SourceUnavailableError,
)
from eventproc.dead_letters import (
    HubTarget,
    LetterFilter,
    MemoryDeadLetterReader,
    MemoryDeadLetterSink,
    drop,
    matching,
)
from eventproc.errors import EventRefusedError, LetterRefusedError
from eventproc.models import KAFKA_KEY, KAFKA_TOMBSTONE, REPLAYED_FROM_PROPERTY, UNDECODED
from eventproc.sources.memory import MemoryHub, MemoryPublisher
from tests.scenarios.dead_letters import (
    HELD_BACK,
    NOON,
    QUICK,
    REFUSED,
    REPLAYED,
    left,
    letter,
    replayed,
    stored,
)
from tests.scenarios.group_setup import Noting, Setup


async def test_a_letter_whose_event_could_not_be_decoded_is_not_replayed():
    """Its body is the whole message, which a handler would take for the publisher's body."""
    reader = await stored(letter(1, system_properties={UNDECODED: "no AMQP value"}), letter(2))
    target = HubTarget(MemoryPublisher(MemoryHub(partition_count=2)), eventhub_name="hub")

    assert await replayed(reader, target) == [REFUSED, REPLAYED]
    assert await left(reader) == [1]


# --- to a hub ------------------------------------------------------------------------------------


class Poisoned(Noting):
    """Fails for the body ``bad`` until it is mended, and keeps the events that it gets."""

    is_mended = False
    events: list[ReceivedEvent]

    process_events = PartitionHandler.process_events

    async def process_event(self, context, event):
        """Raise for a bad event."""
        if event.body == b"bad" and not Poisoned.is_mended:
            raise ValueError("cannot read it")
        Poisoned.events.append(event)


async def until(condition) -> None:
    """Wait until it is true."""
    while not condition():  # noqa: ASYNC110 - on virtual time
        await asyncio.sleep(0.1)


async def test_a_replayed_event_is_handled_by_the_group_as_a_new_one():
    """With the properties of its publisher; where it came from is a field of the event."""
    Poisoned.events, Poisoned.is_mended = [], False
    setup, sink = Setup(2), MemoryDeadLetterSink()
    policy = FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER)
    setup.hub.publish(b"bad", partition_key="k", properties={"kind": "order"})
    processor = setup.processor(
        lambda: Poisoned(setup), sink=sink, failure_policy=policy, handler_backoff=QUICK
    )
    async with processor:
        await until(lambda: len(sink.letters) == 1)
        (given_up,) = sink.letters
        target = HubTarget(MemoryPublisher(setup.hub), eventhub_name=setup.hub.name)
        first = await replayed(MemoryDeadLetterReader(sink), target)
        await until(lambda: len(sink.letters) == 1)
        (again,) = sink.letters
        Poisoned.is_mended = True
        second = await replayed(MemoryDeadLetterReader(sink), target)
        await until(lambda: len(Poisoned.events) == 1)
    (handled,) = Poisoned.events

    assert (first, second, sink.letters) == ([REPLAYED], [REPLAYED], [])
    assert again.event.replayed_from == given_up.letter_id
    assert handled.replayed_from == again.letter_id
    assert handled.properties == {"kind": "order"}
    assert (handled.body, handled.partition_key) == (b"bad", "k")


class Refusing(MemoryPublisher):
    """Refuses some bodies, and does not answer for others."""

    def __init__(self, hub, refused=(), unanswered=()):
        super().__init__(hub)
        self.refused, self.unanswered = refused, unanswered

    async def publish(self, events, *, patience):
        """Publish what is neither refused nor unanswered."""
        for event in events:
            if event.body in self.unanswered:
                raise SourceUnavailableError("no answer")
            if event.body in self.refused:
                raise EventRefusedError(0, "too large")
        await super().publish(events, patience=patience)


async def test_a_refused_event_holds_back_the_later_ones_of_its_key():
    """Other keys go on, and so do events without a key, which have no order among themselves."""
    hub = MemoryHub(2)
    reader = await stored(
        *(letter(1, "a"), letter(2, "b"), letter(3, "a"), letter(4, "a")),
        *(letter(5), letter(6), letter(7, "b")),
    )
    target = HubTarget(Refusing(hub, refused=(b"1", b"5")), eventhub_name="hub")
    outcomes = await replayed(reader, target)
    bodies = [event.body for event in hub.events("1")]

    assert outcomes == [REFUSED, REPLAYED, HELD_BACK, HELD_BACK, REFUSED, REPLAYED, REPLAYED]
    assert (await left(reader), bodies) == ([1, 3, 4, 5], [b"2", b"6", b"7"])


async def test_a_replay_without_an_answer_is_resumed_where_it_was():
    """Letters before it are removed, it and those after it stay."""
    hub = MemoryHub(2)
    reader = await stored(*(letter(number) for number in range(5)))
    cut = HubTarget(Refusing(hub, unanswered=(b"3",)), eventhub_name="hub")
    with pytest.raises(SourceUnavailableError):
        await replayed(reader, cut)
    before = await left(reader)
    await replayed(reader, HubTarget(MemoryPublisher(hub), eventhub_name="hub"))

    assert (before, await left(reader)) == ([3, 4], [])
    assert [event.body for event in hub.events("1")] == [b"0", b"1", b"2", b"3", b"4"]


async def test_two_replays_at_once_notice_each_other():
    """The second one ends; each event comes twice at most."""
    hub = MemoryHub(2)
    reader = await stored(letter(1), letter(2), letter(3))
    late = await matching(reader)
    target = HubTarget(MemoryPublisher(hub), eventhub_name="hub")
    await replayed(reader, target)
    with pytest.raises(DeadLetterError, match="another replay"):
        await replayed(reader, target, late)

    assert [event.body for event in hub.events("1")] == [b"1", b"2", b"3", b"1"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"properties": {"map": {"a": 1}}}, "'map' is a dict"),
        ({"properties": {"when": NOON}}, "'when' is a datetime"),
        ({"system_properties": {KAFKA_KEY: b"\xff"}}, "its key is no text"),
    ],
)
async def test_what_cannot_be_published_as_it_was_is_refused(fields, reason):
    """It would reach the handler as something else."""
    target = HubTarget(MemoryPublisher(MemoryHub(2)), eventhub_name="hub")
    with pytest.raises(LetterRefusedError, match=reason):
        await target.take(letter(1, **fields))


class Recording(MemoryPublisher):
    """Keeps what is published."""

    def __init__(self, *, takes_both=True):
        super().__init__(MemoryHub(2))
        self.published = []
        self._takes_both = takes_both

    @property
    def takes_both(self):
        """Whether an event may have a partition and a key."""
        return self._takes_both

    async def publish(self, events, *, patience):
        """Keep the events."""
        self.published += events


@pytest.mark.parametrize(
    ("takes_both", "key", "hub", "expected"),
    [
        (True, "k", "Hub", ("1", "k")),
        (True, None, "hub", ("1", None)),
        (False, "k", "hub", (None, "k")),
        (False, None, "hub", ("1", None)),
        (True, "k", "other", (None, "k")),
        (False, None, "other", (None, None)),
    ],
)
async def test_an_event_goes_to_its_partition_where_it_can(takes_both, key, hub, expected):
    """Event Hubs takes a partition or a key; in another hub the partition means nothing."""
    publisher = Recording(takes_both=takes_both)
    await HubTarget(publisher, eventhub_name=hub).take(letter(1, key))
    (event,) = publisher.published

    assert (event.partition_id, event.partition_key) == expected


@pytest.mark.parametrize(
    ("namespace", "partition_id"), [("", "1"), ("Memory", "1"), ("other.example", None)]
)
async def test_a_hub_of_the_same_name_in_another_namespace_is_another_hub(namespace, partition_id):
    """It may have fewer partitions, or other keys in them."""
    publisher = Recording()
    target = HubTarget(publisher, eventhub_name="hub", fully_qualified_namespace=namespace)
    await target.take(letter(1, "k"))
    (event,) = publisher.published

    assert (event.partition_id, event.partition_key) == (partition_id, "k")


async def test_a_tombstone_is_published_as_one():
    """An empty body would not delete its key."""
    publisher = Recording()
    target = HubTarget(publisher, eventhub_name="hub")
    await target.take(letter(1, "k", system_properties={KAFKA_TOMBSTONE: True}))
    await target.take(letter(2, "k", properties={"list": ("a", "b")}, message_id="m"))
    tombstone, other = publisher.published

    assert tombstone.body is None
    assert (other.body, other.message_id, other.properties["list"]) == (b"2", "m", ["a", "b"])
    assert other.properties[REPLAYED_FROM_PROPERTY] == "memory/hub/$default/1/2"


# --- which letters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"letter_ids": frozenset({"memory/hub/$default/1/2"})}, [2]),
        ({"partition_ids": frozenset({"7"})}, [3]),
        ({"since": NOON + timedelta(seconds=1)}, [2, 3]),
        ({"until": NOON + timedelta(seconds=1)}, [1]),
        ({"error": "VALUE"}, [1, 3]),
        ({"error": "disk"}, [2]),
        ({"eventhub_name": "HUB", "consumer_group": "$default"}, [1, 2, 3]),
        ({"eventhub_name": "other"}, []),
        ({"consumer_group": "other"}, []),
        ({"fully_qualified_namespace": "other"}, []),
        ({"error": "value", "partition_ids": frozenset({"1"})}, [1]),
    ],
)
async def test_letters_are_chosen_by_every_condition_that_is_set(conditions, expected):
    """Names are those of Event Hubs, whose case means nothing."""
    one, two, three = letter(1), letter(2), letter(3)
    reader = await stored(
        one,
        replace(
            two, given_up_at=NOON + timedelta(seconds=1), error_type="OSError", error_message="Disk"
        ),
        replace(three, given_up_at=NOON + timedelta(seconds=2), partition_id="7"),
    )
    found = await matching(reader, LetterFilter(**conditions))

    assert [each.letter.event.sequence_number for each in found if each.letter] == expected


async def test_dropped_letters_are_removed_without_a_replay():
    """Those that were chosen, and no others."""
    reader = await stored(letter(1), letter(2), letter(3))
    one, _, three = await matching(reader)
    dropped = [each async for each in drop(reader, [one, three])]

    assert (len(dropped), await left(reader)) == (2, [2])
