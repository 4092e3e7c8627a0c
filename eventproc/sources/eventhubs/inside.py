# ruff: noqa: SLF001 - this is the one file that drives Azure's client from within
"""All that we use of Azure's client without its having been promised.

Its public receive methods sleep 50 ms between reads, ask the service for the partition ids before
each start and take a second to stop; its decoding costs 20 us and more for each event. So a link is
opened by the client (address, credential, token, TLS, proxy: all genuine) and then *read* by us:
without its sleeps, its keep-alive task, its buffer or its decoder. ``docs/decisions/`` has the
figures and the price: some forty private names. Each is looked for where it is first needed, and
where one is missing the source goes the promised way (``promised.py``) instead.

Rule: whatever Azure raises leaves this file as one of ``eventproc.errors``.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, Final, cast

from azure.eventhub import __version__

from eventproc.errors import SourceError, SourceUnavailableError
from eventproc.models import EventPosition, PartitionProperties
from eventproc.sources.eventhubs.event import to_time
from eventproc.sources.eventhubs.frames import Cut, FrameCutter
from eventproc.sources.eventhubs.refusal import (
    UnexpectedShapeError,
    as_text,
    error_for,
    translated,
)
from eventproc.sources.eventhubs.vendor import Client, start_of

TRIED_RELEASES: Final = ("5.15.",)

LOOK_AFTER_EVERY_S: Final = 1.0
"""Tokens are renewed minutes, and heartbeats sent half a minute before they are due."""

BYTES_AT_ONCE: Final = 256 * 1024

_SERIAL: Final = 0xFFFFFFFF
"""AMQP counts deliveries in 32 bits, and then from nought again."""

_CLOSE_MAX_S: Final = 0.5
"""What a goodbye may take; the service needs none."""

_FIRST_STATUS_OF_REFUSAL: Final = 400


class Conversation:
    """One of Azure's AMQP clients on a connection of its own, opened and closed without sleeps."""

    def __init__(self, what: str, handler: Any) -> None:  # noqa: ANN401 - a private class of Azure's
        self.what = what
        self.handler = handler
        self._refusal: SourceError | None = None

    async def open(self) -> None:
        """Connect, sign in and attach.

        Raises:
            SourceUnavailableError: the service does not answer, or not now.
            SourceRejectedError: it refuses for good.
        """
        handler = self.handler
        _expect(handler, "open_async", "client_ready_async", "close_async", "_keep_alive_interval")
        _expect(handler, "_cbs_authenticator", "_connection", "_session")
        # The keep-alive task would read from the same connection as we do, out of turn, and make
        # every close wait for a second. ``listen`` sends the heartbeats that are due.
        handler._keep_alive_interval = None
        try:
            with translated(self.what):
                await handler.open_async()
                self._overhear_refusal()
                while not await handler.client_ready_async():
                    pass  # each call reads one frame, or waits for it
                _expect(handler._connection, "listen", "close", "_transport")
        except SourceError as error:
            await self.close()
            raise (self._refusal or error) from error.__cause__
        except BaseException:
            await self.close()
            raise

    def _overhear_refusal(self) -> None:
        """Keep what the service says when it does not take the token; the client forgets it."""
        authenticator = self.handler._cbs_authenticator
        _expect(authenticator, "_on_execute_operation_complete")
        completed = authenticator._on_execute_operation_complete

        async def overheard(
            result: object, status: int, text: object, message: object, condition: object = None
        ) -> None:
            if condition is not None:
                self._refusal = error_for(
                    f"{self.what}: the service does not take the credential",
                    as_text(text) or as_text(condition),
                    condition=as_text(condition),
                    status=status,
                )
            await completed(result, status, text, message, condition)

        authenticator._on_execute_operation_complete = overheard

    async def close(self) -> None:
        """Say goodbye and disconnect, without waiting for the other side.

        Never raises, and again does no harm.
        """
        connection = self.handler._connection
        if connection is None:
            return
        with translated(self.what, is_silent=True):
            async with asyncio.timeout(_CLOSE_MAX_S):
                await self.handler.close_async()
        # A connection that is half open or broken is left behind by that.
        transport = connection._transport
        with translated(self.what, is_silent=True):
            async with asyncio.timeout(_CLOSE_MAX_S):
                await transport.close()
        with translated(self.what, is_silent=True):
            if getattr(transport, "session", None) is not None:  # of a websocket
                await transport.session.close()
            elif transport.writer is not None:  # the other side takes nothing, not even a goodbye
                transport.writer.transport.abort()


