"""Opening a blob store: what cannot work is said at once, in full, and without the key."""

import pickle
import socket
import traceback
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas

from checkpointstores.blob import BlobCheckpointStore
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

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="me", expected_etag=None)
KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="


class NeverAsked:
    """A token credential of somebody who gave a plain http URL."""

    async def get_token(self, *_: str, **__: object) -> AccessToken:
        """Would hand out a token."""
        raise AssertionError("a token must not travel over plain http")

    async def close(self) -> None:
        """Nothing to close."""


def account_of(storage):
    """The account's URL, name and key."""
    with ContainerClient.from_connection_string(storage, "any") as client:
        url = f"{client.scheme}://{client.primary_hostname}"
        return url, client.credential.account_name, client.credential.account_key


async def refusal(store):
    """Open a store that must refuse; return everything that a program would print."""
    with pytest.raises(ConfigurationError) as caught:
        await store.open()
    return "".join(traceback.format_exception(caught.value)), str(caught.value)


async def works(store):
    """Whether a store opens and can do all it has to."""
    async with store:
        [result] = await store.claim_ownership(GROUP, [CLAIM])
        snapshot = await store.list_ownership(GROUP)
    return result.outcome is WriteOutcome.WON and len(snapshot.ownerships) == 1


async def test_a_missing_container_is_named_with_the_remedy(storage):
    """Nothing is created behind anybody's back: a typo must not begin an empty group."""
    printed, message = await refusal(
        BlobCheckpointStore.from_connection_string(storage, "not-there")
    )

    assert "/not-there cannot be used: the container does not exist" in message
    assert "create_container=True" in message
    assert account_of(storage)[2] not in printed


async def test_a_container_is_created_when_asked(storage, container):
    """Twice is fine, and so is one that exists."""
    name = f"{container}-new"
    store = BlobCheckpointStore.from_connection_string(storage, name, create_container=True)
    for _ in range(2):
        await store.open()
        await store.close()
        await store.close()
    with ContainerClient.from_connection_string(storage, name) as client:
        client.delete_container()

    assert repr(store).endswith("-new')")


async def test_a_wrong_key_is_refused_without_being_shown(storage, container):
    """Neither message nor traceback nor repr show the key."""
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
def test_a_malformed_connection_string_is_refused_without_being_shown(text):
    """The vendor's message may quote its input; ours does not."""
    with pytest.raises(ConfigurationError, match="connection string of a storage account") as err:
        BlobCheckpointStore.from_connection_string(text, "container")

    assert KEY not in "".join(traceback.format_exception(err.value))


@pytest.mark.parametrize("name", ["", "ab", "Upper", "a--b", "-a", "a" * 64, "a/b"])
def test_a_container_name_that_cannot_be_is_refused(name):
    """The service's rules, checked before the first request."""
    with pytest.raises(ConfigurationError, match="give 3 to 63"):
        BlobCheckpointStore("https://x.blob.core.windows.net", name)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("x.blob.core.windows.net", {}),
        ("https://x.blob.core.windows.net", {"request_timeout": timedelta(0)}),
        ("https://x.blob.core.windows.net", {"concurrency_max": 0}),
        ("http://x.blob.core.windows.net", {"credential": NeverAsked()}),
    ],
)
def test_settings_that_cannot_work_are_refused(url, options):
    """At construction, not hours later."""
    with pytest.raises(ConfigurationError):
        BlobCheckpointStore(url, "container", **options)


async def test_every_kind_of_key_opens_the_store(storage, container):
    """A key as text or object, a SAS as text, object, in the URL or in a connection string."""
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


def sas_for(storage, container, rights, *, lives=timedelta(hours=1)):
    """A SAS token for the container with these rights: r, w, d and l."""
    _, name, key = account_of(storage)
    return generate_container_sas(
        name,
        container,
        account_key=key,
        permission=ContainerSasPermissions.from_string(rights),
        expiry=datetime.now(UTC) + lives,
    )


@pytest.mark.parametrize(
    ("rights", "missing"), [("wdl", "read blobs"), ("rwd", "list blobs"), ("d", "list blobs")]
)
async def test_a_token_that_lacks_a_right_to_look_is_refused_at_the_door(
    storage, container, rights, missing
):
    """With the name of the right, before anything is claimed."""
    url = account_of(storage)[0]
    store = BlobCheckpointStore(url, container, sas_for(storage, container, rights))
    _, message = await refusal(store)

    assert f"the credential lacks the right to {missing} (403 " in message


