"""The hub and the storage account, with a key or an identity, over AMQP or Kafka."""

import pytest

from eventproc._base.network import HttpProxy
from eventproc._command import main
from eventproc._command.app import app
from eventproc._command.arguments.access import HubAccess, StorageAccess, TransportName
from eventproc._command.arguments.sources import make_publisher, make_source
from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import EventHubPublisher, EventHubSource
from eventproc.sources.kafka import KafkaEventSource, KafkaPublisher

HOST = "contoso.servicebus.windows.net"
KEY = f"Endpoint=sb://{HOST}/;SharedAccessKeyName=a;SharedAccessKey=c2VjcmV0"
STORAGE_KEY = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"
KAFKA = TransportName.KAFKA


SECRETS = {
    "--connection-string": "EVENTPROC_CONNECTION_STRING",
    "--storage-connection-string": "EVENTPROC_STORAGE_CONNECTION_STRING",
    "--proxy": "EVENTPROC_PROXY",
}


def make(*arguments, **settings):
    return arguments, settings


@pytest.mark.parametrize("option", SECRETS)
@pytest.mark.parametrize("verb", ["run", "status", "scale", "verify"])
def test_a_secret_may_be_in_a_file(tmp_path, monkeypatch, verb, option):
    """Which the option names, or its variable."""
    (tmp_path / "secret").write_text(f"{KEY}\n")
    words = ["orders:Handler"] if verb == "run" else []
    words += ["--store", "blob:checkpoints"]
    given = [*words, option, f"file:{tmp_path}/secret"]
    by_option = app.get_command(None, verb).make_context(verb, given)
    monkeypatch.setenv(SECRETS[option], f"file:{tmp_path}/secret")
    by_variable = app.get_command(None, verb).make_context(verb, words)
    name = option.lstrip("-").replace("-", "_")

    assert (by_option.params[name], by_variable.params[name]) == (KEY, KEY)


@pytest.mark.parametrize("option", SECRETS)
def test_a_file_without_a_secret_is_refused_by_the_name_of_the_option(option, monkeypatch, capsys):
    """Before anything is connected; also if it is given by the variable."""
    monkeypatch.setenv(SECRETS[option], "file:/nowhere/at/all")

    assert main(["status", "--eventhub", "orders", "--store", "blob:checkpoints"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"eventproc: {option} ({SECRETS[option]}")
    assert "): the secret's file '/nowhere/at/all' does not exist" in shown


def test_a_namespace_is_reached_with_the_identity_of_the_process():
    """The credential is the same for all that is made with the same network."""
    (host, hub, credential), settings = HubAccess(namespace=HOST).over_amqp(make, "orders")
    (_, _, another), _ = HubAccess(namespace=HOST).over_amqp(make, "orders")
    (_, _, other), _ = HubAccess(namespace=HOST, ca_bundle="ca.pem").over_amqp(make, "orders")

    assert (host, hub) == (HOST, "orders")
    assert credential is another
    assert credential is not other
    assert settings["options"] == HubAccess().options()


def test_the_options_of_a_connection_are_those_that_are_given():
    """Nothing is lost on the way to the source."""
    proxy = HttpProxy.from_url("http://proxy:3128")
    options = HubAccess(
        custom_endpoint="sb://gateway:443",
        transport=TransportName.WEBSOCKET,
        ca_bundle="ca.pem",
        proxy="http://proxy:3128",
    ).options()

    assert options.custom_endpoint == "sb://gateway:443"
    assert options.transport.value == "websocket"
    assert (options.ca_bundle, options.http_proxy) == ("ca.pem", proxy)


@pytest.mark.parametrize(
    ("access", "hub", "message"),
    [
        (HubAccess(), "orders", "which Event Hubs namespace"),
        (HubAccess(namespace=HOST, connection_string=KEY), "orders", "not both"),
        (HubAccess(namespace=HOST), "", "which event hub"),
        (HubAccess(namespace=HOST, transport=KAFKA), "", "which event hub"),
        (HubAccess(connection_string=KEY, transport=KAFKA), "o", "--transport kafka needs --name"),
        (
            HubAccess(
                namespace=HOST,
                transport=KAFKA,
                proxy="http://p:1",
            ),
            "orders",
            "--proxy is not possible with --transport kafka",
        ),
        (
            HubAccess(connection_string="kafka://b:9092", custom_endpoint="sb://x"),
            "orders",
            "--custom-endpoint is only for Event Hubs",
        ),
        (
            HubAccess(connection_string="kafka://b:9092", transport=TransportName.WEBSOCKET),
            "orders",
            "--transport is only for Event Hubs",
        ),
    ],
)
def test_a_hub_that_is_not_clear_is_refused(access, hub, message):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=message):
        make_source(access, hub)


