"""What an operator has paused: a whole group, or some of its partitions. It is a group record.

The record belongs to the group and not to an owner, so a pause lasts while partitions move, and
while every processor of the group restarts. It ends when the operator resumes.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from eventproc._base.bounded_json import read_json
from eventproc.errors import ConfigurationError, StoreCorruptError

PAUSES_RECORD: Final = "pauses"
"""The name of the group record."""

REASON_MAX: Final = 500
"""The most characters of a reason."""

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Why and since when nothing is received."""

    __module__ = "eventproc.admin"

    since: datetime
    """By the store's clock."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """All pauses of a group."""

    __module__ = "eventproc.admin"

    group: Pause | None = None
    """The pause of the whole group."""

    by_partition: Mapping[str, Pause] = field(default_factory=lambda: MappingProxyType({}))
    """The pauses of single partitions; they also last while the whole group is paused."""

    def of(self, partition_id: str) -> Pause | None:
        """Return what pauses a partition: its own pause, or that of the whole group."""
        return self.by_partition.get(partition_id, self.group)

    def paused(
        self, partition_ids: Collection[str] | None, since: datetime, reason: str
    ) -> "Pauses":
        """Return these pauses and a new one, of the partitions or (``None``) of the whole group.

        What is paused already keeps its ``since``, and gets the new reason.

        Raises:
            ConfigurationError: there is no reason, or it is too long; *partition_ids* is empty.
        """
        _refuse_none_named(partition_ids)
        if not reason.strip() or len(reason) > REASON_MAX:
            raise ConfigurationError(
                f"the reason of a pause has {len(reason)} characters: say in 1 to {REASON_MAX} why "
                "it is paused"
            )
        reason = reason.encode(errors="replace").decode()  # JSON and argv have half characters.
        pause = Pause(since=since, reason=reason)
        if partition_ids is None:
            return replace(self, group=replace(self.group or pause, reason=reason))
        new = {p: replace(self.by_partition.get(p, pause), reason=reason) for p in partition_ids}
        return replace(self, by_partition={**self.by_partition, **new})

    def resumed(self, partition_ids: Collection[str] | None) -> "Pauses":
        """Return the pauses that are left when these partitions resume; ``None``: all resume.

        Raises:
            ConfigurationError: the whole group is paused, so no single partition can resume; or
                *partition_ids* is empty.
        """
        _refuse_none_named(partition_ids)
        if partition_ids is None:
            return Pauses()
        if self.group is not None:
            raise ConfigurationError(
                f"the whole group is paused ({self.group.reason!r}), so partition "
                f"{min(partition_ids)} cannot resume alone: resume the whole group"
            )
        left = {p: pause for p, pause in self.by_partition.items() if p not in partition_ids}
        return replace(self, by_partition=left)

    def without(self, left: "Pauses") -> "Pauses":
        """Return the pauses of which *left* has none for the same partition or the group."""
        group = self.group if left.group is None else None
        ended = {p: each for p, each in self.by_partition.items() if p not in left.by_partition}
        return Pauses(group=group, by_partition=ended)

    def as_bytes(self) -> bytes:
        """Encode the pauses as JSON."""
        content = {
            "version": _VERSION,
            "group": None if self.group is None else _as_json(self.group),
            "partitions": {p: _as_json(pause) for p, pause in sorted(self.by_partition.items())},
        }
        return json.dumps(content, ensure_ascii=False).encode()


NO_PAUSES: Final = Pauses()


def unreadable(error: StoreCorruptError, since: datetime) -> Pauses:
    """Return the pauses to use if the record cannot be read: the whole group is paused.

    Events that are delivered too late can be caught up; those that are delivered in spite of a
    pause cannot be taken back.
    """
    return Pauses(group=Pause(since=since, reason=str(error)))


def pauses_in(content: bytes) -> Pauses:
    """Decode the record.

    Raises:
        StoreCorruptError: it is damaged, or a later version of eventproc wrote it.
    """
    try:
        found: Mapping[str, Any] = read_json(content)
        version = int(found["version"])
        if version <= _VERSION:
            group = found["group"]
            return Pauses(
                group=None if group is None else _pause_in(group),
                by_partition={str(p): _pause_in(pause) for p, pause in found["partitions"].items()},
            )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreCorruptError(
            "the group's record of pauses is damaged: resume the whole group, which writes a new "
            "one, and pause again what has to be paused"
        ) from error
    raise StoreCorruptError(
        f"the group's record of pauses has version {version}, written by a later eventproc: use "
        "that"
    )


def _refuse_none_named(partition_ids: Collection[str] | None) -> None:
    """Refuse an empty collection: a filter that found nothing must not mean the whole group.

    Text is refused, too: it would be a partition for each character.
    """
    if isinstance(partition_ids, str):
        raise ConfigurationError(
            f"partition_ids is the text {partition_ids!r}: pass a list, [{partition_ids!r}]"
        )
    if partition_ids is not None and not partition_ids:
        raise ConfigurationError(
            "partition_ids is empty, so no partition is named: name some, or pass None for the "
            "whole group"
        )


def _as_json(pause: Pause) -> dict[str, str]:
    return {"since": pause.since.isoformat(), "reason": pause.reason}


def _pause_in(found: Mapping[str, Any]) -> Pause:
    since = datetime.fromisoformat(found["since"])
    if since.tzinfo is None:
        raise ValueError("a time without a time zone")
    return Pause(since=since, reason=str(found["reason"]))
