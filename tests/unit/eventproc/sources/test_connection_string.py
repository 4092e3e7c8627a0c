"""A connection string is checked at the door, and its key stays there."""

from contextlib import suppress

import pytest
from azure.core.credentials import AzureSasCredential
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import ConfigurationError
from eventproc.sources.connection_string import parse_connection_string
from eventproc.sources.eventhubs import EventHubSource

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


def test_a_hub_s_own_string_names_the_hub():
    """``EntityPath`` is enough."""
    parsed = parse_connection_string(OF_HUB)

    assert (parsed.fully_qualified_namespace, parsed.eventhub_name) == (NAMESPACE, "orders")
    assert (parsed.key_name, parsed.key) == ("RootManageSharedAccessKey", KEY)
    assert not parsed.is_emulator


def test_a_namespace_s_string_needs_the_hub_beside_it():
    """The portal's namespace policy has no ``EntityPath``."""
    assert parse_connection_string(OF_NAMESPACE, "orders").eventhub_name == "orders"


def test_hub_and_entity_path_may_say_the_same():
    """Event hubs are compared without regard to case."""
    assert parse_connection_string(OF_HUB, "Orders").eventhub_name == "Orders"


def test_the_emulator_keeps_its_port_and_has_no_tls():
    """The port is a part of the records' key, as Azure's own processors write it."""
    parsed = parse_connection_string(OF_EMULATOR, "hub")

    assert parsed.fully_qualified_namespace == "127.0.0.1:40299"
    assert parsed.is_emulator


def test_a_signature_stands_for_a_key():
    """Its blank and its equals signs are its own."""
    string = f"Endpoint=sb://{NAMESPACE};SharedAccessSignature={SIGNATURE};EntityPath=orders"

    assert parse_connection_string(string).signature == SIGNATURE


def test_names_of_parts_are_compared_without_regard_to_case():
    """As Azure's client compares them."""
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
    "no hub": (OF_NAMESPACE, None, "which event hub"),
    "two hubs": (OF_HUB, "invoices", "'orders' (its EntityPath), but eventhub_name is 'invoices'"),
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
def test_whatever_is_pasted_gives_a_source_or_one_clear_error(text):
    """Nothing but ``ConfigurationError`` leaves the parser."""
    with suppress(ConfigurationError):
        parsed = parse_connection_string(f"Endpoint=sb://h/;{text}", "hub")

        assert parsed.eventhub_name == "hub"


@given(st.data())
def test_no_damage_to_a_string_makes_it_show_its_key(data):
    """Cut it anywhere, and lose any one character: the key is not in the message."""
    begin = data.draw(st.integers(0, len(OF_HUB) - len(KEY)))
    end = data.draw(st.integers(begin, len(OF_HUB)))
    lost = data.draw(st.integers(0, len(OF_HUB)))
    damaged = OF_HUB[:lost] + OF_HUB[lost + 1 :]
    for string in (OF_HUB[begin:end], damaged):
        said = ""
        try:
            parse_connection_string(string)
        except ConfigurationError as error:
            said = str(error)

        assert KEY[:8] not in said


def test_neither_repr_nor_the_parsed_string_shows_the_key():
    """They end up in logs."""
    parsed = parse_connection_string(OF_HUB)
    source = EventHubSource.from_connection_string(OF_HUB)

    assert KEY not in repr(parsed)
    assert repr(source) == f"EventHubSource({NAMESPACE!r}, 'orders')"
    assert KEY not in str(vars(source))


@pytest.mark.parametrize("namespace", ["", "sb://contoso", "a/b", " contoso", OF_HUB])
def test_a_namespace_is_a_bare_host_name(namespace):
    """A connection string in its place is refused without being shown."""
    with pytest.raises(ConfigurationError) as caught:
        EventHubSource(namespace, "orders", AzureSasCredential(SIGNATURE))

    assert "from_connection_string" in str(caught.value)
    assert KEY.strip("=") not in str(caught.value)