class PartitionLink:
    """One AMQP link to one partition, driven by hand. One caller at a time.

    It asks the service for nothing until ``grant`` says how many events there is room for.
    What comes is read in large pieces. Events are cut out of them and passed on undecoded; every
    other frame is given to the client, which then finds it as if it had read it itself.
    """

    def __init__(
        self, conversation: Conversation, on_payloads: Callable[[Sequence[bytes]], None]
    ) -> None:
        """Take over a conversation whose link is attached."""
        self._conversation = conversation
        self._on_payloads = on_payloads
        handler = conversation.handler
        self._authenticator = handler._cbs_authenticator
        self._connection = connection = handler._connection
        self._link = link = handler._link
        self._session = session = handler._session
        self._transport = transport = connection._transport
        _expect(self._authenticator, "handle_token")
        _expect(connection, "_error", "_incoming_endpoints", "_last_frame_received_time")
        _expect(connection, "_read_frame", "listen", "state")
        _expect(link, "current_link_credit", "delivery_count", "flow", "get_state", "remote_handle")
        _expect(session, "incoming_window", "next_incoming_id", "remote_outgoing_window")
        _expect(session, "target_incoming_window", "_outgoing_flow")
        _expect(transport, "_read_buffer", "reader" if hasattr(transport, "reader") else "sock")
        (channel,) = (
            channel for channel, known in connection._incoming_endpoints.items() if known is session
        )
        self._cutter = FrameCutter(channel, link.remote_handle)
        self._looked_after_at = 0.0

    @classmethod
    async def open(
        cls,
        client: Client,
        group: str,
        partition_id: str,
        position: EventPosition,
        on_payloads: Callable[[Sequence[bytes]], None],
        *,
        owner_level: int | None,
    ) -> "PartitionLink":
        """Connect and attach at the position, displacing other receivers if it has an owner level.

        Raises:
            SourceUnavailableError: the service does not answer, or not now.
            SourceRejectedError: it refuses for good.
            UnexpectedShapeError: the client is not what this file knows.
        """
        what = f"opening a receiver for partition {partition_id!r} of consumer group {group!r}"
        with translated(what):
            consumer: Any = client._create_consumer(
                group,
                partition_id,
                start_of(position),
                _unused,
                owner_level=owner_level,
                event_position_inclusive=position.is_inclusive,
                track_last_enqueued_event_properties=True,
            )
            consumer._create_handler(await client._create_auth_async(auth_uri=client._auth_uri))
        conversation = Conversation(what, consumer._handler)
        await conversation.open()
        conversation.what = f"receiving from partition {partition_id!r} of consumer group {group!r}"
        try:
            return cls(conversation, on_payloads)
        except BaseException:
            await conversation.close()
            raise

    @property
    def credit(self) -> int:
        """How many events the service may still send."""
        return int(self._link.current_link_credit)

    async def grant(self, credit: int) -> None:
        """Allow the service to send this many events from now on, more or less than before."""
        with translated(self._conversation.what):
            await self._link.flow(link_credit=credit)

    async def look_after(self, *, is_reading: bool = True) -> None:
        """Renew the token, send the heartbeats that are due, and see whether all is well.

        Call it again and again, every few seconds at least; it does something once a second. If
        the caller *is not reading*, silence is no sign of a broken connection.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke.
            SourceRejectedError: the service refuses for good.
        """
        now = time.time()
        if 0 <= now - self._looked_after_at < LOOK_AFTER_EVERY_S:
            return
        self._looked_after_at = now
        if not is_reading:
            self._connection._last_frame_received_time = now
        with translated(self._conversation.what):
            await self._connection.listen(batch=0)  # all that it does but for reading
            await self._authenticator.handle_token()
            self._check()

    async def listen(self) -> bytes:
        """Wait until something comes, and return it, for ``take``. A cancelled call loses nothing.

        Raises:
            SourceUnavailableError: the connection broke.
        """
        with translated(self._conversation.what):
            reader = getattr(self._transport, "reader", None)
            if reader is not None:
                data = await reader.read(BYTES_AT_ONCE)
            else:
                data = await self._transport.sock.receive_bytes()
            if not data:
                raise SourceUnavailableError(
                    f"{self._conversation.what}: the connection was closed without a word"
                )
        return cast("bytes", data)

    async def take(self, data: bytes) -> None:
        """Pass on the events in what came, and let the client have the rest.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke, or what came is no AMQP.
            SourceRejectedError: the service refuses for good.
        """
        transport, connection, session = self._transport, self._connection, self._session
        with translated(self._conversation.what):
            data = transport._read_buffer.read() + data
            found = self._cutter.cut(data)
            others = b"".join(found.others)
            transport._read_buffer = BytesIO(others + data[found.used :])
            connection._last_frame_received_time = time.time()
            self._count(found)
            self._on_payloads(found.payloads)
            if session.incoming_window <= session.target_incoming_window // 2:
                session.incoming_window = session.target_incoming_window
                await session._outgoing_flow()
            for _ in found.others:
                await connection._read_frame(wait=True)
            if found.others:
                self._check()

    def _count(self, found: Cut) -> None:
        """Keep the client's accounts, which its flow frames are made from."""
        link, session = self._link, self._session
        # What was under way when credit was taken back comes without any.
        link.current_link_credit = max(0, link.current_link_credit - found.delivery_count)
        link.delivery_count = link.delivery_count + found.delivery_count & _SERIAL
        session.next_incoming_id = session.next_incoming_id + found.transfer_count & _SERIAL
        session.remote_outgoing_window -= found.transfer_count
        session.incoming_window -= found.transfer_count

    def _check(self) -> None:
        """Raise what the client learnt of the end of link or connection."""
        state = self._link.get_state()
        if self._connection._error is not None:
            raise self._connection._error
        if state.name != "ATTACHED":  # the session ended without a word
            raise SourceUnavailableError(f"{self._conversation.what}: the link was detached")

    async def close(self) -> None:
        """Detach and disconnect. Never raises."""
        await self._conversation.close()


