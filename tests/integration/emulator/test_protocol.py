"""AMQP that Azure's clients do not exercise: windows, drains, protocol errors, silence."""

import asyncio
import socket
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventproc.emulator import EmulatorConfiguration, EmulatorServer, hubs_of
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.framing import (
    AMQP_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    Frame,
    ProtocolHeader,
    encode_frame,
)
from eventproc.emulator._amqp.message import BATCH_FORMAT, read_message
from eventproc.emulator._amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from eventproc.emulator._amqp.values import Described, Symbol, ULong

from .peer import connected, message, raw

READ = "/ConsumerGroups/$Default/Partitions/0"


async def fill(peer, hub, *bodies):
    """Publish to partition 0, and wait until all events are stored."""
    await peer.send_to(f"{hub}/Partitions/0")
    for index, body in enumerate(bodies):
        peer.transfer(body, index)
        await peer.next(Disposition)


async def bodies_of(peer, count):
    """Return the data of the next deliveries, joined from their frames."""
    found = []
    for _ in range(count):
        parts = []
        more = True
        while more:
            transfer, payload = await peer.next(Transfer)
            parts.append(payload)
            more = transfer.more
        found.append(b"".join(read_message(b"".join(parts)).data))
    return found


async def test_deliveries_stop_when_the_session_window_is_used_up(shared_emulator, hub):
    """A message of many frames stops in its middle, and continues when the window is renewed."""
    large = bytes(range(256)) * 12
    async with connected(shared_emulator.port, frame_size_max=512, window=3) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        peer.write(Transfer(0, 0, b"0", 0), payload=message(large))
        await peer.next(Disposition)
        await peer.receive_from(hub + READ)
        peer.write(Flow(0, 3, 0, 1000, 1, 0, 10))
        first = [await peer.next(Transfer) for _ in range(3)]

        assert await peer.is_silent_for(0.1)

        peer.write(Flow(3, 100, 0, 1000))
        rest = [await peer.next(Transfer) for _ in range(4)]

        whole = b"".join(payload for _, payload in first + rest)
        assert read_message(whole).data == [large]
        assert [transfer.more for transfer, _ in first + rest] == [True] * 6 + [False]
        assert {transfer.delivery_id for transfer, _ in first + rest} == {0}


async def test_drain_delivers_what_there_is_and_uses_up_the_credit(shared_emulator, hub):
    """The flow that answers has no credit left."""
    async with connected(shared_emulator.port) as peer:
        await fill(peer, hub, b"0", b"1")
        await peer.receive_from(hub + READ)
        peer.write(Flow(0, 1000, 0, 1000, 1, 0, 10, drain=True))

        assert await bodies_of(peer, 2) == [b"0", b"1"]
        flow, _ = await peer.next(Flow)
        assert (flow.link_credit, flow.delivery_count, flow.drain) == (0, 10, True)


async def test_a_flow_with_echo_is_answered(shared_emulator, hub):
    """The emulator answers with a flow of the link, or of the session if no link is named."""
    async with connected(shared_emulator.port) as peer:
        await peer.receive_from(hub + READ, credit=7)
        peer.write(Flow(0, 1000, 0, 1000, 1, 0, 7, echo=True))
        flow, _ = await peer.next(Flow)

        assert (flow.handle, flow.link_credit) == (1, 7)

        peer.write(Flow(0, 1000, 0, 1000, echo=True))
        flow, _ = await peer.next(Flow)

        assert flow.handle is None


async def test_a_sender_gets_new_credit_while_it_sends(shared_emulator, hub):
    """A client can send many times its first credit without a pause."""
    async with connected(shared_emulator.port) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        for index in range(5000):
            peer.transfer(b"x", index, settled=True)
        peer.transfer(b"last", 5000)
        granted = [0]
        while not isinstance(performative := (await peer.frame())[0], Disposition):
            assert isinstance(performative, Flow)
            granted.append((performative.delivery_count or 0) + (performative.link_credit or 0))

        assert performative.first == 5000
        assert granted == sorted(granted)
        assert max(granted) > 5001
        assert len(shared_emulator.events(hub, "0")) == 5001


async def test_the_session_window_is_renewed_within_a_large_message(shared_emulator, hub):
    """A message of more frames than the window can be sent."""
    async with connected(shared_emulator.port) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        for index in range(6000):
            peer.write(Transfer(0, 0, b"0", 0, more=True), payload=message(b"x"))
            if index % 1000 == 0:
                await peer.writer.drain()
        flow, _ = await peer.next(Flow)
        assert flow.handle is None
        assert (flow.next_incoming_id or 0) + flow.incoming_window > 5000


async def test_an_aborted_delivery_is_dropped(shared_emulator, hub):
    """Its parts are not stored; the next delivery is."""
    async with connected(shared_emulator.port) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        peer.write(Transfer(0, 0, b"0", 0, more=True), payload=message(b"aborted"))
        peer.write(Transfer(0, aborted=True))
        peer.transfer(b"whole", 1)
        disposition, _ = await peer.next(Disposition)

        assert disposition.first == 1
        assert [event.body for event in shared_emulator.events(hub, "0")] == [b"whole"]


