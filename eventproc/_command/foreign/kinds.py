"""The programs whose positions are known, by the kind that ``--from`` names."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from eventproc._command.arguments.address import HubAddress
from eventproc._command.foreign.found import FoundGroup
from eventproc._command.foreign.kafka import read_committed
from eventproc._command.foreign.names import (
    LeaseName,
    lease_by_number,
    lease_of_dapr,
    lease_of_functions,
    lease_of_host,
)
from eventproc._command.foreign.place import Place
from eventproc._command.foreign.spark import QueryFolder
from eventproc.models import OffsetFormat

Reader = Callable[[Place, HubAddress], Awaitable[FoundGroup]]
"""Returns what is found at a place.

Raises ``ConfigurationError`` if the place is not what its kind says, or cannot be read, and
``StoreError`` or ``SourceError`` if the service did not answer."""


def _in_blobs(*leases: LeaseName, has_records: bool = True) -> Reader:
    """Return what reads a container; see ``find_blobs``."""

    async def read(place: Place, address: HubAddress) -> FoundGroup:
        from eventproc._command.foreign.blobs import read_blobs  # noqa: PLC0415 - it is an extra

        return await read_blobs(place, address, leases, has_records=has_records)

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A program that keeps positions."""

    read: Reader
    settings: tuple[str, ...]
    """The names of what may follow the place, after a question mark."""

    stop: str
    """How its consumers are stopped."""

    shows_life: bool = True
    """Whether the place shows that its consumers run; else the user is asked."""

    numbers: OffsetFormat | None = None
    """The protocol whose numbers the positions are; ``None``: the offset says it, or that of the
    group's own source."""

    names_there: str = ""
    """How checkpoints are named that are written for it, ``lower`` or ``exact``; empty: they are
    not."""

    note: str = ""
    """What a position means there, if that is not "handled"."""


_NAMES: Final = ("connection", "namespace", "eventhub", "group")

_HUB_NAMES: Final = ("namespace", "eventhub")

KINDS: Final[Mapping[str, Kind]] = {
    "azure-sdk": Kind(
        read=_in_blobs(),
        settings=_NAMES,
        stop="stop its processes (one that was killed counts as running for three minutes)",
        names_there="lower",
    ),
    "functions": Kind(
        read=_in_blobs(lease_of_functions),
        settings=_NAMES,
        stop="stop the function app, or disable the function",
        names_there="lower",
        note="a function app moves its position after each batch, whether the function succeeded "
        "or failed: what failed is not delivered again",
    ),
    "event-processor-host": Kind(
        read=_in_blobs(lease_of_host, lease_by_number, has_records=False),
        settings=(*_NAMES, "prefix"),
        stop="stop its hosts; their leases end within 30 seconds",
    ),
    "dapr": Kind(
        read=_in_blobs(lease_of_dapr),
        settings=_NAMES,
        stop="stop the applications with this component",
        names_there="exact",
        note="Dapr moves its position as it delivers an event, whether the application handled it "
        "or not: what failed is not delivered again",
    ),
    "filebeat": Kind(
        read=_in_blobs(lease_by_number),
        settings=_NAMES,
        stop="stop Filebeat, or its input",
        names_there="exact",
    ),
    "spark": Kind(
        read=QueryFolder(is_ours=True).read,
        settings=_HUB_NAMES,
        stop="stop the query",
        shows_life=False,
    ),
    "spark-connector": Kind(
        read=QueryFolder(is_ours=False).read,
        settings=_HUB_NAMES,
        stop="stop the query",
        shows_life=False,
        numbers=OffsetFormat.AMQP,
    ),
    "spark-kafka": Kind(
        read=QueryFolder(is_ours=False).read,
        settings=("connection", "eventhub"),
        stop="stop the query",
        shows_life=False,
        numbers=OffsetFormat.KAFKA,
    ),
    "kafka": Kind(
        read=read_committed,
        settings=("connection", "eventhub"),
        stop="stop its consumers",
        numbers=OffsetFormat.KAFKA,
    ),
}


def settings_by_kind() -> dict[str, tuple[str, ...]]:
    """Return what may follow each kind's place."""
    return {name: kind.settings for name, kind in KINDS.items()}


def settings_by_departure() -> dict[str, tuple[str, ...]]:
    """Return what may follow the place of each kind that positions can be written for."""
    return {name: (*kind.settings, "names") for name, kind in KINDS.items() if kind.names_there}
