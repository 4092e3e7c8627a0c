"""Opening a blob store: errors come at once, name value and remedy, and never contain the key."""

import gc
import pickle
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas
from azure.storage.blob.aio import BlobClient

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.blob._azure_container import BLOB_CLIENTS_MAX
from eventproc.errors import ConfigurationError, StoreRejectedError, StoreUnavailableError
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    Member,
    MemberResult,
    OwnershipClaim,
    WriteOutcome,
)
from tests.servers.ports import free_port

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="me", expected_etag=None)
KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="


class UnusedCredential:
    """A token credential that must not be used, because the URL is plain http."""

    async def get_token(self, *_: str, **__: object) -> AccessToken:
        """Fail: a token would be sent in clear text."""
        raise AssertionError("a token must not travel over plain http")

    async def close(self) -> None:
        """Do nothing."""


def account_of(storage):
    """Return the account's URL, name and key."""
    with ContainerClient.from_connection_string(storage, "any") as client:
        url = f"{client.scheme}://{client.primary_hostname}"
        return url, client.credential.account_name, client.credential.account_key


async def refusal(store):
    """Open a store and expect a ``ConfigurationError``; return its whole traceback and its
    message."""
    with pytest.raises(ConfigurationError) as caught:
        await store.open()
    return "".join(traceback.format_exception(caught.value)), str(caught.value)


async def works(store):
    """Return whether a store can be opened, written and listed."""
    async with store:
        [result] = await store.claim_ownership(GROUP, [CLAIM])
        snapshot = await store.list_ownership(GROUP)
    return result.outcome is WriteOutcome.WON and len(snapshot.ownerships) == 1


async def test_a_missing_container_is_an_error_that_names_the_remedy(storage):
    """A container is not created unless asked for, so a typo in its name does not start an empty
    group."""
    printed, message = await refusal(
        BlobCheckpointStore.from_connection_string(storage, "not-there")
    )

    assert "/not-there cannot be used: the container does not exist" in message
    assert "create_container=True" in message
    assert account_of(storage)[2] not in printed


async def test_create_container_creates_the_container_once(storage, container):
    """With ``create_container=True`` a store can be opened again, and closed twice."""
    name = f"{container}-new"
    store = BlobCheckpointStore.from_connection_string(storage, name, create_container=True)
    for _ in range(2):
        await store.open()
        await store.close()
        await store.close()
    with ContainerClient.from_connection_string(storage, name) as client:
        client.delete_container()

    assert repr(store).endswith("-new')")


async def test_a_wrong_key_is_an_error_that_does_not_contain_the_key(storage, container):
    """The key is in neither the message, the traceback nor the repr."""
    url, name, _ = account_of(storage)
    for key, words in (
        (KEY, "the credential is refused (403 "),
        ("not base64!", "no request can be signed with the credential (AzureSigningError)"),
    ):
        store = BlobCheckpointStore(url, container, AzureNamedKeyCredential(name, key))
        printed, message = await refusal(store)

        assert words in message
        assert key not in printed + repr(store)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"AccountKey={KEY}",
        f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey={KEY}",
        f"nonsense;{KEY}",
    ],
)
def test_a_malformed_connection_string_is_an_error_that_does_not_contain_it(text):
    """The traceback does not contain the account key, although the vendor's message may quote its
    input."""
    with pytest.raises(ConfigurationError, match="connection string of a storage account") as err:
        BlobCheckpointStore.from_connection_string(text, "container")

    assert KEY not in "".join(traceback.format_exception(err.value))


@pytest.mark.parametrize("name", ["", "ab", "Upper", "a--b", "-a", "a" * 64, "a/b"])
def test_an_invalid_container_name_is_refused_at_construction(name):
    """The service's naming rules are checked before the first request."""
    with pytest.raises(ConfigurationError, match=r"give 3 to 63 .* on both sides of each dash"):
        BlobCheckpointStore("https://x.blob.core.windows.net", name)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("x.blob.core.windows.net", {}),
        ("https://x.blob.core.windows.net", {"request_timeout": timedelta(0)}),
        ("https://x.blob.core.windows.net", {"concurrency_max": 0}),
        ("http://x.blob.core.windows.net", {"credential": UnusedCredential()}),
    ],
)
def test_invalid_settings_are_refused_at_construction(url, options):
    """A URL without a scheme, a time-out or concurrency of zero, and a token over plain http are
    errors."""
    with pytest.raises(ConfigurationError):
        BlobCheckpointStore(url, "container", **options)


