"""The emulator's HTTP endpoint: health check, content of the hubs, and fault injection.

It serves an emulator that runs in another process: health checks of compose files and tests, and
the faults of ``EventHubsEmulator`` under the names of its methods. It supports only the part of
HTTP/1.1 that this needs: one request per connection, bodies in JSON.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

from eventproc.emulator.amqp.refusal import RefusedError
from eventproc.emulator.amqp_server import AmqpServer
from eventproc.emulator.faults import LastingFault
from eventproc.emulator.hub.configuration import PARTITIONS_MAX
from eventproc.emulator.request import (
    NUMBER_MAX,
    REQUEST_MAX,
    ForeignRequestError,
    Head,
    MalformedRequestError,
    Parameters,
    parse_head,
)
from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.guard import is_of_another_site, is_own_host, own_names
from eventproc.endpoints.listener import Listener
from eventproc.errors import ConfigurationError

REQUEST_TIMEOUT_S: Final = 10.0

CONNECTIONS_MAX: Final = 32
"""If there are more, the oldest is cut."""

_LOG: Final = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # silent until the program configures logging

Answer: TypeAlias = dict[str, object]


class Fault(NamedTuple):
    """What a ``POST`` to a fault calls, and the parameters that it takes."""

    apply: Callable[[Parameters], Awaitable[Answer]]
    parameters: tuple[str, ...] = ()


class ControlEndpoint:
    """A small HTTP server beside the emulator."""

    def __init__(self, server: AmqpServer) -> None:
        self._server = server
        self._listener: Listener | None = None
        self._names: frozenset[str] = frozenset()
        self._serving: set[asyncio.Task[None]] = set()
        target = ("hub", "partition_id")
        self._faults: dict[str, Fault] = {
            "drop-connections": Fault(self._drop_connections, target),
            "displace-receivers": Fault(self._displace_receivers, target),
            "delay-deliveries": Fault(self._delay_deliveries, (*target, "delay_s")),
            "expire-before": Fault(self._expire_before, (*target, "sequence_number")),
            "add-partitions": Fault(self._add_partitions, ("hub", "count")),
            "recreate-hub": Fault(self._recreate_hub, ("hub",)),
            "clear": Fault(partial(self._call, server.clear_faults)),
            "stop": Fault(partial(self._call, server.stop)),
            "start": Fault(partial(self._call, server.start)),
            **{each: Fault(partial(self._begin, each), ("duration_s",)) for each in LastingFault},
        }

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port, which the system chooses if *port* is 0."""
        self._names = await asyncio.to_thread(own_names, host)
        self._listener = Listener(
            lambda: asyncio.StreamReaderProtocol(
                asyncio.StreamReader(limit=REQUEST_MAX), self._accept
            ),
            connections_max=CONNECTIONS_MAX,
            is_idle=lambda _: True,
        )
        return (await self._listener.open(ListenAddress(host, port))).port

    async def stop(self) -> None:
        """Close the port and cancel the requests under way."""
        if self._listener is None:
            return
        await self._listener.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        self._listener = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        # Not in a `finally` of the task: one that is cancelled before it starts has none.
        task.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                status, answer = await self._answered(reader)
                content = json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
                )
                writer.write(content)
                await writer.drain()
                if status is not HTTPStatus.OK and writer.can_write_eof():
                    # If a connection is closed with unread input, the answer may be lost.
                    writer.write_eof()
                    while await reader.read(REQUEST_MAX):
                        pass
        except (OSError, EOFError):  # TimeoutError is an OSError
            pass  # the client has gone

    async def _answered(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Answer]:
        """Read a request, carry it out, and return status and answer."""
        try:
            try:
                head = parse_head(await reader.readuntil(b"\r\n\r\n"))
            except asyncio.LimitOverrunError as error:
                raise MalformedRequestError(
                    f"the head of the request has more than {REQUEST_MAX} bytes"
                ) from error
            self._refuse_foreign(head)
            body = await reader.readexactly(head.body_size)
            return await self._answer(head.method, head.path, body)
        except (MalformedRequestError, ConfigurationError, RefusedError) as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except ForeignRequestError as error:
            return HTTPStatus.FORBIDDEN, {"error": str(error)}
        except KeyError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error.args[0])}
        except (asyncio.IncompleteReadError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - such as a full disk: report it
            _LOG.exception("control_failed")
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"the request failed: {error!r}"}

    def _refuse_foreign(self, head: Head) -> None:
        """Refuse what a page of another site has a browser send."""
        if not is_own_host(head.headers.get("Host"), self._names):
            raise ForeignRequestError(
                f"this server has another name than {head.headers['Host']!r}: ask for its "
                "address, or name that host in --host"
            )
        if is_of_another_site(head.headers):
            raise ForeignRequestError("requests of web pages of other sites are refused")

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[HTTPStatus, Answer]:
        fault = self._faults.get(path.removeprefix("/faults/"))
        if method == "GET" and path == "/health":
            listens = self._server.listens
            status = HTTPStatus.OK if listens else HTTPStatus.SERVICE_UNAVAILABLE
            return status, {"status": "healthy" if listens else "unhealthy"}
        if method == "GET" and path == "/hubs":
            return HTTPStatus.OK, self._describe()
        if fault is None or method != "POST" or not path.startswith("/faults/"):
            faults = ", ".join(f"/faults/{name}" for name in self._faults)
            known = f"there are GET /health, GET /hubs and POST {faults}"
            return HTTPStatus.NOT_FOUND, {"error": f"{method} {path} does not exist: {known}"}
        given = Parameters.parse(body)
        given.refuse_others(fault.parameters)
        return HTTPStatus.OK, await fault.apply(given)

    def _describe(self) -> Answer:
        hubs = self._server.namespace.hubs.values()
        return {
            "connection_string": self._server.connection_string,
            "connections": len(self._server.connections),
            "hubs": {
                hub.name: {
                    "consumer_groups": list(hub.consumer_groups),
                    "partitions": {
                        partition.partition_id: {
                            "first_sequence_number": partition.log.first_sequence_number,
                            "next_sequence_number": partition.log.next_sequence_number,
                            "bytes": partition.log.byte_count,
                            "receivers": sum(map(len, partition.receivers.values())),
                        }
                        for partition in hub.partitions
                    },
                }
                for hub in hubs
            },
        }

    # --- one method for each fault ---------------------------------------------------------------

    async def _drop_connections(self, given: Parameters) -> Answer:
        return {"dropped": self._server.drop_connections(*_target(given))}

    async def _displace_receivers(self, given: Parameters) -> Answer:
        hub, partition_id = given.required_text("hub"), given.text("partition_id")
        return {"displaced": self._server.displace_receivers(hub, partition_id)}

    async def _delay_deliveries(self, given: Parameters) -> Answer:
        self._server.delay_deliveries(given.duration("delay_s"), *_target(given))
        return {}

    async def _begin(self, fault: LastingFault, given: Parameters) -> Answer:
        self._server.faults.begin(fault, given.duration("duration_s"))
        return {}

    async def _expire_before(self, given: Parameters) -> Answer:
        hub, partition_id = given.required_text("hub"), given.required_text("partition_id")
        number = given.whole_number("sequence_number", least=0, most=NUMBER_MAX)
        return {"dropped": self._server.expire_before(hub, partition_id, number)}

    async def _add_partitions(self, given: Parameters) -> Answer:
        hub = given.required_text("hub")
        self._server.add_partitions(hub, given.whole_number("count", least=1, most=PARTITIONS_MAX))
        return {"partition_ids": self._server.partition_ids(hub)}

    async def _recreate_hub(self, given: Parameters) -> Answer:
        self._server.recreate_hub(given.required_text("hub"))
        return {}

    async def _call(self, method: Callable[[], Awaitable[None] | None], _: Parameters) -> Answer:
        result = method()
        if result is not None:
            await result
        return {}


def _target(given: Parameters) -> tuple[str | None, str | None]:
    return given.text("hub"), given.text("partition_id")
