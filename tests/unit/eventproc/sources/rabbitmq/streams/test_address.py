"""Addresses are checked at construction; no message shows a password."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import ConfigurationError
from eventproc.sources.rabbitmq.streams import RabbitStreams
from eventproc.sources.rabbitmq.streams.address import address_of


def test_an_address_has_defaults_for_everything_but_the_host():
    """The port of streams, the user of a new broker, and the first virtual host."""
    address = address_of("rabbitmq-stream://broker", "orders", None)

    assert address.servers == (("broker", 5552),)
    assert (address.username, address.password) == ("guest", "guest")
    assert (address.virtual_host, address.is_tls) == ("/", False)
    assert address.namespace == "broker:5552"


def test_an_address_may_name_everything():
    """A percent sign quotes special characters; the virtual host is a part of the namespace."""
    address = address_of("rabbitmq-stream+tls://anna%40x:p%2Fw:d@[::1]:99/a%2Fb", "orders", None)

    assert address.servers == (("::1", 99),)
    assert (address.username, address.password) == ("anna@x", "p/w:d")
    assert (address.virtual_host, address.is_tls) == ("a/b", True)
    assert address.namespace == "a%2Fb@::1:99"


def test_the_port_of_tls_differs():
    """It is 5551."""
    assert address_of("rabbitmq-stream+tls://b", "orders", None).servers == (("b", 5551),)


def test_several_servers_need_a_namespace():
    """Otherwise the records would lie elsewhere when one of the servers is replaced."""
    url = "rabbitmq-stream://a,b:7/"
    with pytest.raises(ConfigurationError, match="2 servers: give namespace="):
        address_of(url, "orders", None)
    address = address_of(url, "orders", "cluster")

    assert (address.servers, address.shown) == ((("a", 5552), ("b", 7)), "a:5552,b:7")
    assert address.namespace == "cluster"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("amqp://u:s3cret@b/", "begins with rabbitmq-stream://.*not with amqp://"),
        ("u:s3cret@b", "not with no URL"),
        ("rabbitmq-stream://u:s3cret@b/?x=1", "question mark"),
        ("rabbitmq-stream://u:s3cret@b/#x", "question mark"),
        ("rabbitmq-stream://u:s3cret/1@b/", "%2F for /"),
        ("rabbitmq-stream://u:s3cret?1@b/", "%2F for /"),
        ("rabbitmq-stream://u:s3cret#1@b/", "%2F for /"),
        ("rabbitmq-stream://u:s3cret@", "'' is not HOST"),
        ("rabbitmq-stream://u:s3cret@b:0/", "'b:0' is not HOST"),
        ("rabbitmq-stream://u:s3cret@b:65536/", "'b:65536' is not HOST"),
        ("rabbitmq-stream://u:s3cret@b:x/", "'b:x' is not HOST"),
    ],
)
def test_a_wrong_address_is_refused_without_its_password(url, message):
    """The message names the form."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        RabbitStreams(url, stream="orders")

    assert "s3cret" not in str(caught.value)
    assert "rabbitmq-stream://USER:PASSWORD@HOST:5552/VIRTUAL_HOST" in str(caught.value)


@pytest.mark.parametrize("stream", ["", "x" * 256, "\u00e4" * 128])
def test_a_name_of_a_stream_has_1_to_255_bytes(stream):
    """As the protocol has it."""
    with pytest.raises(ConfigurationError, match="1 to 255 bytes"):
        address_of("rabbitmq-stream://b", stream, None)


@given(url=st.text() | st.text().map(lambda rest: f"rabbitmq-stream://{rest}"))
def test_any_text_is_an_address_or_a_configuration_error(url):
    """No other exception."""
    try:
        address = address_of(url, "orders", "n")
    except ConfigurationError:
        return
    assert all(host and 0 < port < 65536 for host, port in address.servers)


def test_a_source_shows_neither_user_nor_password():
    """In its ``repr``, and in that of its address."""
    url = "rabbitmq-stream://anna:s3cret@b/"
    shown = repr(RabbitStreams(url, stream="orders")) + repr(address_of(url, "orders", None))

    assert "anna" not in shown
    assert "s3cret" not in shown
    assert "'b:5552', 'orders'" in shown
