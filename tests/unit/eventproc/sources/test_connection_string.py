"""Connection strings are checked when they are parsed, and no message shows their key."""

from contextlib import suppress

import pytest
from azure.core.credentials import AzureSasCredential
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import ConfigurationError
from eventproc.sources._connection_string import parse_connection_string
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.eventhubs._client import parse_address
from eventproc.sources.eventhubs._options import Transport
from eventproc.sources.kafka._address import address_in

KEY = "c2VjcmV0LWtleQ=="
NAMESPACE = "contoso.servicebus.windows.net"
OF_NAMESPACE = (
    f"Endpoint=sb://{NAMESPACE}/;SharedAccessKeyName=RootManageSharedAccessKey;"
    f"SharedAccessKey={KEY}"
)
OF_HUB = f"{OF_NAMESPACE};EntityPath=orders"
SIGNATURE = "SharedAccessSignature sr=sb%3a%2f%2fcontoso&sig=abc%3d&se=1795205646&skn=listen"
OF_EMULATOR = (
    "Endpoint=sb://127.0.0.1:40299;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
)


def test_the_connection_string_of_a_hub_names_it():
    """``EntityPath`` is enough."""
    parsed = parse_connection_string(OF_HUB)

    assert (parsed.fully_qualified_namespace, parsed.eventhub_name) == (NAMESPACE, "orders")
    assert (parsed.key_name, parsed.key) == ("RootManageSharedAccessKey", KEY)
    assert not parsed.is_emulator


def test_the_connection_string_may_be_in_a_file(tmp_path):
    """As a mounted secret of Kubernetes."""
    (tmp_path / "hub").write_text(f"{OF_HUB}\n")

    assert parse_connection_string(f"file:{tmp_path}/hub").key == KEY


def test_the_connection_string_of_a_namespace_needs_a_hub_name():
    """The portal's string of a namespace has no ``EntityPath``."""
    assert parse_connection_string(OF_NAMESPACE, "orders").eventhub_name == "orders"


def test_hub_name_and_entity_path_may_be_equal():
    """Names of event hubs are compared without regard to case."""
    assert parse_connection_string(OF_HUB, "Orders").eventhub_name == "Orders"


def test_the_namespace_of_the_emulator_has_its_port():
    """It is part of the keys of records, as Azure SDK processors write them."""
    parsed = parse_connection_string(OF_EMULATOR, "hub")

    assert parsed.fully_qualified_namespace == "127.0.0.1:40299"
    assert parsed.is_emulator


def test_a_signature_may_replace_the_key():
    """Its blanks and equals signs are kept."""
    string = f"Endpoint=sb://{NAMESPACE};SharedAccessSignature={SIGNATURE};EntityPath=orders"

    assert parse_connection_string(string).signature == SIGNATURE


def test_the_case_of_names_of_parts_does_not_matter():
    """As in Azure's client."""
    assert parse_connection_string(OF_HUB.replace("EntityPath", "entitypath")) is not None


WRONG = {
    "empty": ("", "orders", "empty"),
    "blank": (" \n", "orders", "empty"),
    "line break at the end": (f"{OF_HUB}\n", None, "line break"),
    "blank at the front": (f" {OF_HUB}", None, "blanks"),
    "blank after a semicolon": (OF_HUB.replace(";S", "; S"), None, "part 2"),
    "a bare key": (KEY.strip("="), "orders", "part 1"),
    "no endpoint": (OF_HUB.partition(";")[2], None, "no Endpoint"),
    "endpoint without scheme": (OF_HUB.replace("sb://", ""), None, "sb://"),
    "endpoint with a wrong port": (OF_HUB.replace(".net/", ".net:x/"), None, "sb://"),
    "no hub": (OF_NAMESPACE, None, "eventhub_name is not given"),
    "two hubs": (
        OF_HUB,
        "invoices",
        "eventhub_name is 'invoices': the connection string is for event hub 'orders'",
    ),
    "hub of blanks": (OF_NAMESPACE, " ", "eventhub_name"),
    "no key": (OF_HUB.replace(f"SharedAccessKey={KEY};", ""), None, "no SharedAccessKey."),
    "no key name": (
        OF_HUB.replace("SharedAccessKeyName=RootManageSharedAccessKey;", ""),
        None,
        "no SharedAccessKeyName",
    ),
    "nothing to sign with": (f"Endpoint=sb://{NAMESPACE}/", "orders", "neither"),
    "key twice": (f"{OF_HUB};SharedAccessKey={KEY}", None, "part 5"),
    "emulator with a capital": (
        OF_EMULATOR.replace("=true", "=True"),
        "hub",
        "UseDevelopmentEmulator=true, in lower case",
    ),
    "port without emulator": (
        OF_HUB.replace(".net/", ".net:5672/"),
        None,
        "UseDevelopmentEmulator=true",
    ),
}