async def test_a_message_above_the_size_limit_is_rejected(shared_emulator, hub):
    """The service's condition is returned, and the link accepts the next message."""
    async with connected(shared_emulator.port) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        for index in range(18):
            peer.write(Transfer(0, 0, b"0", 0, more=index < 17), payload=bytes(60_000))
        disposition, _ = await peer.next(Disposition)

        rejected = disposition.state
        assert rejected.value[0].value[0] == "amqp:link:message-size-exceeded"
        assert "exceeds the limit (1048576 bytes)" in rejected.value[0].value[1]

        peer.transfer(b"small", 1)
        disposition, _ = await peer.next(Disposition)

        assert disposition.state.descriptor == 0x24


async def test_a_malformed_message_is_rejected(shared_emulator, hub):
    """If it is in a batch, nothing of the batch is stored."""
    good = encode(Described(ULong(0x75), message(b"good")))
    bad = encode(Described(ULong(0x75), b"bad"))
    async with connected(shared_emulator.port) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        peer.write(Transfer(0, 0, b"0", BATCH_FORMAT), payload=good + bad)
        disposition, _ = await peer.next(Disposition)

        assert disposition.state.value[0].value[0] == "amqp:decode-error"
        assert shared_emulator.events(hub, "0") == []


async def test_deliveries_are_unsettled_only_on_request(shared_emulator, hub):
    """A link without ``snd-settle-mode`` unsettled gets settled deliveries."""
    async with connected(shared_emulator.port) as peer:
        await fill(peer, hub, b"0")
        await peer.receive_from(hub + READ, 1, credit=1, snd_settle_mode=0)
        unsettled, _ = await peer.next(Transfer)
        await peer.receive_from(hub + READ, 2, credit=1)
        settled, _ = await peer.next(Transfer)

        assert (unsettled.settled, settled.settled) == (False, True)


async def test_transfers_on_a_refused_link_are_dropped(shared_emulator):
    """Transfers sent before the refusal arrived are dropped; the connection stays open."""
    async with connected(shared_emulator.port) as peer:
        peer.write(Attach("late", 0, role=False, source=Source("x"), target=Target("nowhere")))
        peer.transfer(b"x")
        peer.write(Flow(0, 1000, 0, 1000, 0, 0, 10))
        detach, _ = await peer.next(Detach)

        assert detach.error.condition == "amqp:not-found"

        peer.write(Detach(0, closed=True), End())

        await peer.next(End)


async def test_a_client_may_confirm_that_the_emulator_ended_a_link(shared_emulator, hub):
    """What it sent before it knew is dropped, and its other links stay."""
    async with connected(shared_emulator.port) as peer:
        await fill(peer, hub, b"0")
        await peer.receive_from(hub + READ, 1)
        await asyncio.to_thread(shared_emulator.displace_receivers, hub, "0")
        detach, _ = await peer.next(Detach)

        assert (detach.handle, detach.error.condition) == (1, "amqp:link:stolen")

        peer.write(Flow(0, 1000, 0, 1000, 1, 0, 10), Detach(1, closed=True))
        peer.transfer(b"1", 1)
        await peer.next(Disposition)
        await peer.receive_from(hub + READ, 1, credit=2)

        assert await bodies_of(peer, 2) == [b"0", b"1"]


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("no-such-hub" + READ, "amqp:not-found"),
        ("{hub}/ConsumerGroups/nobody/Partitions/0", "amqp:not-found"),
        ("{hub}/ConsumerGroups/$Default/Partitions/4", "com.microsoft:argument-out-of-range"),
        ("{hub}/ConsumerGroups/$Default/Partitions/00", "com.microsoft:argument-out-of-range"),
        ("{hub}/ConsumerGroups/$Default/Partitions/-1", "com.microsoft:argument-out-of-range"),
        ("{hub}", "amqp:not-allowed"),
        ("", "amqp:not-found"),
    ],
)
async def test_receivers_of_unknown_addresses_are_refused_with_the_services_conditions(
    shared_emulator, hub, address, condition
):
    """Azure's clients choose their exceptions by these conditions."""
    async with connected(shared_emulator.port) as peer:
        error = await peer.refusal(peer.receive_from(address.format(hub=hub)))

        assert error.condition == condition


@pytest.mark.parametrize(
    "broken",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        AMQP_HEADER + b"\x00\x00\x00\x04\x02\x00\x00\x00",  # a frame smaller than its head
        AMQP_HEADER + b"\xff\xff\xff\xff\x02\x00\x00\x00",  # a frame of four gigabytes
        AMQP_HEADER + encode_frame(b"\x00\x53\x99\x45"),  # an unknown performative
        AMQP_HEADER + encode_frame(Begin(None, 0, 1, 1).described()),  # begin before open
        AMQP_HEADER + encode_frame(b"x", kind=SASL_FRAME),
        encode_frame(Open("x").described()),  # a frame before any header
        SASL_HEADER + encode_frame(b"\x00\x53\x41\x45", kind=SASL_FRAME),  # an init without fields
        AMQP_HEADER + encode_frame(Open("x", None, 100).described()),  # frames of 100 bytes
        b"AMQP\x02\x01\x00\x00",  # TLS inside AMQP
    ],
)
async def test_a_protocol_error_ends_only_its_own_connection(shared_emulator, hub, broken):
    """The emulator closes the connection that broke the protocol; another one continues to work."""
    async with connected(shared_emulator.port) as other, raw(shared_emulator.port) as peer:
        peer.writer.write(broken)

        assert await peer.has_ended()

        await fill(other, hub, b"still here")


