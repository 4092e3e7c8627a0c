"""Events whose body or properties cannot be decoded: an error, or left out and counted."""

from collections.abc import Iterator

import pytest
from azure.eventhub import EventHubProducerClient

from eventproc.emulator import EventHubsEmulator
from eventproc.errors import SourceRejectedError
from eventproc.sources.eventhubs._producer import Batch
from spark_integration._columns import SCHEMA
from spark_integration._source.planning import EventRange
from spark_integration._source.tasks import RangesToRead, read
from tests.integration.spark_integration.conftest import options_for

GOOD = b"\x00\x53\x75\xa0\x01x"
SURROGATE = b"\x73\x00\x00\xd8\x00"
BAD_PROPERTY = b"\x00\x53\x74\xc1\x09\x02\xa1\x01k" + SURROGATE + GOOD
BAD_BODY = b"\x00\x53\x77" + SURROGATE


@pytest.fixture(autouse=True)
def direct_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's public client drops the link at such an event, so there it cannot be passed over."""
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "direct")


@pytest.fixture(name="hub")
def _hub() -> Iterator[EventHubsEmulator]:
    with EventHubsEmulator({"orders": 2}) as emulator:
        publish(emulator, "0", *[GOOD] * 700, BAD_PROPERTY, GOOD, BAD_BODY, BAD_BODY, GOOD)
        publish(emulator, "1", *[BAD_PROPERTY] * 500)
        yield emulator


def publish(emulator: EventHubsEmulator, partition_id: str, *messages: bytes) -> None:
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string_for("orders")
    ) as producer:
        batch = Batch(producer.create_batch(partition_id=partition_id))
        assert all(map(batch.add, messages))
        producer.send_batch(batch.request)


def numbers(emulator: EventHubsEmulator, *ends: int, **options: str) -> list[list[int]]:
    """Read the partitions up to these ends in one task; return the numbers in each batch."""
    ranges = [
        EventRange(partition_id=str(partition), start=0, end=end)
        for partition, end in enumerate(ends)
    ]
    batches = read(options_for(emulator, **options), SCHEMA, RangesToRead(ranges))
    return [batch.column("sequenceNumber").to_pylist() for batch in batches]


def test_an_event_that_cannot_be_decoded_fails_the_task_and_names_the_option(hub):
    """The message has its partition and its number, too."""
    with pytest.raises(
        SourceRejectedError, match=r"partition '0'.*event 700 cannot.*skipUndecodable=true"
    ):
        numbers(hub, 702)


def test_on_request_events_that_cannot_be_decoded_are_left_out_and_counted(hub, caplog):
    """Few among many, and a whole partition; the others come in order, in few batches."""
    found = numbers(hub, 705, 500, skipUndecodable="true")
    skipped = [vars(r) for r in caplog.records if vars(r).get("event")]

    assert found == [[*range(700), 701, 704]]
    assert [
        (s["event"], s["partition_id"], s["skipped_count"], s["sequence_number"]) for s in skipped
    ] == [
        ("undecodable_events_skipped", "0", 3, 700),
        ("undecodable_events_skipped", "1", 500, 0),
    ]
