"""The emulator's configuration: hubs, their partitions and consumer groups, and limits.

Rule: an invalid configuration raises ``ConfigurationError`` when it is built, with a message that
names the field and the remedy. The format of ``Config.json`` is the official emulator's:
https://learn.microsoft.com/azure/event-hubs/test-locally-with-event-hub-emulator
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from eventproc._base.bounded_json import read_json
from eventproc._base.capture_names import DEFAULT_FORMAT, check_format
from eventproc._base.settings import Count, PositiveSpan, Within, check_settings
from eventproc.emulator._hub.log import Retention
from eventproc.emulator._tokens import TokenRules
from eventproc.errors import ConfigurationError

DEFAULT_PORT: Final = 5672
"""AMQP without TLS: the default port of the clients."""

DEFAULT_CONSUMER_GROUP: Final = "$Default"
PARTITIONS_MAX: Final = 2048
"""Above the limit of every tier of the service (1,024 in one hub)."""

_DIGITS_MAX: Final = 18
"""Longest number accepted: Python refuses to parse thousands of digits."""


Port: TypeAlias = Annotated[int, Within(least=0, most=65535)]


@dataclass(frozen=True, slots=True)
class HubConfiguration:
    """One event hub."""

    name: str
    partition_count: int = 4
    consumer_groups: tuple[str, ...] = ()
    """Consumer groups besides ``$Default``, which always exists."""

    is_compacted: bool = False
    """Whether a partition keeps only the newest event of each partition key."""

    def __post_init__(self) -> None:
        """Check names and partition count."""
        check_settings(self)
        if not self.name or self.name.startswith("$") or "/" in self.name:
            raise ConfigurationError(
                f"{self.name!r} is not a name for an event hub: it must not be empty, "
                "start with '$' or contain '/'"
            )
        for group in self.consumer_groups:
            if not group or "/" in group:
                raise ConfigurationError(
                    f"event hub {self.name!r}: {group!r} is not a name for a consumer group: it "
                    "must not be empty or contain '/'"
                )
        if not 1 <= self.partition_count <= PARTITIONS_MAX:
            raise ConfigurationError(
                f"event hub {self.name!r}: partition count {self.partition_count} "
                f"is not between 1 and {PARTITIONS_MAX}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureConfiguration:
    """How every partition is captured; the defaults are those of the service."""

    folder: Path
    """Below it are the files."""

    interval: PositiveSpan = timedelta(minutes=5)
    """A window is a file after this time. The service allows a minute to fifteen."""

    bytes_max: Count = 300 * 1024 * 1024
    """A window is a file as soon as it has this many bytes of encoded events. The service allows
    10 to 500 MiB."""

    writes_empty: bool = True
    """Whether a window without events is a file, too."""

    is_deflated: bool = False
    """Whether files are compressed."""

    name_format: str = DEFAULT_FORMAT
    """The names of the files, with the service's placeholders; ``{Namespace}`` is the host."""

    def __post_init__(self) -> None:
        """Check the format of the names."""
        check_settings(self)
        check_format(self.name_format)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorConfiguration:
    """All settings of an emulator."""

    hubs: tuple[HubConfiguration, ...]
    host: str = "127.0.0.1"
    port: Port = DEFAULT_PORT
    """The port for AMQP. 0: any free port; the connection string contains it."""

    health_port: Port | None = None
    """The port of the HTTP endpoint for health and faults. 0: any free port; ``None``: none."""

    retention: Retention = field(default_factory=Retention)

    hub_age: Annotated[timedelta, Within(least=timedelta(0))] = timedelta(0)
    """How long ago the hubs were created, when the emulator first has them. A hub that is younger
    than a checkpoint counts as created again."""

    directory: Path | None = None
    """Directory for the logs, so that they survive restarts; ``None``: in memory only."""

    sync_to_disk: bool = False
    """Sync to disk before a producer is answered, so that events survive a loss of power. About a
    thousand times slower. Without it, acknowledged events survive a kill of the process."""

    message_size_max: Count = 1024 * 1024
    """Limit of a message or batch in bytes: the service's, outside of its dedicated tier."""

    idle_timeout: Annotated[timedelta, Within(least=timedelta(milliseconds=100))] = timedelta(
        minutes=4
    )
    """A connection that is silent for longer is closed: the service's value."""

    certificate: Path | None = None
    """File with the certificate (PEM) for TLS; ``None``: no TLS. It needs ``key``."""

    key: Path | None = None
    """File with the certificate's private key (PEM)."""

    websocket_port: Port | None = None
    """The port for AMQP over WebSockets, with TLS as on ``port``. 0: any free port; ``None``: none.
    It needs aiohttp."""

    tokens: TokenRules | None = None
    """Which tokens are taken; ``None``: any."""

    capture: CaptureConfiguration | None = None
    """Captures all hubs to files; ``None``: none. It needs the extra ``capture``."""

    def __post_init__(self) -> None:
        """Check that the settings fit together."""
        check_settings(self)
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError("TLS needs both a certificate and its key: give both")
        if not self.hubs:
            raise ConfigurationError("an emulator needs at least one event hub")
        names = [hub.name.casefold() for hub in self.hubs]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(f"event hub {name!r} is configured twice")
        if self.sync_to_disk and self.directory is None:
            raise ConfigurationError("sync_to_disk needs a directory to keep the logs in")


def hubs_of(
    hubs: Mapping[str, int] | Iterable[HubConfiguration], consumer_groups: Iterable[str] = ()
) -> tuple[HubConfiguration, ...]:
    """Make hubs from names and partition counts, each with all of ``consumer_groups``."""
    if not isinstance(hubs, Mapping):
        return tuple(hubs)
    groups = tuple(consumer_groups)
    return tuple(HubConfiguration(name, count, groups) for name, count in hubs.items())


def read_config_json(path: Path) -> tuple[HubConfiguration, ...]:
    """Read the hubs from a ``Config.json`` of the official emulator.

    Raises:
        ConfigurationError: The file does not exist, is not JSON, or lacks a required field.
    """
    try:
        document = read_json(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: is not JSON: {error}") from error
    try:
        entities = [
            entity
            for namespace in document["UserConfig"]["NamespaceConfig"]
            for entity in namespace["Entities"]
        ]
        return tuple(
            HubConfiguration(
                _name(path, entity["Name"]),
                _count(path, entity["PartitionCount"]),
                tuple(_name(path, group["Name"]) for group in entity.get("ConsumerGroups") or ()),
            )
            for entity in entities
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path}: expected UserConfig.NamespaceConfig[].Entities[] with Name, PartitionCount "
            f"and ConsumerGroups[].Name; {error} is missing or of another shape"
        ) from error


def _name(path: Path, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{path}: a Name is {value!r:.60}: give a text")
    return value


def _count(path: Path, value: object) -> int:
    """Read a partition count, which may be a string, as for the official emulator."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigurationError(
            f"{path}: a PartitionCount is {value!r:.60}: give a whole number from 1 to "
            f"{PARTITIONS_MAX}"
        )
    return value
