"""The arguments of Azure's client: what they become, and what is refused."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import EventHubSharedKeyCredential, TransportType
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzuresStore
from azure.storage.blob import ContainerClient

from checkpointstores.memory import MemoryCheckpointStore
from eventproc.compat import BlobCheckpointStore
from eventproc.compat._positions import StartingPositions, position_of
from eventproc.compat._receive import Receive
from eventproc.compat._settings import ClientSettings, _credential
from eventproc.compat._user_store import OwnedAlone, UserStore
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition, LoadBalancingStrategy
from eventproc.sources.eventhubs import Transport
from tests.integration.compat.sides import AioOwnStore

KEY = AzureNamedKeyCredential("name", "key")
STORAGE = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1/devstoreaccount1;"
TIME = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)


def settings_of(**arguments):
    return ClientSettings("namespace", "hub", "$Default", KEY, arguments)


def options_of(**arguments):
    receive = Receive.of(arguments.pop("receive", {}))
    return settings_of(**arguments).source(receive)._hub.options


@pytest.fixture(name="east")
def _east(monkeypatch):
    """Local time is five and a half hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "IST-5:30")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    ("given", "is_inclusive", "expected"),
    [
        ("-1", False, EventPosition.earliest()),
        ("@latest", False, EventPosition.latest()),
        ("1207", True, EventPosition.from_offset("1207", is_inclusive=True)),
        (7, False, EventPosition.from_sequence_number(7)),
        (TIME, False, EventPosition(enqueued_time=TIME.replace(microsecond=678_000))),
        (
            TIME.replace(tzinfo=None),
            True,
            EventPosition(enqueued_time=TIME.replace(microsecond=678_000), is_inclusive=True),
        ),
        (
            TIME.astimezone(timezone(timedelta(hours=2))),
            False,
            EventPosition(enqueued_time=TIME.replace(microsecond=678_000)),
        ),
    ],
)
def test_a_starting_position(given, is_inclusive, expected):
    """A time without a zone is one of UTC, in milliseconds."""
    assert position_of(given, is_inclusive=is_inclusive) == expected


@pytest.mark.parametrize("given", [1.5, True, b"1"])
def test_what_is_no_position_is_refused(given):
    """By name."""
    with pytest.raises(TypeError, match="starting_position is"):
        position_of(given, is_inclusive=False)


def test_positions_by_partition():
    """A partition that is not named begins at its first event; inclusive may be a dict, too."""
    found = StartingPositions.of({"0": 5}, {"0": True, "1": True})
    single = StartingPositions.of(5, {"0": True})

    assert found.default == EventPosition.earliest()
    assert found.by_partition["0"].is_inclusive
    assert found.by_partition["1"] == EventPosition.earliest()
    assert not single.default.is_inclusive
    assert single.by_partition["0"].is_inclusive


def test_links_are_exclusive_if_there_is_a_store():
    """At level 0, as Azure's; an explicit level wins."""
    alone, stored = options_of(), options_of(checkpoint_store=AioOwnStore())
    higher = options_of(receive={"owner_level": 3})

    assert not alone.is_exclusive
    assert (stored.is_exclusive, stored.owner_level) == (True, 0)
    assert (higher.is_exclusive, higher.owner_level) == (True, 3)


def test_connections():
    """A proxy and a custom endpoint mean WebSockets, unless the transport is given."""
    proxy = {"proxy_hostname": "http://proxy", "proxy_port": 3128, "username": "u"}
    given = options_of(http_proxy=proxy, auth_timeout=7, user_agent="a", logging_enable=True)
    assert (given.http_proxy.url, given.http_proxy.username) == ("http://proxy:3128", "u")
    assert given.transport is Transport.WEBSOCKET
    assert given.connect_timeout == timedelta(seconds=7)
    assert given.is_wire_logged
    endpoint = {"custom_endpoint_address": "sb://gateway"}
    assert options_of(**endpoint).transport is Transport.WEBSOCKET
    assert options_of(**endpoint, transport_type=TransportType.Amqp).transport is Transport.AMQP
    assert not options_of(use_tls=False).is_tls_on


def test_prefetch_is_at_most_what_the_source_takes():
    """0 means the default."""
    assert options_of(receive={"prefetch": 50_000}).prefetch == 10_000
    assert options_of(receive={"prefetch": 0}).prefetch is None


