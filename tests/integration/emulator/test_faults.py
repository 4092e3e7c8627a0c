"""Faults of the emulator, set by method and over HTTP, begin and end as requested."""

import asyncio
from datetime import timedelta

import pytest

from eventproc.emulator import EventHubsEmulator, Retention
from eventproc.emulator._amqp.performatives import Attach, Detach, Disposition, Transfer
from eventproc.emulator._amqp.values import Long, Symbol
from eventproc.errors import ConfigurationError

from .control_client import ask
from .peer import connected, raw

READ = "orders/ConsumerGroups/$Default/Partitions/"
SHORT = timedelta(milliseconds=200)
LONG = timedelta(minutes=1)


@pytest.fixture
def emulator():
    """Yield an emulator for one test, with its control endpoint."""
    with EventHubsEmulator({"orders": 2}, health_port=0) as emulator:
        yield emulator


async def ask_in_thread(emulator, path, given):
    """Send a request to the control endpoint without blocking the event loop."""
    return await asyncio.to_thread(ask, emulator, path, given)


async def epoch_receiver(peer, epoch, handle=1, group="$Default"):
    """Attach a receiver of partition 0 with an epoch, or without one."""
    properties = {} if epoch is None else {Symbol("com.microsoft:epoch"): Long(epoch)}
    address = f"orders/ConsumerGroups/{group}/Partitions/0"
    return await peer.receive_from(address, handle, credit=10, properties=properties)


async def test_a_receiver_with_the_same_epoch_steals_the_link(emulator):
    """Azure's processors all use epoch 0 and rely on it."""
    async with connected(emulator.port) as old, connected(emulator.port) as new:
        await epoch_receiver(old, 0)
        attach = await epoch_receiver(new, 0)
        detach, _ = await old.next(Detach)

        assert attach.source is not None
        assert detach.error.condition == "amqp:link:stolen"
        assert "New receiver 'nil' with higher epoch of '0'" in detach.error.description
        assert emulator.receiver_count("orders", "0") == 1


async def test_a_receiver_with_a_lower_or_no_epoch_is_refused(emulator):
    """The receiver with the higher epoch is not affected."""
    async with connected(emulator.port) as peer:
        await epoch_receiver(peer, 5, 1)
        lower = await peer.refusal(epoch_receiver(peer, 4, 2))
        missing = await peer.refusal(epoch_receiver(peer, None, 3))

        assert lower.condition == missing.condition == "amqp:link:stolen"
        assert "with a higher epoch '5' already exists" in lower.description
        assert "non-epoch receiver is not allowed" in missing.description
        assert emulator.receiver_count("orders", "0") == 1


async def test_a_partition_has_at_most_five_receivers_without_epoch(emulator):
    """The sixth is refused with the limit; when one is detached, another may attach."""
    async with connected(emulator.port) as peer:
        for handle in range(5):
            await epoch_receiver(peer, None, handle)
        refusal = await peer.refusal(epoch_receiver(peer, None, 5))

        assert refusal.condition == "amqp:resource-limit-exceeded"
        assert "which is 5. List of connected receivers - nil, nil, nil" in refusal.description

        peer.write(Detach(0, closed=True))
        await peer.next(Detach)

        assert (await epoch_receiver(peer, None, 6)).source is not None


async def test_a_receiver_whose_connection_is_dropped_is_detached(emulator):
    """A receiver with a lower epoch may then attach."""
    async with connected(emulator.port) as peer:
        await epoch_receiver(peer, 5)
        dropped = emulator.drop_connections("orders", "0")

        assert dropped == 1
        assert await peer.has_ended()
    async with connected(emulator.port) as peer:
        assert (await epoch_receiver(peer, 0)).source is not None


async def test_drop_connections_drops_those_of_a_partition_or_all(emulator):
    """With a partition, connections of others stay open; without one, all are dropped."""
    async with connected(emulator.port) as first, connected(emulator.port) as second:
        await first.receive_from(READ + "0")
        await second.send_to("orders/Partitions/1")

        assert emulator.drop_connections("orders", "1") == 1
        assert await second.has_ended()
        assert await first.is_silent_for(0.05)
        assert emulator.drop_connections() == 1
        assert await first.has_ended()


