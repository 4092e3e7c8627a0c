"""What the emulator is to serve: hubs, their partitions and groups, and the limits.

Rule: whatever cannot work is said here, when the configuration is built, in a sentence that names
the field and the remedy. The format of ``Config.json`` is the official emulator's:
https://learn.microsoft.com/azure/event-hubs/test-locally-with-event-hub-emulator
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from eventproc.emulator.log import Retention
from eventproc.errors import ConfigurationError

DEFAULT_PORT: Final = 5672
"""AMQP without TLS: where the clients look when a connection string names no port."""

DEFAULT_HEALTH_PORT: Final = 5300
"""The official emulator's."""

DEFAULT_CONSUMER_GROUP: Final = "$Default"
PARTITIONS_MAX: Final = 2048
"""More than any tier of the service offers in one hub (1,024)."""


@dataclass(frozen=True, slots=True)
class HubConfiguration:
    """One event hub."""

    name: str
    partition_count: int = 4
    consumer_groups: tuple[str, ...] = ()
    """Beside ``$Default``, which is always there."""

    def __post_init__(self) -> None:
        """Check what the hub is to be."""
        if not self.name or self.name.startswith("$") or "/" in self.name:
            raise ConfigurationError(
                f"{self.name!r} is no name for an event hub: it must not be empty, "
                "start with '$' or contain '/'"
            )
        if not 1 <= self.partition_count <= PARTITIONS_MAX:
            raise ConfigurationError(
                f"event hub {self.name!r}: partition count {self.partition_count} "
                f"is not between 1 and {PARTITIONS_MAX}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorConfiguration:
    """Everything an emulator can be told."""

    hubs: tuple[HubConfiguration, ...]
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any free port; the connection string names it."""

    health_port: int | None = None
    """Where ``GET /health`` and the faults answer over HTTP; 0: any free port; ``None``: none."""

    retention: Retention = field(default_factory=Retention)

    directory: Path | None = None
    """Where the logs are kept over restarts; ``None``: in memory alone."""

    sync_to_disk: bool = False
    """Wait for the disk before a producer is answered: survives loss of power, costs a
    thousandfold. Without it what was answered survives a kill of the process."""

    message_size_max: int = 1024 * 1024
    """Bytes in one message or batch: the service's limit outside of its dedicated tier."""

    idle_timeout: timedelta = timedelta(minutes=4)
    """A connection that is silent for longer is closed: the service's value."""

    def __post_init__(self) -> None:
        """Check what does not fit together."""
        if not self.hubs:
            raise ConfigurationError("an emulator needs at least one event hub")
        names = [hub.name.casefold() for hub in self.hubs]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(f"event hub {name!r} is configured twice")
        if self.sync_to_disk and self.directory is None:
            raise ConfigurationError("sync_to_disk needs a directory to keep the logs in")
        if self.idle_timeout < timedelta(milliseconds=100):
            raise ConfigurationError(f"idle_timeout ({self.idle_timeout}) is below 0.1 s")


def hubs_of(
    hubs: Mapping[str, int] | Iterable[HubConfiguration], consumer_groups: Iterable[str] = ()
) -> tuple[HubConfiguration, ...]:
    """Hubs from their names and partition counts, each with all of ``consumer_groups``."""
    if not isinstance(hubs, Mapping):
        return tuple(hubs)
    groups = tuple(consumer_groups)
    return tuple(HubConfiguration(name, count, groups) for name, count in hubs.items())


def read_config_json(path: Path) -> tuple[HubConfiguration, ...]:
    """The hubs of the official emulator's ``Config.json``.

    Raises:
        ConfigurationError: The file is not there, is no JSON, or lacks what it must say.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: is no JSON: {error}") from error
    try:
        entities = [
            entity
            for namespace in document["UserConfig"]["NamespaceConfig"]
            for entity in namespace["Entities"]
        ]
        return tuple(
            HubConfiguration(
                str(entity["Name"]),
                int(entity.get("PartitionCount", 1)),
                tuple(str(group["Name"]) for group in entity.get("ConsumerGroups") or ()),
            )
            for entity in entities
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path}: expected UserConfig.NamespaceConfig[].Entities[] with Name, PartitionCount "
            f"and ConsumerGroups[].Name; {error!r} is missing or of another shape"
        ) from error
    except ConfigurationError:
        raise
    except ValueError as error:
        raise ConfigurationError(f"{path}: a PartitionCount is no number: {error}") from error