async def broken_session(port, *performatives):
    """Send performatives in a session; return the error with which the connection is closed."""
    async with connected(port) as peer:
        peer.write(*performatives)
        close, _ = await peer.next(Close)
        assert await peer.has_ended()
        return close.error.condition


@pytest.mark.parametrize(
    "performative",
    [
        Transfer(9, 0, b"0"),
        Flow(0, 1, 0, 1, 9),
        Detach(9),
        Begin(None, 0, 1, 1),  # on a channel that has a session
        Open("again"),
        Attach("x", 300, role=True),  # a handle above the limit
    ],
    ids=lambda performative: type(performative).__name__,
)
async def test_an_invalid_performative_closes_the_connection_with_an_error(
    shared_emulator, performative
):
    """The close frame has the condition ``amqp:decode-error``."""
    assert await broken_session(shared_emulator.port, performative) == "amqp:decode-error"


@settings(max_examples=60)
@given(pieces=st.lists(st.binary(max_size=60), max_size=6), prefix=st.integers(0, 3))
def test_arbitrary_bytes_do_not_stop_the_server(shared_emulator, pieces, prefix):
    """After arbitrary bytes at any stage of a connection, the next connection is answered."""
    stages = (
        b"",
        AMQP_HEADER,
        AMQP_HEADER + encode_frame(Open("x").described()),
        AMQP_HEADER
        + encode_frame(Open("x").described())
        + encode_frame(Begin(None, 0, 10, 10).described())
        + encode_frame(
            Attach("x", 0, role=False, source=Source("x"), target=Target("hub-99")).described()
        ),
    )
    with socket.create_connection(("127.0.0.1", shared_emulator.port), timeout=30) as peer:
        peer.sendall(stages[prefix])
        for piece in pieces:
            try:
                peer.sendall(encode_frame(piece) if prefix % 2 else piece)
            except OSError:
                break
    with socket.create_connection(("127.0.0.1", shared_emulator.port), timeout=30) as peer:
        peer.sendall(AMQP_HEADER)

        assert peer.recv(8) == AMQP_HEADER


async def test_every_sasl_mechanism_of_the_service_is_accepted(shared_emulator):
    """No credential is checked; an unknown mechanism ends the connection."""
    for mechanism in ("ANONYMOUS", "PLAIN", "EXTERNAL", "MSSBCBS", "SCRAM-SHA-256"):
        async with raw(shared_emulator.port) as peer:
            peer.writer.write(SASL_HEADER)
            assert await peer.item() == ProtocolHeader(SASL_HEADER)
            offered = await peer.item()
            init = encode(Described(ULong(0x41), [Symbol(mechanism), b"x", None]))
            peer.writer.write(encode_frame(init, kind=SASL_FRAME))
            outcome = await peer.item()

            assert b"MSSBCBS" in offered.body
            assert isinstance(outcome, Frame)
            if mechanism.startswith("SCRAM"):
                assert await peer.has_ended()
                continue
            peer.writer.write(AMQP_HEADER)
            assert await peer.item() == ProtocolHeader(AMQP_HEADER)


async def test_heartbeats_are_sent_and_required(tmp_path):
    """The server sends them as the peer asks, and closes a connection on which it gets none."""
    configuration = EmulatorConfiguration(
        hubs=hubs_of({"orders": 1}), port=0, idle_timeout=timedelta(milliseconds=300)
    )
    async with (
        EmulatorServer(configuration) as server,
        connected(server.port, idle_time_out=100) as peer,
    ):
        beats, last = 0, Frame(0, 0, b"")
        while (item := await peer.item()) is not None:
            if isinstance(item, Frame) and not item.body:
                beats += 1
                continue
            assert isinstance(item, Frame)
            last = item

        assert beats >= 2
        assert b"amqp:connection:forced" in last.body


async def test_a_slow_reader_does_not_make_the_connection_buffer_events(shared_emulator, hub):
    """Ten megabytes stay in the log until the client reads."""
    async with connected(shared_emulator.port, window=2**31) as peer:
        await peer.send_to(f"{hub}/Partitions/0")
        for index in range(200):
            peer.transfer(bytes(50_000), index, settled=True)
        peer.transfer(b"", 200)
        await peer.next(Disposition)
        await peer.receive_from(hub + READ)
        peer.write(Flow(0, 2**31, 0, 1000, 1, 0, 10_000))

        assert sum(map(len, await bodies_of(peer, 200))) == 200 * 50_000
