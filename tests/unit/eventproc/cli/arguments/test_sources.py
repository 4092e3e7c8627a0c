"""A connection string tells which protocol to read over."""

import pytest

from eventproc import ConfigurationError
from eventproc.cli.arguments.sources import make_source
from eventproc.models import OffsetFormat
from eventproc.sources.kafka import KafkaEventSource

KEY = "c2VjcmV0LWtleQ=="
HUB = f"Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey={KEY}"


def test_the_string_of_a_namespace_is_read_over_amqp():
    """A connection string without a prefix is of Event Hubs."""
    assert make_source(HUB, "orders").offset_format is OffsetFormat.AMQP


def test_with_kafka_before_it_the_kafka_endpoint_is_read():
    """In a group of the same names, which tells the two apart."""
    source = make_source(f"kafka+{HUB}", "orders")

    assert source.offset_format is OffsetFormat.KAFKA
    assert source.fully_qualified_namespace == "contoso.servicebus.windows.net"
    assert source.eventhub_name == "orders"


def test_brokers_are_named_with_their_settings():
    """A password with signs in it comes through as it is."""
    source = make_source(
        "kafka://a:9092,b:9092?namespace=plant&security.protocol=SASL_SSL&sasl.password=p%26+w=",
        "t",
    )

    assert isinstance(source, KafkaEventSource)
    assert source.fully_qualified_namespace == "plant"
    assert source._settings == {"security.protocol": "SASL_SSL", "sasl.password": "p&+w="}


@pytest.mark.parametrize(
    ("text", "topic", "said"),
    [
        ("kafka://localhost:9092", "", "--eventhub"),
        ("kafka://localhost", "t", "host:port"),
        (f"kafka://localhost:9092?{KEY.rstrip('=')}", "t", "name=value"),
        ("kafka://localhost:9092?group.id=x", "t", "consumer_group"),
        ("", "t", "kafka://HOST:PORT"),
    ],
)
def test_what_cannot_work_is_refused(text, topic, said):
    """With the remedy, and without a secret."""
    with pytest.raises(ConfigurationError, match=said) as caught:
        make_source(text, topic)

    assert KEY.rstrip("=") not in str(caught.value)