def test_interval_and_expiration():
    """The expiration is six intervals by default; a short one shortens the interval."""
    receive = Receive.of({})
    default, short = settings_of(), settings_of(partition_ownership_expiration_interval=12)
    frequent = settings_of(load_balancing_interval=5)

    assert default.config(receive).ownership_expiration == timedelta(seconds=180)
    assert default.config(receive).load_balancing_interval == timedelta(seconds=30)
    assert short.config(receive).load_balancing_interval == timedelta(seconds=4)
    assert frequent.config(receive).ownership_expiration == timedelta(seconds=30)


def test_stores():
    """Ours hand over, and one of the user's balances by ownership alone."""
    blobs, own = BlobCheckpointStore.from_connection_string(STORAGE, "container"), AioOwnStore()
    everywhere, one = Receive.of({}), Receive.of({"partition_id": "1"})
    memory = MemoryCheckpointStore()

    def strategy(store):
        return settings_of(checkpoint_store=store).config(everywhere).load_balancing_strategy

    def made(store, receive):
        return settings_of(checkpoint_store=store).store(receive, None)

    assert strategy(blobs) is strategy(memory) is LoadBalancingStrategy.COOPERATIVE
    assert strategy(own) is LoadBalancingStrategy.GREEDY
    assert made(memory, everywhere) is memory
    assert isinstance(made(own, everywhere), UserStore)
    assert isinstance(made(blobs, one), OwnedAlone)
    assert made(blobs, everywhere) is not made(blobs, everywhere)


def test_azures_own_store_gets_one_warning():
    """It works, but by ownership alone."""
    store = AzuresStore.from_connection_string(STORAGE, "container")
    with pytest.warns(UserWarning, match="eventproc.compat") as warned:
        settings_of(checkpoint_store=store)

    assert len(warned) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"uamqp_transport": True}, "uamqp_transport"),
        ({"checkpoint_store": object()}, "list_ownership"),
    ],
)
def test_an_argument_that_cannot_be_kept_is_refused(arguments, words):
    """By name, as a ``ValueError``."""
    with pytest.raises(ValueError, match=words):
        settings_of(**arguments)


def test_the_public_receive_path_is_refused(monkeypatch):
    """It does not keep the encoded messages."""
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "public")
    with pytest.raises(ConfigurationError, match="EVENTPROC_RECEIVE_PATH"):
        settings_of()


def test_credentials():
    """Azure's wrappers of a key and a signature are unwrapped; others stay."""

    class Own:
        token_type = b"servicebus.windows.net:sastoken"

        def get_token(self, *scopes, **options):
            raise NotImplementedError

    class Signature(Own):
        token = "signature"

    key = _credential(EventHubSharedKeyCredential("name", "key"))

    assert key.named_key.name == "name"
    assert isinstance(_credential(Signature()), AzureSasCredential)
    assert _credential(KEY) is KEY
    with pytest.raises(ConfigurationError, match="Own"):
        _credential(Own())


async def test_the_blob_store_takes_azures_arguments():
    """And closes for either client."""
    with ContainerClient.from_connection_string(STORAGE, "container") as client:
        by_client = BlobCheckpointStore("", "", container_client=client)
    by_url = BlobCheckpointStore(
        "http://127.0.0.1:1/devstoreaccount1",
        "container",
        credential=AzureNamedKeyCredential("devstoreaccount1", "a2V5"),
        api_version="2019-07-07",
        retry_total=3,
    )
    by_text = BlobCheckpointStore.from_connection_string(STORAGE, "container", retry_total=3)

    assert repr(by_client.new_store()) == repr(by_url.new_store()) == repr(by_text.new_store())
    await by_url.close()
    async with by_text:
        pass
    with by_text:
        pass


async def test_a_credential_and_certificates_beside_a_connection_string_are_used():
    """The credential wins over the key in the string; a file that is not there is refused."""
    certificates = {"connection_verify": "/nowhere/certificates.pem"}
    given = BlobCheckpointStore.from_connection_string(STORAGE, "container", KEY, **certificates)

    assert given._arguments[-1] is KEY
    with pytest.raises(ConfigurationError, match="nowhere"):
        await given.new_store().open()


@pytest.mark.parametrize("arguments", [{"proxies": {}}, {"connection_verify": False}])
def test_the_blob_store_refuses_what_it_cannot_keep(arguments):
    """By name."""
    with pytest.raises(ConfigurationError, match=next(iter(arguments))):
        BlobCheckpointStore.from_connection_string(STORAGE, "container", **arguments)