async def test_displace_receivers_detaches_receivers_as_stolen(emulator):
    """The links are detached with ``amqp:link:stolen``, although no other receiver attached."""
    async with connected(emulator.port) as peer:
        await epoch_receiver(peer, 0)
        _, answer = await ask_in_thread(emulator, "/faults/displace-receivers", {"hub": "orders"})
        detach, _ = await peer.next(Detach)

        assert answer == {"displaced": 1}
        assert detach.error.condition == "amqp:link:stolen"


async def test_delay_deliveries_delays_the_named_partition_only(emulator):
    """Events of another partition are delivered before the delayed ones."""
    async with connected(emulator.port) as peer:
        await ask_in_thread(
            emulator,
            "/faults/delay-deliveries",
            {"delay_s": 1, "hub": "ORDERS", "partition_id": "0"},
        )
        await peer.receive_from(READ + "0", 1, credit=10)
        await peer.receive_from(READ + "1", 2, credit=10)
        for index in (0, 1):
            await peer.send_to(f"orders/Partitions/{index}", 3 + index)
            peer.transfer(b"x", index, 3 + index)
        handles = [(await peer.next(Transfer))[0].handle for _ in range(2)]

        assert handles == [2, 1]


async def test_clear_faults_ends_a_delay(emulator):
    """An event that waits is delivered at once."""
    async with connected(emulator.port) as peer:
        emulator.delay_deliveries(LONG)
        await peer.receive_from(READ + "0", 1, credit=10)
        await peer.send_to("orders/Partitions/0")
        peer.transfer(b"x")
        await peer.next(Disposition)

        assert await peer.is_silent_for(0.05)

        emulator.clear_faults()

        await peer.next(Transfer)


async def test_refuse_connections_refuses_new_connections_only(emulator):
    """Open connections stay; after the fault is cleared, new ones are accepted."""
    async with connected(emulator.port) as old:
        emulator.refuse_connections(LONG)
        with pytest.raises((OSError, AssertionError)):
            async with connected(emulator.port):
                pass

        await old.send_to("orders")

        emulator.clear_faults()
        async with connected(emulator.port) as new:
            await new.send_to("orders")


async def test_refuse_links_refuses_new_links_as_server_busy(emulator):
    """After the fault is cleared, a link can be attached."""
    async with connected(emulator.port) as peer:
        emulator.refuse_links(LONG)
        refusal = await peer.refusal(peer.receive_from(READ + "0"))
        emulator.clear_faults()

        assert refusal.condition == "com.microsoft:server-busy"
        assert (await peer.receive_from(READ + "0", 2)).source is not None


async def test_be_busy_rejects_events_as_server_busy(emulator):
    """A rejected event is not stored; after the fault is cleared, events are accepted."""
    async with connected(emulator.port) as peer:
        await peer.send_to("orders")
        emulator.be_busy(LONG)
        peer.transfer(b"x", 0)
        rejected, _ = await peer.next(Disposition)
        emulator.clear_faults()
        peer.transfer(b"x", 1)
        accepted, _ = await peer.next(Disposition)

        assert rejected.state.value[0].value[0] == "com.microsoft:server-busy"
        assert accepted.state.descriptor == 0x24
        assert sum(len(emulator.events("orders", each)) for each in "01") == 1


async def test_fall_silent_holds_answers_back(emulator):
    """The connection stays open, and afterwards all answers come in order."""
    async with connected(emulator.port) as peer:
        await peer.send_to("orders/Partitions/0")
        emulator.fall_silent(LONG)
        for index in range(3):
            peer.transfer(b"x", index)

        assert await peer.is_silent_for(0.1)

        emulator.clear_faults()
        firsts = [(await peer.next(Disposition))[0].first for _ in range(3)]

        assert firsts == [0, 1, 2]


async def test_stop_and_start_keep_the_port_and_the_events(emulator):
    """``stop`` ends all connections and the health check fails; ``start`` restores everything."""
    async with connected(emulator.port) as peer:
        await peer.send_to("orders/Partitions/0")
        peer.transfer(b"before", 0)
        await peer.next(Disposition)
        port = emulator.port
        await asyncio.to_thread(emulator.stop)

        assert await peer.has_ended()
        assert (await asyncio.to_thread(ask, emulator, "/health"))[0] == 503
        with pytest.raises(OSError, match=r".+"):
            async with raw(port):
                pass

    await asyncio.to_thread(emulator.start)
    async with connected(port) as peer:
        await peer.receive_from(READ + "0", credit=1)
        _, payload = await peer.next(Transfer)

        assert payload.endswith(b"before")


