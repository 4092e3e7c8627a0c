"""The emulator over HTTP: is it well, what is in it, and let it misbehave.

For an emulator in another process: health checks of compose files and of tests that wait for it,
and the faults of ``EventHubsEmulator``'s methods under the same names. As much of HTTP/1.1 as
that takes: one request for each connection, bodies in JSON.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from eventproc.emulator.refusal import RefusedError

if TYPE_CHECKING:  # the server has the control endpoint, and it controls the server
    from eventproc.emulator.server import EmulatorServer

REQUEST_MAX: Final = 64 * 1024
"""Bytes in a request; ours are below one hundred."""

REQUEST_TIMEOUT_S: Final = 10.0

Answer: TypeAlias = dict[str, object]
Parameters: TypeAlias = Mapping[str, object]


class ControlEndpoint:
    """A small HTTP server beside the emulator."""

    def __init__(self, server: "EmulatorServer") -> None:
        self._server = server
        self._listener: asyncio.Server | None = None
        self._faults: dict[str, Callable[[Parameters], Awaitable[Answer]]] = {
            "drop-connections": self._drop_connections,
            "displace-receivers": self._displace_receivers,
            "delay-deliveries": self._delay_deliveries,
            "refuse-connections": self._refuse_connections,
            "refuse-links": self._refuse_links,
            "be-busy": self._be_busy,
            "fall-silent": self._fall_silent,
            "expire-before": self._expire_before,
            "add-partitions": self._add_partitions,
            "clear": self._clear,
            "stop": self._stop,
            "start": self._start,
        }

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, for the case that any was asked for."""
        self._listener = await asyncio.start_server(
            self._serve, host, port, limit=REQUEST_MAX, reuse_address=True
        )
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port."""
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()
            self._listener = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_content_length(head))
                status, answer = await self._answer(head, body)
                content = json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
                )
                writer.write(content)
                await writer.drain()
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError):
            pass  # whoever that was does not speak HTTP, or is gone
        finally:
            writer.close()

    async def _answer(self, head: bytes, body: bytes) -> tuple[HTTPStatus, Answer]:
        method, path, *_ = head.decode("latin-1").split(" ", 2)
        fault = self._faults.get(path.removeprefix("/faults/"))
        if method == "GET" and path == "/health":
            listens = self._server.listens
            status = HTTPStatus.OK if listens else HTTPStatus.SERVICE_UNAVAILABLE
            return status, {"status": "healthy" if listens else "unhealthy"}
        if method == "GET" and path == "/hubs":
            return HTTPStatus.OK, self._describe()
        if fault is None or method != "POST" or not path.startswith("/faults/"):
            return HTTPStatus.NOT_FOUND, {"error": f"nothing answers {method} {path}"}
        try:
            return HTTPStatus.OK, await fault(_parameters_of(body))
        except (KeyError, ValueError, TypeError, RefusedError) as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}

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
        return {"dropped": self._server.drop_connections(_text(given, "hub"), _partition(given))}

    async def _displace_receivers(self, given: Parameters) -> Answer:
        hub = _required_text(given, "hub")
        return {"displaced": self._server.displace_receivers(hub, _partition(given))}

    async def _delay_deliveries(self, given: Parameters) -> Answer:
        delay = _duration(given, "delay_s")
        self._server.faults.delay_deliveries(delay, _text(given, "hub"), _partition(given))
        return {}

    async def _refuse_connections(self, given: Parameters) -> Answer:
        self._server.faults.refuse_connections(_duration(given, "duration_s"))
        return {}

    async def _refuse_links(self, given: Parameters) -> Answer:
        self._server.faults.refuse_links(_duration(given, "duration_s"))
        return {}

    async def _be_busy(self, given: Parameters) -> Answer:
        self._server.faults.be_busy(_duration(given, "duration_s"))
        return {}

    async def _fall_silent(self, given: Parameters) -> Answer:
        self._server.faults.fall_silent(_duration(given, "duration_s"))
        return {}

    async def _expire_before(self, given: Parameters) -> Answer:
        hub, partition_id = _required_text(given, "hub"), _required_text(given, "partition_id")
        sequence_number = _number(given, "sequence_number")
        return {"dropped": self._server.expire_before(hub, partition_id, int(sequence_number))}

    async def _add_partitions(self, given: Parameters) -> Answer:
        hub = _required_text(given, "hub")
        self._server.add_partitions(hub, int(_number(given, "count")))
        return {"partition_ids": self._server.partition_ids(hub)}

    async def _clear(self, given: Parameters) -> Answer:
        del given
        self._server.clear_faults()
        return {}

    async def _stop(self, given: Parameters) -> Answer:
        del given
        await self._server.stop()
        return {}

    async def _start(self, given: Parameters) -> Answer:
        del given
        await self._server.start()
        return {}


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
            if not 0 <= length <= REQUEST_MAX:
                raise ValueError("no request of ours is that long")
            return length
    return 0


def _parameters_of(body: bytes) -> Parameters:
    parameters = json.loads(body or b"{}")
    if not isinstance(parameters, dict):
        raise TypeError("the body is to be a JSON object")
    return parameters


def _text(given: Parameters, name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is to be a string")
    return value


def _required_text(given: Parameters, name: str) -> str:
    value = _text(given, name)
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


def _partition(given: Parameters) -> str | None:
    return _text(given, "partition_id")


def _number(given: Parameters, name: str) -> float:
    value = given.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is to be a number")
    return value


def _duration(given: Parameters, name: str) -> timedelta:
    return timedelta(seconds=_number(given, name))
