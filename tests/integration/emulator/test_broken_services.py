"""``eventproc verify`` finds services that break what eventproc assumes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from azure.eventhub.exceptions import AuthenticationError

from checkpointstores.blob._azure_container import AzureContainer
from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc._command.verify import blob_storage
from eventproc._command.verify.bench import HubBench
from eventproc._command.verify.run import (
    Result,
    chapters_of,
    checks_in,
    remove_traces,
    require_usable,
    run_check,
)
from eventproc.emulator._hub import hub as emulated
from eventproc.emulator._hub.log import PartitionLog
from eventproc.emulator._links.outgoing_link import DeliveryLink
from eventproc.errors import ConfigurationError, StoreRejectedError
from eventproc.testing._store_contract.bench import Bench

from .test_assumptions import container_bench, hub_bench

CHECKS = {check.__name__: check for _, _, check in checks_in(chapters_of(None, None, None))}


class WithoutConditions(AzureContainer):
    """Writes whatever the ETag is."""

    async def put(self, name, metadata, body, *, etag):
        """Write on the ETag that is stored."""
        if etag is not None and (found := await self.read(name)):
            etag = found.etag
        return await super().put(name, metadata, body, etag=etag)


class Late(AzureContainer):
    """Its listings lack the newest blob."""

    async def list(self, prefix):
        """Return all blobs but one."""
        found = await super().list(prefix)
        newest = sorted(found.items, key=lambda item: (item.last_modified, item.etag))
        return replace(found, items=tuple(newest[:-1]))


class Skewed(AzureContainer):
    """Its answers have the date of another clock."""

    async def list(self, prefix):
        """Return a listing of an hour ago."""
        found = await super().list(prefix)
        return replace(found, as_of=found.as_of - timedelta(hours=1))


class Shouting(AzureContainer):
    """Returns metadata keys in capitals."""

    async def read(self, name, *, body_bytes_max=0):
        """Change the keys."""
        found = await super().read(name, body_bytes_max=body_bytes_max)
        keys = {key.upper(): value for key, value in found.metadata.items()} if found else {}
        return replace(found, metadata=keys) if found else None


class Merging(AzureContainer):
    """Adds new metadata to the old."""

    async def put(self, name, metadata, body, *, etag):
        """Write the old keys, too."""
        old = await self.read(name)
        whole = {**(old.metadata if old else {}), **metadata}
        return await super().put(name, whole, body, etag=etag)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (WithoutConditions, "claim_needs_the_etag_that_is_stored"),
        (Late, "a_listing_has_a_write_at_once"),
        (Skewed, "store_returns_its_time"),
        (Shouting, "metadata_comes_back_as_it_was_written"),
        (Merging, "new_metadata_replaces_the_old_and_keeps_the_body"),
    ],
)
async def test_a_broken_container_is_found(storage, container, broken, check):
    """Each by the check that is named for it."""
    async with container_bench(storage, container, broken) as bench:
        stores = Bench(store=bench.store, other=bench.store, lose_answers=None, records=9, rounds=2)
        needed = bench if check in vars(blob_storage) else stores
        finding = await run_check("Blob Storage", needed, CHECKS[check])

    assert finding.result is Result.DIFFERS, finding


def sends_too_much(monkeypatch):
    """Deliver one event more than credit was granted."""
    take = DeliveryLink._take
    monkeypatch.setattr(
        DeliveryLink, "_take", lambda self, count, size: take(self, count + 1, size)
    )


def displaces_nobody(monkeypatch):
    """Let every receiver read, whatever its level."""
    monkeypatch.setattr(emulated, "displaced_by", lambda *_: [])


def begins_an_event_late(monkeypatch):
    """Begin behind each position."""
    start_of = PartitionLog.start_of
    monkeypatch.setattr(PartitionLog, "start_of", lambda log, at: start_of(log, at) + 1)


def knows_one_spelling(monkeypatch):
    """Tell hubs apart by the case of their names."""
    find = emulated.Namespace.hub
    monkeypatch.setattr(
        emulated.Namespace,
        "hub",
        lambda self, name, path=None: find(self, name if name.islower() else "?", path),
    )


def spreads_keys(monkeypatch):
    """Take a partition in turn, whatever the key is."""
    keyless = emulated.Hub.partition_for
    monkeypatch.setattr(emulated.Hub, "partition_for", lambda self, _: keyless(self, []))


def is_always_new(monkeypatch):
    """Tell another time of creation at each request."""
    times = iter(range(10**12, 2 * 10**12))
    monkeypatch.setattr(emulated.Hub, "created_ms", property(lambda _: next(times)))


@pytest.mark.parametrize(
    ("breaks", "check"),
    [
        (sends_too_much, "no_more_events_come_than_credit_was_granted"),
        (displaces_nobody, "a_receiver_of_a_lower_level_is_refused"),
        (begins_an_event_late, "a_sequence_number_begins_after_or_at_its_event"),
        (knows_one_spelling, "names_of_hubs_and_groups_ignore_case"),
        (spreads_keys, "a_key_has_one_partition_and_its_order"),
        (is_always_new, "a_hub_keeps_the_time_of_its_creation"),
    ],
)
async def test_a_broken_emulator_is_found(monkeypatch, breaks, check):
    """Each by the check that is named for it."""
    breaks(monkeypatch)
    async with hub_bench() as bench:
        finding = await run_check("Event Hubs", bench, CHECKS[check])

    assert finding.result is Result.DIFFERS, finding


@pytest.mark.parametrize(
    ("rights", "words"),
    [("rl", "lacks the right to write blobs"), ("rwl", "lacks the right to delete blobs")],
)
async def test_a_container_that_the_credential_cannot_write_is_refused(
    storage, container, rights, words
):
    """Otherwise most checks would fail, and none of them for what the service does."""
    async with container_bench(storage, container) as blobs, hub_bench() as hub:
        signed = blobs.signed(rights, timedelta(hours=1))
        async with signed.store:
            with pytest.raises(StoreRejectedError, match=words):
                await require_usable(hub, signed.container)


class Silent(HubBench):
    """Nobody may send to its hub."""

    async def publish(self, partition_id, *bodies):
        """Refuse it, as the client does."""
        raise AuthenticationError("the claim Send is required")


async def test_a_hub_to_which_the_credential_cannot_send_is_refused(storage, container):
    """With the right that it lacks."""
    async with container_bench(storage, container) as blobs, hub_bench(Silent) as hub:
        with pytest.raises(ConfigurationError, match="Azure Event Hubs Data Sender"):
            await require_usable(hub, blobs.container)


class Sticky(AzureContainer):
    """Deletes nothing."""

    async def delete(self, name, *, etag):
        """Say that the blob was changed."""
        raise ConditionFailedError


async def test_blobs_that_cannot_be_deleted_are_told_and_end_nothing(storage, container):
    """The report of the checks must not be lost with them."""
    async with container_bench(storage, container, Sticky) as blobs:
        await blobs.container.put(blobs.folder + "ours", {}, None, etag=None)

        assert "1 of 1 blobs could not be deleted" in await remove_traces(blobs.container)


async def test_what_others_may_use_is_refused_and_stays(storage, container):
    """A blob, or an event, of somebody else: nothing is checked, and nothing removed."""
    async with container_bench(storage, container) as blobs, hub_bench() as hub:
        await require_usable(hub, blobs.container)
        await hub.publish("1", b"theirs")
        with pytest.raises(ConfigurationError, match=r"has or had events \(partitions 0, 1\)"):
            await require_usable(hub, blobs.container)
        await blobs.container.put("theirs", {}, None, etag=None)
        await blobs.container.put(blobs.folder + "ours", {}, None, etag=None)
        with pytest.raises(ConfigurationError, match="the container has 2 blobs"):
            await require_usable(hub, blobs.container)
        await remove_traces(blobs.container)
        left = [item.name for item in (await blobs.container.list("")).items]

    assert left == ["theirs"]