async def test_add_partitions_adds_partitions_to_a_running_hub(emulator):
    """The new partitions are listed and can be read at once."""
    _, answer = await ask_in_thread(
        emulator, "/faults/add-partitions", {"hub": "orders", "count": 2}
    )
    async with connected(emulator.port) as peer:
        attach = await peer.receive_from(READ + "3")

        assert answer == {"partition_ids": ["0", "1", "2", "3"]}
        assert emulator.partition_ids("orders") == ["0", "1", "2", "3"]
        assert attach.source is not None


@pytest.mark.parametrize("is_kept", [False, True], ids=["in memory", "on disk"])
async def test_a_hub_that_is_created_again_is_empty_and_younger(is_kept, tmp_path):
    """Its receivers are refused, its numbers begin at 0, and on disk nothing of it is left."""
    directory = tmp_path if is_kept else None
    with EventHubsEmulator({"orders": 1}, directory=directory, health_port=0) as emulator:
        async with connected(emulator.port) as peer:
            await peer.send_to("orders")
            peer.transfer(b"old")
            await peer.next(Disposition)
            await peer.receive_from(READ + "0")
            await ask_in_thread(emulator, "/faults/recreate-hub", {"hub": "orders"})
            detach, _ = await peer.next(Detach)
        left = emulator.events("orders", "0")
    with EventHubsEmulator({"orders": 1}, directory=directory) as emulator:
        async with connected(emulator.port) as peer:
            await peer.send_to("orders")
            peer.transfer(b"new")
            await peer.next(Disposition)

        found = emulator.events("orders", "0")

    assert detach.error.condition == "amqp:not-found"
    assert left == []
    assert [(event.sequence_number, event.body) for event in found] == [(0, b"new")]


async def test_events_expire_by_number_and_on_request():
    """The oldest are deleted, and sequence numbers stay."""
    with EventHubsEmulator({"orders": 1}, retention=Retention(events_max=5)) as emulator:
        async with connected(emulator.port) as peer:
            await peer.send_to("orders")
            for index in range(8):
                peer.transfer(b"%d" % index, index)
                await peer.next(Disposition)
        kept = [event.sequence_number for event in emulator.events("orders", "0")]
        dropped = emulator.expire_before("orders", "0", 6)

        assert kept == [3, 4, 5, 6, 7]
        assert dropped == 3
        assert [event.body for event in emulator.events("orders", "0")] == [b"6", b"7"]


async def test_events_expire_by_age():
    """Events above the maximum age are deleted, although no other event is sent."""
    with EventHubsEmulator({"orders": 1}, retention=Retention(age_max=SHORT)) as emulator:
        async with connected(emulator.port) as peer:
            await peer.send_to("orders")
            peer.transfer(b"x")
            await peer.next(Disposition)
            async with asyncio.timeout(30):
                while emulator.events("orders", "0"):
                    await peer.is_silent_for(0.02)

        assert emulator.events("orders", "0") == []


def test_a_port_in_use_is_an_error_that_names_the_remedy(emulator):
    """The message suggests port 0, and no thread is left."""
    with (
        pytest.raises(ConfigurationError, match=r"Port 0 \(`--port 0`\) takes any free port"),
        EventHubsEmulator({"orders": 1}, port=emulator.port),
    ):
        pass


def test_an_unknown_hub_or_partition_is_a_key_error(emulator):
    """A typo in a test raises ``KeyError`` with the name, instead of returning no events."""
    with pytest.raises(KeyError, match="nobody"):
        emulator.events("nobody", "0")
    with pytest.raises(KeyError, match="9"):
        emulator.events("orders", "9")


def test_the_address_of_an_emulator_that_is_not_open_is_an_error():
    """The ``RuntimeError`` says to use a ``with`` statement."""
    with pytest.raises(RuntimeError, match="with statement"):
        _ = EventHubsEmulator({"orders": 1}).connection_string


async def test_the_handle_of_a_refused_link_can_be_used_again(emulator):
    """A second attach with the same handle succeeds."""
    async with connected(emulator.port) as peer:
        await peer.refusal(peer.receive_from("nowhere", 1))
        attach = await peer.receive_from(READ + "0", 1)

        assert isinstance(attach, Attach)
        assert attach.source is not None