async def test_a_token_that_expired_is_refused_at_the_door_with_its_time(storage, container):
    """The service itself does not say so."""
    url = account_of(storage)[0]
    sas = sas_for(storage, container, "rwdl", lives=timedelta(minutes=-1))
    _, message = await refusal(BlobCheckpointStore(url, container, sas))

    assert "the SAS token expired at 20" in message
    assert sas[-20:] not in message


async def test_a_write_without_the_right_is_unknown_and_says_why(storage, container, caplog):
    """Of each kind of record. Nothing is logged: who writes first is at a door, and says it."""
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


async def test_a_deletion_without_the_right_is_no_outage(storage, container, caplog):
    """The store answered, and goes on answering; only this is refused, and said once."""
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


async def test_a_key_that_is_taken_away_makes_writes_unknown(storage, container):
    """A refusal does not tell who owns the record; and trying again is pointless for a read."""
    url, name, key = account_of(storage)
    credential = AzureNamedKeyCredential(name, key)
    async with BlobCheckpointStore(url, container, credential) as store:
        assert store._azure is not None
        store._azure._client.credential.account_key = KEY
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        with pytest.raises(StoreRejectedError, match="the credential is refused"):
            await store.list_ownership(GROUP)

    assert claim.outcome is WriteOutcome.UNKNOWN


async def test_a_container_that_is_deleted_makes_writes_unknown(storage, container):
    """Without a container nobody can say who won."""
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


async def test_nobody_there_is_not_a_wrong_setting():
    """A service that does not answer may answer later.

    Each attempt says what it met: the vendor does not wait and try again behind it, until the
    request's own time is over.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = BlobCheckpointStore(
        f"http://127.0.0.1:{port}/account", "container", KEY, request_timeout=timedelta(seconds=5)
    )
    with pytest.raises(
        StoreUnavailableError, match=rf"127.0.0.1:{port}/account/container does not answer"
    ):
        await store.open()


async def test_a_silent_service_is_left_after_the_timeout(azurite):
    """A request that hangs ends at its own timeout, whatever the socket does."""
    store = BlobCheckpointStore.from_connection_string(
        azurite.connection_string,
        "container",
        create_container=True,
    )
    async with store:
        assert store._azure is not None
        patient_s = store._azure._request_timeout_s
        # Only for as long as nobody answers: what a busy machine takes says nothing.
        store._azure._request_timeout_s = 0.3
        azurite.pause()
        try:
            [claim] = await store.claim_ownership(GROUP, [CLAIM])
            with pytest.raises(StoreUnavailableError):
                await store.list_ownership(GROUP)
        finally:
            azurite.resume()
        store._azure._request_timeout_s = patient_s
        snapshot = await store.list_ownership(GROUP)
        # Frozen, not dead: what was sent then may be carried out now.
        owners = {record.owner_id for record in snapshot.ownerships}

    assert claim.outcome is WriteOutcome.UNKNOWN
    assert owners <= {"me"}


async def test_a_store_travels_until_it_is_opened(storage, container):
    """A recipe crosses process boundaries, a connection never does."""
    store = BlobCheckpointStore.from_connection_string(storage, container)
    copy = pickle.loads(pickle.dumps(store))

    assert await works(copy)


async def test_an_unopened_store_says_so(storage, container):
    """Not an AttributeError from deep inside."""
    store = BlobCheckpointStore.from_connection_string(storage, container)
    with pytest.raises(RuntimeError, match="the store is not open"):
        await store.list_ownership(GROUP)


async def test_a_refusal_after_the_first_write_is_logged_once(storage, container, caplog):
    """Whoever wrote before is at no door any more: only the log says why the outcome is unknown."""
    url, name, key = account_of(storage)
    async with BlobCheckpointStore(url, container, AzureNamedKeyCredential(name, key)) as store:
        [first] = await store.claim_ownership(GROUP, [CLAIM])
        assert store._azure is not None
        store._azure._client.credential.account_key = KEY
        claim = OwnershipClaim(partition_id="1", owner_id="me", expected_etag=None)
        refused = [(await store.claim_ownership(GROUP, [claim]))[0] for _ in range(2)]

    assert first.outcome is WriteOutcome.WON
    assert [result.outcome for result in refused] == [WriteOutcome.UNKNOWN] * 2
    assert [getattr(record, "event", "") for record in caplog.records] == ["store_refused"]
