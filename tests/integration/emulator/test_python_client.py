"""Azure's own ``azure-eventhub`` over time; ``test_assumptions.py`` has single requests."""

from contextlib import contextmanager

import pytest
from azure.eventhub import EventData
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore

from eventproc.emulator import EventHubsEmulator

from .azure_clients import TIMEOUT_S, Reading, consumer_of, producer_of

# After a connection is lost Azure's client leaves its socket to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def test_batches_without_a_key_go_to_each_partition_in_turn(shared_emulator, hub):
    """So that every partition of a new hub soon has events."""
    with producer_of(shared_emulator, hub) as producer:
        for _ in range(8):
            producer.send_batch([EventData(b"x")])
    ids = shared_emulator.partition_ids(hub)

    assert [len(shared_emulator.events(hub, each)) for each in ids] == [2, 2, 2, 2]


def test_the_buffered_producer_sends_all_events(shared_emulator, hub):
    """The producer chooses partitions itself, by the same hash as the service."""
    sent, failed = [], []
    producer = producer_of(
        shared_emulator,
        hub,
        buffered_mode=True,
        max_wait_time=0.05,
        on_success=lambda events, _: sent.extend(events),
        on_error=lambda _, __, error: failed.append(error),
    )
    with producer:
        for index in range(100):
            producer.send_event(EventData(str(index)), partition_key=f"key {index % 10}")
        producer.flush()
    kept = [
        event
        for each in shared_emulator.partition_ids(hub)
        for event in shared_emulator.events(hub, each)
    ]

    assert failed == []
    assert len(sent) == len(kept) == 100


def test_two_processors_of_azures_client_share_the_partitions(shared_emulator, hub):
    """The second one takes over partitions with the same owner level."""
    store = InMemoryCheckpointStore()
    options = {"checkpoint_store": store, "load_balancing_interval": 0.3}
    with producer_of(shared_emulator, hub) as producer:
        batch = [EventData(b"x")]
        for partition_id in "0123":
            producer.send_batch(batch, partition_id=partition_id)
        first = Reading(consumer_of(shared_emulator, hub, **options), 4)
        with first:
            assert first.has_enough.wait(TIMEOUT_S)
            second = Reading(consumer_of(shared_emulator, hub, **options), 2)
            with second:
                assert second.has_enough.wait(TIMEOUT_S)
                owners = {each["owner_id"] for each in store.list_ownership(*_names(store, hub))}

    assert len(owners) == 2
    assert set(first.bodies) == set("0123")
    assert ("OWNERSHIP_LOST") in {reason for _, reason in first.closed}


def _names(store, hub):
    """Return the namespace, hub and group under which a store has the ownerships of a hub."""
    return ("127.0.0.1", hub, "$Default") if store else ()


@contextmanager
def an_outage(emulator):
    """Stop the emulator inside the block."""
    emulator.stop()
    try:
        yield
    finally:
        emulator.start()


def test_clients_recover_after_an_outage():
    """A consumer continues at its position, and a producer sends again."""
    with (
        EventHubsEmulator({"orders": 1}) as emulator,
        producer_of(emulator, "orders", retry_backoff_factor=0.05) as producer,
        Reading(consumer_of(emulator, "orders", retry_backoff_factor=0.05), 2) as reading,
    ):
        producer.send_event(EventData(b"before"))
        with an_outage(emulator):
            pass
        producer.send_event(EventData(b"after"))
        assert reading.has_enough.wait(TIMEOUT_S), reading.errors

    assert sorted(set(reading.bodies["0"])) == ["after", "before"]