@pytest.mark.parametrize(("conn_str", "eventhub_name", "remedy"), WRONG.values(), ids=WRONG)
def test_a_wrong_string_is_refused_with_a_remedy_and_without_the_key(
    conn_str, eventhub_name, remedy
):
    """At construction, before anything is connected."""
    with pytest.raises(ConfigurationError) as caught:
        EventHubSource.from_connection_string(conn_str, eventhub_name=eventhub_name)

    assert remedy in str(caught.value)
    assert KEY.strip("=") not in str(caught.value)


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=80))
def test_any_text_is_parsed_or_raises_configuration_error(text):
    """No other error is raised."""
    with suppress(ConfigurationError):
        parsed = parse_connection_string(f"Endpoint=sb://h/;{text}", "hub")

        assert parsed.eventhub_name == "hub"


@given(st.data())
def test_the_error_for_a_damaged_string_does_not_show_its_key(data):
    """Wherever it was cut, and whichever character is missing."""
    begin = data.draw(st.integers(0, len(OF_HUB) - len(KEY)))
    end = data.draw(st.integers(begin, len(OF_HUB)))
    missing = data.draw(st.integers(0, len(OF_HUB)))
    damaged = OF_HUB[:missing] + OF_HUB[missing + 1 :]
    for string in (OF_HUB[begin:end], damaged):
        message = ""
        try:
            parse_connection_string(string)
        except ConfigurationError as error:
            message = str(error)

        assert KEY[:8] not in message


def test_the_repr_of_a_source_or_parsed_string_does_not_show_the_key():
    """They may be logged."""
    parsed = parse_connection_string(OF_HUB)
    source = EventHubSource.from_connection_string(OF_HUB)

    assert KEY not in repr(parsed)
    assert repr(source) == f"EventHubSource({NAMESPACE!r}, 'orders')"
    assert KEY not in str(vars(source))


@pytest.mark.parametrize("namespace", ["", "sb://contoso", "a/b", " contoso", OF_HUB])
def test_a_namespace_that_is_not_a_host_name_is_refused(namespace):
    """A connection string given in its place is not shown."""
    with pytest.raises(ConfigurationError) as caught:
        EventHubSource(namespace, "orders", AzureSasCredential(SIGNATURE))

    assert "not the place of a connection string" in str(caught.value)
    assert KEY.strip("=") not in str(caught.value)


def test_the_connection_string_of_an_iot_hub_names_the_one_to_take():
    """Its devices and services have one of their own; events are read at another endpoint."""
    given = "HostName=plant.azure-devices.net;SharedAccessKeyName=service;SharedAccessKey=c2VjcmV0"
    with pytest.raises(ConfigurationError, match=r"of an IoT hub.* Built-in endpoints") as refused:
        parse_connection_string(given)

    assert "c2VjcmV0" not in str(refused.value)


@pytest.mark.parametrize(
    ("transport", "is_over_websockets"),
    [("", False), (";TransportType=Amqp", False), (";TransportType=AmqpWebSockets", True)],
)
def test_the_transport_in_a_connection_string_is_used(transport, is_over_websockets):
    """Where port 5671 is blocked, nothing else would connect."""
    _, options = parse_address(f"{OF_HUB}{transport}", None, None)

    assert parse_connection_string(f"{OF_HUB}{transport}").is_over_websockets == is_over_websockets
    assert options.transport is (Transport.WEBSOCKET if is_over_websockets else Transport.AMQP)


def test_a_transport_without_an_effect_is_refused():
    """Over Kafka there are no WebSockets, and others do not exist."""
    with pytest.raises(ConfigurationError, match="no effect over Kafka: remove it"):
        address_in(f"{OF_HUB};TransportType=AmqpWebSockets", None, None)
    with pytest.raises(ConfigurationError, match="TransportType=Http in the connection string"):
        parse_connection_string(f"{OF_HUB};TransportType=Http")
