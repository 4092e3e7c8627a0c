"""Parses the address of a link. Pure."""

from dataclasses import dataclass
from typing import Final

from eventproc.emulator.amqp.refusal import entity_not_found
from eventproc.emulator.amqp.values import Value

CBS: Final = "$cbs"
MANAGEMENT: Final = "$management"


@dataclass(frozen=True, slots=True)
class Address:
    """A hub, a partition, a partition as read by a consumer group, or a node of the service."""

    path: str
    """Without scheme and host, as in the service's messages."""

    hub: str
    """The hub's name; ``$cbs`` or ``$management`` for the service's own nodes."""

    consumer_group: str | None = None
    partition_id: str | None = None

    @property
    def is_service_node(self) -> bool:
        """Whether the node answers requests rather than storing events."""
        return self.hub in {CBS, MANAGEMENT}


def path_of(address: str) -> str:
    """Strip scheme and host: clients send ``amqps://host:port/path`` or only the path."""
    _, has_scheme, rest = address.partition("://")
    return rest.partition("/")[2].strip("/") if has_scheme else address.strip("/")


def parse_address(address: Value) -> Address:
    """Parse the address of a link.

    It is ``hub``, ``hub/Partitions/0``, ``hub/ConsumerGroups/group/Partitions/0``, ``$cbs`` or
    ``$management``; case does not matter in the fixed words.

    Raises:
        RefusedError: The address has another form.
    """
    path = path_of(address) if isinstance(address, str) else ""
    segments = path.split("/")
    words = [segment.casefold() for segment in segments[1::2]]
    if segments[-1] in {CBS, MANAGEMENT}:
        return Address(path, segments[-1])
    if len(segments) == 1 and path:
        return Address(path, path)
    if len(segments) == 3 and words == ["partitions"]:
        return Address(path, segments[0], None, segments[2])
    if len(segments) == 5 and words == ["consumergroups", "partitions"]:
        return Address(path, segments[0], segments[2], segments[4])
    raise entity_not_found(path)
