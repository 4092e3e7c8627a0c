"""The emulator's HTTP endpoint: health check, content of the hubs, and fault injection.

It serves an emulator that runs in another process: health checks of compose files and tests, and
the faults of ``EventHubsEmulator`` under the names of its methods. Bodies are JSON.

Rule: an invalid request raises ``MalformedRequestError`` with one sentence, before any of it is
carried out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple

from eventproc._base.bounded_json import read_json
from eventproc._base.http.address import Answer, Body, ListenAddress, Request
from eventproc._base.http.guard import is_of_another_site, is_own_host, own_names
from eventproc._base.http.server import serve_requests
from eventproc.emulator._amqp.refusal import RefusedError
from eventproc.emulator._amqp_server import AmqpServer
from eventproc.emulator._faults import LastingFault
from eventproc.emulator._hub.configuration import PARTITIONS_MAX
from eventproc.errors import ConfigurationError

DURATION_MAX: Final = timedelta(days=366)

NUMBER_MAX: Final = 2**63 - 1
"""Largest sequence number: 64 bits."""

_SHOWN_MAX: Final = 60


class MalformedRequestError(ValueError):
    """The request is invalid; nothing was done."""


class Parameters:
    """The parameters in the body; each value is checked when it is read."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given

    @classmethod
    def parse(cls, body: bytes) -> "Parameters":
        """Parse a body; an empty one has no parameters.

        Raises:
            MalformedRequestError: It is not a JSON object.
        """
        try:
            given = read_json(body or b"{}")
        except ValueError as error:
            raise MalformedRequestError(f"the body is not JSON: {error}") from error
        if not isinstance(given, dict):
            raise MalformedRequestError("the body must be a JSON object")
        return cls(given)

    def refuse_others(self, known: Collection[str]) -> None:
        """Raise ``MalformedRequestError`` if there is a parameter with another name."""
        for name in self._given:
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise MalformedRequestError(
                    f"{_shown(name)} is not a parameter here; there are: {names}"
                )

    def text(self, name: str) -> str | None:
        """Return a string parameter, or ``None`` if it is missing."""
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise MalformedRequestError(f"{name} is {_shown(value)}: give a string")
        return value

    def required_text(self, name: str) -> str:
        """Return a string parameter that must be there."""
        value = self.text(name)
        if value is None:
            raise MalformedRequestError(f"{name} is missing: give a string")
        return value

    def whole_number(self, name: str, *, least: int, most: int) -> int:
        """Return a whole number between two bounds, both included."""
        value = self._number(name)
        if value != value // 1 or not least <= value <= most:
            raise MalformedRequestError(
                f"{name} is {_shown(value)}: give a whole number from {least} to {most}"
            )
        return int(value)

    def duration(self, name: str) -> timedelta:
        """Return a duration, given in seconds."""
        value = self._number(name)
        most = DURATION_MAX.total_seconds()
        if not 0 <= value <= most:
            raise MalformedRequestError(
                f"{name} is {_shown(value)}: give seconds from 0 to {most:.0f}"
            )
        return timedelta(seconds=value)

    def _number(self, name: str) -> float:
        value = self._given.get(name)
        if value is None:
            raise MalformedRequestError(f"{name} is missing: give a number")
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise MalformedRequestError(f"{name} is {_shown(value)}: give a number")
        return value


def _shown(value: object) -> str:
    """Format a value for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


class Fault(NamedTuple):
    """What a ``POST`` to a fault calls, and the parameters that it takes."""

    apply: Callable[[Parameters], Awaitable[Body]]
    parameters: tuple[str, ...] = ()


@asynccontextmanager
async def serving(server: AmqpServer, address: ListenAddress) -> AsyncIterator[int]:
    """Serve the endpoint while the block lasts; yield its port.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    endpoint = ControlEndpoint(server, await asyncio.to_thread(own_names, address.host))
    async with serve_requests(address, endpoint.respond, "health_port") as bound:
        yield bound.port


class ControlEndpoint:
    """Answers the requests to an emulator."""

    def __init__(self, server: AmqpServer, names: Collection[str]) -> None:
        """*names* are this machine's, as ``own_names`` returns them."""
        self._server = server
        self._names = names
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

    async def respond(self, request: Request) -> Answer:
        """Carry a request out, and return the answer, which is JSON."""
        if not is_own_host(host := request.headers.get("Host"), self._names):
            return _refusal(
                HTTPStatus.FORBIDDEN,
                f"this server has another name than {host!r}: ask for its address, or name that "
                "host in --host",
            )
        if is_of_another_site(request.headers):
            return _refusal(
                HTTPStatus.FORBIDDEN, "requests of web pages of other sites are refused"
            )
        try:
            return await self._answer(request.method, request.path, request.body)
        except (MalformedRequestError, ConfigurationError, RefusedError) as error:
            return _refusal(HTTPStatus.BAD_REQUEST, str(error))
        except KeyError as error:
            return _refusal(HTTPStatus.BAD_REQUEST, error.args[0])

    async def _answer(self, method: str, path: str, body: bytes) -> Answer:
        fault = self._faults.get(path.removeprefix("/faults/"))
        if method == "GET" and path == "/health":
            if self._server.listens:
                return Answer({"status": "healthy"})
            return Answer({"status": "unhealthy"}, HTTPStatus.SERVICE_UNAVAILABLE)
        if method == "GET" and path == "/hubs":
            return Answer(self._describe())
        if fault is None or method != "POST" or not path.startswith("/faults/"):
            faults = ", ".join(f"/faults/{name}" for name in self._faults)
            known = f"there are GET /health, GET /hubs and POST {faults}"
            return _refusal(HTTPStatus.NOT_FOUND, f"{method} {path} does not exist: {known}")
        given = Parameters.parse(body)
        given.refuse_others(fault.parameters)
        return Answer(await fault.apply(given))

    def _describe(self) -> Body:
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

    async def _drop_connections(self, given: Parameters) -> Body:
        return {"dropped": self._server.drop_connections(*_target(given))}

    async def _displace_receivers(self, given: Parameters) -> Body:
        hub, partition_id = given.required_text("hub"), given.text("partition_id")
        return {"displaced": self._server.displace_receivers(hub, partition_id)}

    async def _delay_deliveries(self, given: Parameters) -> Body:
        self._server.delay_deliveries(given.duration("delay_s"), *_target(given))
        return {}

    async def _begin(self, fault: LastingFault, given: Parameters) -> Body:
        self._server.faults.begin(fault, given.duration("duration_s"))
        return {}

    async def _expire_before(self, given: Parameters) -> Body:
        hub, partition_id = given.required_text("hub"), given.required_text("partition_id")
        number = given.whole_number("sequence_number", least=0, most=NUMBER_MAX)
        return {"dropped": self._server.expire_before(hub, partition_id, number)}

    async def _add_partitions(self, given: Parameters) -> Body:
        hub = given.required_text("hub")
        self._server.add_partitions(hub, given.whole_number("count", least=1, most=PARTITIONS_MAX))
        return {"partition_ids": self._server.partition_ids(hub)}

    async def _recreate_hub(self, given: Parameters) -> Body:
        self._server.recreate_hub(given.required_text("hub"))
        return {}

    async def _call(self, method: Callable[[], Awaitable[None] | None], _: Parameters) -> Body:
        result = method()
        if result is not None:
            await result
        return {}


def _refusal(status: HTTPStatus, message: str) -> Answer:
    return Answer({"error": message}, status)


def _target(given: Parameters) -> tuple[str | None, str | None]:
    return given.text("hub"), given.text("partition_id")