async def ask_partition_ids(client: Client) -> Sequence[str]:
    """Ask the service which partitions the hub has."""
    what = f"asking event hub {client.eventhub_name!r} for its partitions"
    (answer,) = await _ask(client, what, b"com.microsoft:eventhub", {})
    return tuple(as_text(partition_id) for partition_id in answer[b"partition_ids"])


async def ask_partitions(
    client: Client, partition_ids: Sequence[str]
) -> Sequence[PartitionProperties]:
    """Ask the service where partitions begin and end, all on one connection."""
    named = ", ".join(repr(partition_id) for partition_id in partition_ids)
    what = f"asking event hub {client.eventhub_name!r} for its partition {named}"
    questions = [{"partition": partition_id} for partition_id in partition_ids]
    answers = await _ask(client, what, b"com.microsoft:partition", *questions)
    return tuple(map(_properties, partition_ids, answers))


def _properties(partition_id: str, answer: dict[bytes, Any]) -> PartitionProperties:
    last = int(answer[b"last_enqueued_sequence_number"])
    return PartitionProperties(
        partition_id=partition_id,
        beginning_sequence_number=int(answer[b"begin_sequence_number"]),
        last_enqueued_sequence_number=last,
        last_enqueued_offset=as_text(answer[b"last_enqueued_offset"]),
        last_enqueued_time=to_time(answer[b"last_enqueued_time_utc"]) if last >= 0 else None,
        is_empty=bool(answer[b"is_partition_empty"]),
    )


async def _ask(
    client: Client, what: str, kind: bytes, *questions: dict[str, str]
) -> list[dict[bytes, Any]]:
    """Have questions of one kind answered, on a connection of their own, as Azure's client does.

    Its own method for this sleeps eight times 50 ms, and connects for each.
    """
    amqp: Any = client._amqp_transport
    with translated(what):
        auth = await client._create_auth_async()
        handler = amqp.create_mgmt_client(client._address, mgmt_auth=auth, config=client._config)
    conversation = Conversation(what, handler)
    await conversation.open()
    answers = []
    try:
        with translated(what):
            token = await amqp.get_updated_token_async(auth)
            for details in questions:
                question = {"name": client.eventhub_name, "security_token": token} | details
                status, text, answer = await amqp.mgmt_client_request_async(
                    handler,
                    amqp.build_message(application_properties=question),
                    operation=b"READ",
                    operation_type=kind,
                    status_code_field=b"status-code",
                    description_fields=b"status-description",
                )
                if int(status) >= _FIRST_STATUS_OF_REFUSAL:
                    said = f"{as_text(text)} (status {status})"
                    raise error_for(what, said, status=int(status))
                answers.append(cast("dict[bytes, Any]", answer.value))
    finally:
        await conversation.close()
    return answers


def check(client: Client) -> None:
    """See whether the client is a release that was tried; the rest shows where it is used.

    Raises:
        UnexpectedShapeError: it is another.
    """
    if not __version__.startswith(TRIED_RELEASES):
        raise UnexpectedShapeError(f"azure-eventhub {__version__} was never tried")
    _expect(client, "_create_consumer", "_create_auth_async", "_auth_uri", "_address", "_config")
    _expect(
        client._amqp_transport,
        "build_message",
        "create_mgmt_client",
        "get_updated_token_async",
        "mgmt_client_request_async",
    )


def _expect(vendor_object: object, *names: str) -> None:
    """Refuse a release of Azure's client that lacks what we drive it by."""
    missing = [name for name in names if not hasattr(vendor_object, name)]
    if missing:
        raise UnexpectedShapeError(
            f"{type(vendor_object).__name__} of azure-eventhub {__version__} has no "
            f"{', '.join(missing)}"
        )


async def _unused(*_: object) -> None:
    """Stand in for a callback that the client asks for and that is never called."""
