"""How a publisher divides batches among links, and shares connections."""

import asyncio
from datetime import timedelta

import pytest
from azure.eventhub import EventDataBatch

from eventproc.errors import EventRefusedError, SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.sources.eventhubs import EventHubPublisher
from eventproc.sources.eventhubs import _publisher as module
from eventproc.sources.eventhubs._producer import Batch
from eventproc.sources.eventhubs._publisher import CONNECTIONS_MAX, KEYS_FOR_A_CONNECTION, _links
from eventproc.testing._virtual_time import run_virtual


def test_each_partition_and_all_events_without_one_have_a_link_of_the_first_connection():
    """A few keys are sent over it, one after another."""
    targets = [("0", None), (None, "anna"), (None, None), ("1", None), (None, "bob")]

    assert _links(targets) == {
        (None, 0): [(None, "anna"), (None, "bob"), (None, None)],
        ("0", 0): [("0", None)],
        ("1", 0): [("1", None)],
    }


@pytest.mark.parametrize(
    ("key_count", "connection_count"),
    [
        (1, 1),
        (KEYS_FOR_A_CONNECTION, 2),
        (3 * KEYS_FOR_A_CONNECTION - 1, 3),
        (1000 * KEYS_FOR_A_CONNECTION, CONNECTIONS_MAX),
    ],
)
def test_many_keys_are_divided_evenly_among_connections(key_count, connection_count):
    """Each key is in one of them, so its events stay in order."""
    targets: list[tuple[str | None, str | None]] = [(None, str(key)) for key in range(key_count)]
    links = _links(targets)
    sizes = [len(link) for link in links.values()]

    assert list(links) == [(None, number) for number in range(connection_count)]
    assert sorted(target for link in links.values() for target in link) == sorted(targets)
    assert max(sizes) - min(sizes) <= 1


CONN_STR = "Endpoint=sb://x.example/;SharedAccessKeyName=a;SharedAccessKey=b=;EntityPath=orders"


class FakeProducer:
    """A connection; the first one fails, for partition 1 later than for partition 0."""

    made: list["FakeProducer"]

    def __init__(self, hub):
        self.is_closed = False
        self.made.append(self)

    async def partition_ids(self):
        return ["0", "1"]

    async def new_batch(self, *, partition_id, partition_key):
        if self is self.made[0]:
            await asyncio.sleep(10 * int(partition_id))
            raise SourceUnavailableError("the connection is lost")
        return FakeBatch()

    async def send_batch(self, batch, shown):
        """Send nothing."""

    async def close(self):
        self.is_closed = True


class FakeBatch:
    """A batch with room."""

    def add(self, data):
        return True

    def __len__(self):
        return 1


def test_a_connection_that_fails_later_for_another_link_leaves_its_successor(monkeypatch):
    """Otherwise each outage would leave connections open."""
    FakeProducer.made = []
    monkeypatch.setattr(module, "Producer", FakeProducer)

    async def scenario():
        publisher = EventHubPublisher.from_connection_string(CONN_STR)
        events = [OutgoingEvent(body=b"x", partition_id=number) for number in "01"]
        await publisher.publish(events, patience=timedelta(minutes=1))
        await publisher.close()

    run_virtual(scenario())

    assert [producer.is_closed for producer in FakeProducer.made] == [True, True]


class FakeSmallProducer(FakeProducer):
    """A connection whose batches have room for some small events; keeps the sizes of those sent."""

    sent_counts: list[int]

    async def new_batch(self, *, partition_id, partition_key):
        return Batch(EventDataBatch(max_size_in_bytes=200))

    async def send_batch(self, batch, shown):
        self.sent_counts.append(len(batch))


@pytest.mark.parametrize("place", [0, 2])
def test_an_event_that_no_batch_has_room_for_is_refused_wherever_it_stands(monkeypatch, place):
    """What fits is sent before it; without the error nobody would know that it is missing."""
    FakeSmallProducer.made, FakeSmallProducer.sent_counts = [], []
    monkeypatch.setattr(module, "Producer", FakeSmallProducer)
    events = [OutgoingEvent(body=b"x") for _ in range(place)]
    events += [OutgoingEvent(body=b"x" * 200), OutgoingEvent(body=b"x")]

    async def scenario():
        publisher = EventHubPublisher.from_connection_string(CONN_STR)
        with pytest.raises(EventRefusedError, match=r"too large .* at most 200") as refused:
            await publisher.publish(events, patience=timedelta(minutes=1))
        await publisher.close()
        return refused.value.index

    assert run_virtual(scenario()) == place
    assert FakeSmallProducer.sent_counts == ([place] if place else [])
