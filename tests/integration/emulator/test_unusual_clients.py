"""Clients that send unusual targets, or never open their connection."""

from eventproc.emulator import EmulatorConfiguration, EmulatorServer, hubs_of
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.framing import SASL_HEADER, encode_frame
from eventproc.emulator._amqp.performatives import Attach, Close, Source, Target
from eventproc.emulator._amqp.values import Char, Described, Symbol, ULong
from eventproc.emulator._links import connection as connection_module

from .peer import connected, raw

READ = "/ConsumerGroups/$Default/Partitions/0"


async def test_a_receiver_whose_target_is_no_target_is_attached(shared_emulator, hub):
    """The target is the client's own, such as a coordinator; it is returned as it came."""
    coordinator = Described(ULong(0x30), [Symbol("amqp:local-transactions")])
    async with connected(shared_emulator.port) as peer:
        peer.write(Attach("x", 1, role=True, source=Source(f"{hub}{READ}"), target=coordinator))
        attach, _ = await peer.next(Attach)

    assert attach.target == coordinator


async def test_a_target_that_is_half_a_character_is_malformed(shared_emulator):
    """It would come back in the refusal, and cannot be encoded."""
    body = Attach("x", 1, role=False, target=Target(Char("\U0001f600"))).described()
    half = body.replace(encode(Char("\U0001f600")), b"\x73\x00\x00\xd8\x3d")
    async with connected(shared_emulator.port) as peer:
        peer.writer.write(encode_frame(half))
        close, _ = await peer.next(Close)

    assert close.error.condition == "amqp:decode-error"


async def test_a_connection_that_is_never_opened_is_closed(monkeypatch):
    """Silent, or with a beginning that goes on and on; one that is open stays."""
    monkeypatch.setattr(connection_module, "OPEN_S", 0.2)
    configuration = EmulatorConfiguration(hubs=hubs_of({"orders": 1}), port=0)
    async with (
        EmulatorServer(configuration) as server,
        connected(server.port) as opened,
        raw(server.port) as silent,
        raw(server.port) as begun,
    ):
        begun.writer.write(SASL_HEADER)

        assert await silent.has_ended()
        assert await begun.has_ended()
        await opened.send_to("orders")