def test_the_transport_chooses_the_protocol():
    """``kafka`` reads port 9093 of the namespace, or the endpoint that is given."""
    amqp = make_source(HubAccess(namespace=HOST), "orders")
    kafka = make_source(HubAccess(namespace=HOST, transport=KAFKA), "orders")
    gateway = HubAccess(namespace=HOST, transport=KAFKA, custom_endpoint="sb://gateway:9443/")

    assert isinstance(amqp, EventHubSource)
    assert isinstance(kafka, KafkaEventSource)
    assert repr(kafka) == f"KafkaEventSource('{HOST}:9093', 'orders')"
    assert repr(make_source(gateway, "orders")) == "KafkaEventSource('gateway:9443', 'orders')"


def test_a_publisher_uses_the_transport_that_was_chosen():
    """As the source does: what replays letters needs no second protocol."""
    kafka = make_publisher(HubAccess(namespace=HOST, transport=KAFKA), "orders")
    amqp = make_publisher(HubAccess(namespace=HOST), "orders")

    assert isinstance(kafka, KafkaPublisher)
    assert kafka._address.bootstrap_servers == f"{HOST}:9093"
    assert isinstance(amqp, EventHubPublisher)


def test_a_sink_of_letters_uses_amqp():
    """The endpoint is Kafka's, so it is left out."""
    access = HubAccess(namespace=HOST, transport=KAFKA, custom_endpoint="sb://gateway:9443")
    websocket = HubAccess(
        namespace=HOST, transport=TransportName.WEBSOCKET, custom_endpoint="sb://x"
    )

    assert access.without_kafka() == HubAccess(namespace=HOST)
    assert websocket.without_kafka() == websocket


def test_no_secret_is_shown():
    """A connection string has a key, and a proxy may have a password."""
    access = HubAccess(
        connection_string=KEY, storage_connection_string=STORAGE_KEY, proxy="http://a:c2VjcmV0@b"
    )
    assert "c2VjcmV0" not in repr(access)


def test_an_account_is_reached_with_the_identity():
    """The credential is the same for all that is made."""
    (url, container, credential), _ = StorageAccess(storage_account="contoso").in_account(
        make, "box", "it"
    )
    (_, _, another), _ = StorageAccess(storage_account="contoso").in_account(make, "box", "it")

    assert (url, container) == ("https://contoso.blob.core.windows.net", "box")
    assert credential is another


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (StorageAccess(), "--store needs the storage account"),
        (
            StorageAccess(storage_account="Con/toso"),
            "--storage-account is 'Con/toso'",
        ),
        (
            StorageAccess(storage_account="contoso", storage_connection_string=STORAGE_KEY),
            "not both",
        ),
    ],
)
def test_an_account_that_is_not_clear_is_refused(access, message):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=message):
        access.in_account(make, "box", "--store")


def test_certificates_and_proxy_reach_the_store():
    """With a key as with an identity, beside the settings of the option."""
    proxy = HttpProxy(host="proxy", port=3128)
    network = {"ca_bundle": "ca.pem", "proxy": "http://proxy:3128"}
    expected = {"ca_bundle": "ca.pem", "http_proxy": proxy, "creates": True}
    made = []

    class Store:
        def __init__(self, *arguments, **settings):
            made.append((arguments[:2], settings))

        @classmethod
        def from_connection_string(cls, *arguments, **settings):
            return cls(*arguments, **settings)

    StorageAccess(storage_account="contoso", **network).in_account(Store, "box", "it", creates=True)
    StorageAccess(storage_connection_string=STORAGE_KEY, **network).in_account(
        Store, "box", "it", creates=True
    )

    assert made == [
        (("https://contoso.blob.core.windows.net", "box"), expected),
        ((STORAGE_KEY, "box"), expected),
    ]


@pytest.mark.parametrize(
    "hub",
    [
        {"namespace": "contoso.servicebus.chinacloudapi.cn"},
        {"connection_string": KEY.replace("windows.net", "chinacloudapi.cn")},
    ],
    ids=["namespace", "connection string"],
)
def test_an_account_is_in_the_cloud_of_the_hub(hub):
    """Its name alone does not say in which; the hub may be reached with a key."""
    (url, *_), _ = HubAccess(storage_account="contoso", **hub).in_account(make, "box", "it")

    assert url == "https://contoso.blob.core.chinacloudapi.cn"
