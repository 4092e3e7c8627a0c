"""Run every check on an empty hub and an empty container, and remove what was written."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Final

from azure.eventhub.exceptions import AuthenticationError

from checkpointstores.blob._container import BlobContainer
from eventproc._command.verify import blob_storage, event_hubs
from eventproc._command.verify.bench import ContainerBench, HubBench
from eventproc.errors import ConfigurationError, StoreError
from eventproc.testing import ClauseReport
from eventproc.testing._clauses import clauses_of, described, run_clauses
from eventproc.testing._source_contract import every_source, logs
from eventproc.testing._source_contract.bench import OTHER_GROUP
from eventproc.testing._store_contract import (
    checkpoints,
    concurrency,
    group_records,
    members,
    ownership,
)
from eventproc.testing._store_contract.bench import Bench as StoreBench

_PARTITIONS_MIN: Final = 3
_RECORDS: Final = 5_001
"""One more than a page of a listing has at most."""

_ROUNDS: Final = 25
_DELETIONS_AT_ONCE: Final = 32
_OWN_BLOB: Final = re.compile(r"eventproc-verify/|[^/]*[0-9a-f]{32}[^/]*/")
"""How the names of all blobs begin that the checks write."""


class Result(StrEnum):
    """What a check found, in the order of the report."""

    DIFFERS = "differs from what we assume"
    DIFFERS_FROM_EMULATOR = "differs from the emulator"
    """As assumed by the code; but the emulator answers otherwise, so tests show something else."""

    NOT_CHECKED = "not checked"
    AS_ASSUMED = "as assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A check that was run."""

    service: str
    check: ClauseReport
    result: Result
    details: str = ""

    @property
    def title(self) -> str:
        """The name of the check, as words."""
        return self.check.name.replace("_", " ")


Chapters = Sequence[tuple[str, object, tuple[ModuleType, ...]]]
"""The name of each service, what its checks work with, and the modules that have them."""


def chapters_of(hub: object, container: object, stores: object) -> Chapters:
    """Return all checks, with what they work with."""
    of_stores = (ownership, checkpoints, members, group_records, concurrency)
    return (
        ("Event Hubs", hub, (every_source, logs, event_hubs)),
        ("Blob Storage", container, (blob_storage,)),
        ("Blob Storage", stores, of_stores),
    )


def checks_in(chapters: Chapters) -> Iterator[tuple[str, object, Callable[..., object]]]:
    """Yield service, bench and function of each check."""
    for service, bench, modules in chapters:
        for clause in clauses_of(*modules):
            yield service, bench, clause


async def run_check(service: str, bench: object, clause: Callable[..., object]) -> Finding:
    """Run one check."""
    try:
        (report,) = await run_clauses({clause: True}, lambda: bench, only=None, on_clause=None)  # type: ignore[dict-item]
    except AssertionError as error:
        why = str(error).removeprefix(f"{clause.__name__}: ")
        check = described(clause)
        return Finding(service=service, check=check, result=Result.DIFFERS, details=why)
    if report.took is None:
        result, details = Result.NOT_CHECKED, report.reason
    elif found := _differences(bench):
        result, details = Result.DIFFERS_FROM_EMULATOR, "; ".join(found)
    else:
        result, details = Result.AS_ASSUMED, ""
    return Finding(service=service, check=report, result=result, details=details)


def _differences(bench: object) -> list[str]:
    """Take what was noted."""
    noted = getattr(bench, "noted", None)
    found = list(noted.differences) if noted else []
    if noted:
        noted.differences.clear()
    return found


async def run_checks(
    hub: HubBench,
    container: ContainerBench,
    on_finding: Callable[[Finding], None],
    on_left: Callable[[str], None],
    *,
    records: int = _RECORDS,
    rounds: int = _ROUNDS,
) -> None:
    """Run every check, and delete the blobs that they wrote.

    Args:
        hub: An empty hub, opened.
        container: An empty container.
        on_finding: Called after each check.
        on_left: Told which blobs could not be deleted, also if a check raised an error.
        records: How many records make a long listing.
        rounds: How often each race is run.

    Raises:
        ConfigurationError: Hub or container cannot be used for this, or are not empty.
        StoreRejectedError: The credential lacks a right that the checks need.
    """
    async with container.store as store, container.address.checkpoint_store() as other:
        await require_usable(hub, container.container)
        stores = StoreBench(
            store=store, other=other, lose_answers=None, records=records, rounds=rounds
        )
        try:
            for service, bench, clause in checks_in(chapters_of(hub, container, stores)):
                on_finding(await run_check(service, bench, clause))
        finally:
            if left := await remove_traces(container.container):
                on_left(left)


async def require_usable(hub: HubBench, container: BlobContainer) -> None:
    """Refuse what others may use, and credentials that lack a right: most checks would fail.

    Raises:
        ConfigurationError: It has events or blobs, or lacks what the checks need.
        StoreRejectedError: Blobs cannot be written or deleted.
    """
    listing = await container.list("")
    if listing.items:
        raise ConfigurationError(
            f"the container has {len(listing.items)} blobs: give an empty one, which nobody else "
            "uses"
        )
    async with hub.source() as source:
        properties = await source.properties_of(await source.partition_ids())
        if len(properties) < _PARTITIONS_MIN:
            raise ConfigurationError(
                f"the event hub has {len(properties)} partitions: give one with {_PARTITIONS_MIN} "
                "or more"
            )
        used = [each.partition_id for each in properties if each.last_enqueued_sequence_number >= 0]
        if used:
            raise ConfigurationError(
                f"the event hub has or had events (partitions {', '.join(used)}): give a new one, "
                "which nobody else uses, and delete it afterwards"
            )
        try:
            await source.check_consumer_group(OTHER_GROUP)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"the event hub needs a consumer group {OTHER_GROUP!r} besides $Default: create it "
                f"(az eventhubs eventhub consumer-group create --name {OTHER_GROUP} ...)"
            ) from error
    name = f"{ContainerBench.folder}right"
    written = await container.put(name, {}, None, etag=None)
    await container.delete(name, etag=written.etag)
    try:
        await hub.publish("0", b"may be sent")
    except AuthenticationError as error:
        raise ConfigurationError(
            f"no events can be sent to the event hub: {error}. Give the identity the role Azure "
            "Event Hubs Data Sender, or the connection string the right Send"
        ) from error


async def remove_traces(container: BlobContainer) -> str:
    """Delete the blobs that checks wrote, and no others; say which could not be deleted."""
    room = asyncio.Semaphore(_DELETIONS_AT_ONCE)

    async def delete(name: str, etag: str) -> None:
        async with room:
            await container.delete(name, etag=etag)

    try:
        listing = await container.list("")
    except StoreError as error:
        return f"the blobs that the checks wrote could not be deleted: {error}"
    own = [item for item in listing.items if _OWN_BLOB.match(item.name)]
    deletions = (delete(item.name, item.etag) for item in own)
    answers = await asyncio.gather(*deletions, return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    if not errors:
        return ""
    return f"{len(errors)} of {len(own)} blobs could not be deleted: {errors[0]}"