async def test_every_kind_of_credential_opens_the_store(storage, container):
    """A key as an object, and a SAS as text, as an object, in the URL and in a connection
    string."""
    url, name, key = account_of(storage)
    sas = generate_container_sas(
        name,
        container,
        account_key=key,
        permission=ContainerSasPermissions(read=True, write=True, delete=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    stores = [
        BlobCheckpointStore(url, container, AzureNamedKeyCredential(name, key)),
        BlobCheckpointStore(url, container, sas),
        BlobCheckpointStore(url, container, AzureSasCredential(sas)),
        BlobCheckpointStore(f"{url}?{sas}", container),
        BlobCheckpointStore.from_connection_string(
            f"BlobEndpoint={url};SharedAccessSignature={sas}", container
        ),
    ]
    outcomes = []
    for store in stores:
        async with store:
            [result] = await store.claim_ownership(GROUP, [CLAIM])
            await store.list_ownership(GROUP)
            outcomes.append(result.outcome)

    assert outcomes == [WriteOutcome.WON] + [WriteOutcome.LOST] * 4
    assert sas[-20:] not in "".join(map(repr, stores))


def sas_for(storage, container, rights):
    """Return a SAS token for the container with the given rights: r, w, d and l."""
    _, name, key = account_of(storage)
    return generate_container_sas(
        name,
        container,
        account_key=key,
        permission=ContainerSasPermissions.from_string(rights),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )


async def test_a_write_without_the_write_right_is_unknown_with_a_reason(storage, container, caplog):
    """Every kind of write returns ``UNKNOWN`` with the error. A store that never wrote logs
    nothing."""
    url = account_of(storage)[0]
    member = Member(owner_id="me", incarnation="1")
    update = CheckpointUpdate(
        partition_id="0", offset="5", sequence_number=5, replaces=None, writer="w"
    )
    async with BlobCheckpointStore(url, container, sas_for(storage, container, "rl")) as store:
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        results: list[ClaimResult | MemberResult | CheckpointResult] = [
            claim,
            await store.announce_member(GROUP, member),
            await store.update_checkpoint(GROUP, update),
        ]

    assert {result.outcome for result in results} == {WriteOutcome.UNKNOWN}
    assert all(isinstance(result.error, StoreRejectedError) for result in results)
    assert "lacks the right to write blobs" in str(claim.error)
    assert caplog.records == []


async def test_a_deletion_without_the_delete_right_is_logged_once_as_refused(
    storage, container, caplog
):
    """A refused deletion is ``UNKNOWN``; other calls go on, and repeating it logs nothing more."""
    url = account_of(storage)[0]
    async with BlobCheckpointStore(url, container, sas_for(storage, container, "rwl")) as store:
        result = await store.announce_member(GROUP, Member(owner_id="me", incarnation="1"))
        assert result.member is not None
        outcomes = []
        for _ in range(2):
            outcomes.append(await store.withdraw_member(GROUP, result.member))
            await store.list_members(GROUP)

    assert outcomes == [WriteOutcome.UNKNOWN] * 2
    assert [getattr(record, "event", "") for record in caplog.records] == ["store_refused"]
    assert "lacks the right to delete blobs" in caplog.records[0].error


async def test_a_revoked_key_makes_writes_unknown_and_reads_fail(storage, container):
    """A refused write is neither won nor lost; a refused read raises ``StoreRejectedError``."""
    url, name, key = account_of(storage)
    credential = AzureNamedKeyCredential(name, key)
    async with BlobCheckpointStore(url, container, credential) as store:
        store._connection.client.credential.account_key = KEY
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        with pytest.raises(StoreRejectedError, match="the credential is refused"):
            await store.list_ownership(GROUP)

    assert claim.outcome is WriteOutcome.UNKNOWN


async def test_a_deleted_container_makes_writes_unknown_and_reads_fail(storage, container):
    """Without the container no write can be won or lost, and reads raise ``StoreRejectedError``."""
    name = f"{container}-gone"
    async with BlobCheckpointStore.from_connection_string(
        storage, name, create_container=True
    ) as store:
        with ContainerClient.from_connection_string(storage, name) as client:
            client.delete_container()
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        with pytest.raises(StoreRejectedError, match="the container does not exist"):
            await store.list_ownership(GROUP)
        with pytest.raises(StoreRejectedError, match="the container does not exist"):
            await store.read_checkpoint(GROUP, "0")

    assert claim.outcome is WriteOutcome.UNKNOWN


async def test_a_service_that_does_not_answer_is_unavailable():
    """A refused connection raises ``StoreUnavailableError``, not ``ConfigurationError``.

    The error has the reason of the first attempt: the vendor's client does not retry until the
    request's time is over.
    """
    port = free_port()
    store = BlobCheckpointStore(
        f"http://127.0.0.1:{port}/account", "container", KEY, request_timeout=timedelta(seconds=5)
    )
    place = f"127.0.0.1:{port}/account/container"
    with pytest.raises(
        StoreUnavailableError, match=rf"{place} does not answer \(ClientConnectorError"
    ):
        await store.open()


async def test_a_request_that_hangs_ends_at_its_timeout(azurite):
    """A write is then ``UNKNOWN`` and a read raises; the store works again when the service
    does."""
    store = BlobCheckpointStore.from_connection_string(
        azurite.connection_string,
        "container",
        create_container=True,
    )
    async with store:
        timeout = store._connection._request_timeout
        # Short only while the service is paused, or a busy machine could exceed it.
        store._connection._request_timeout = timedelta(seconds=0.3)
        azurite.pause()
        try:
            [claim] = await store.claim_ownership(GROUP, [CLAIM])
            with pytest.raises(StoreUnavailableError):
                await store.list_ownership(GROUP)
        finally:
            azurite.resume()
        store._connection._request_timeout = timeout
        snapshot = await store.list_ownership(GROUP)
        # The service was paused, not stopped: it may carry out the claim now.
        owners = {record.owner_id for record in snapshot.ownerships}

    assert claim.outcome is WriteOutcome.UNKNOWN
    assert owners <= {"me"}


@pytest.mark.long
async def test_memory_does_not_grow_with_the_number_of_blobs(storage, container):
    """An export reads a hundred thousand of them."""

    def clients() -> int:
        return sum(isinstance(each, BlobClient) for each in gc.get_objects())

    store = BlobCheckpointStore.from_connection_string(storage, container)
    async with store:
        before = clients()
        for number in range(BLOB_CLIENTS_MAX + 100):
            await store.read_checkpoint(GROUP, str(number))
        assert clients() <= before + BLOB_CLIENTS_MAX


async def test_an_unopened_store_can_be_pickled(storage, container):
    """The copy can be opened: a pickled store has settings, and no connection."""
    store = BlobCheckpointStore.from_connection_string(storage, container)
    copy = pickle.loads(pickle.dumps(store))

    assert await works(copy)


async def test_a_blob_that_another_program_leases_is_named_with_the_remedy(storage, container):
    """Its record cannot be written; all others can."""
    claims = [
        OwnershipClaim(partition_id=partition, owner_id="me", expected_etag=None)
        for partition in ("0", "1")
    ]
    async with BlobCheckpointStore.from_connection_string(storage, container) as store:
        first = await store.claim_ownership(GROUP, claims)
        name = "ns/hub/$default/ownership/0"
        with ContainerClient.from_connection_string(storage, container) as client:
            lease = client.get_blob_client(name).acquire_lease()
            renewals = [
                replace(claim, expected_etag=result.ownership.etag if result.ownership else "")
                for claim, result in zip(claims, first, strict=True)
            ]
            leased, other = await store.claim_ownership(GROUP, renewals)
            lease.release()

    assert (leased.outcome, other.outcome) == (WriteOutcome.UNKNOWN, WriteOutcome.WON)
    assert f"another program has a lease on the blob /devstoreaccount1/{container}/{name}" in str(
        leased.error
    )
    assert "az storage blob lease break" in str(leased.error)
