"""The connection string selects the protocol."""

import pytest

from eventproc import ConfigurationError
from eventproc._command.arguments.access import HubAccess
from eventproc._command.arguments.sources import make_source
from eventproc.models import OffsetFormat
from eventproc.sources.kafka import KafkaEventSource
from eventproc.sources.rabbitmq import RabbitQueues

KEY = "c2VjcmV0LWtleQ=="
HUB = f"Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey={KEY}"


def make(connection_string, eventhub):
    return make_source(HubAccess(connection_string=connection_string), eventhub)


def test_a_connection_string_without_prefix_is_read_over_amqp():
    """It is one of Event Hubs."""
    assert make(HUB, "orders").offset_format is OffsetFormat.AMQP


def test_the_prefix_kafka_selects_the_kafka_endpoint():
    """Names stay the same, and the offset format tells the two apart."""
    source = make(f"kafka+{HUB}", "orders")

    assert source.offset_format is OffsetFormat.KAFKA
    assert source.fully_qualified_namespace == "contoso.servicebus.windows.net"
    assert source.eventhub_name == "orders"


def test_a_kafka_url_has_brokers_and_their_settings():
    """Special characters in a password are decoded."""
    source = make(
        "kafka://a:9092,b:9092?namespace=plant&security.protocol=SASL_SSL&sasl.password=p%26+w=",
        "t",
    )

    assert isinstance(source, KafkaEventSource)
    assert source.fully_qualified_namespace == "plant"
    assert source._address.settings == {"security.protocol": "SASL_SSL", "sasl.password": "p&+w="}


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_an_amqp_url_has_the_number_of_partition_queues(scheme):
    """Settings of the client follow it, too."""
    source = make(f"{scheme}://u:p@b:5672/v?queues=12&prefetch=50&name=shop", "Orders")

    assert isinstance(source, RabbitQueues)
    assert source.fully_qualified_namespace == "v@b:5672"
    assert (source.eventhub_name, source.unsettled_max) == ("Orders", 50)
    assert source._url == f"{scheme}://u:p@b:5672/v?name=shop"
    assert source._names.count == 12


@pytest.mark.parametrize(
    ("text", "topic", "message"),
    [
        ("kafka://localhost:9092", "", "--eventhub"),
        ("kafka://localhost", "t", "host:port"),
        (f"kafka://localhost:9092?{KEY.rstrip('=')}", "t", "name=value"),
        ("kafka://localhost:9092?group.id=x", "t", "consumer group"),
        ("", "t", "kafka://HOST:PORT"),
        ("", "t", "amqp://USER:PASSWORD@HOST/"),
        ("amqp://u:p@localhost/?queues=3", "", "--eventhub"),
        ("amqp://u:p@localhost/", "t", "needs queues=COUNT"),
        ("amqp://u:p@localhost/?queues=many", "t", "'many' is no number"),
        ("amqp://u:p@localhost/?queues=0", "t", "count is 0"),
    ],
)
def test_a_source_that_cannot_work_is_refused(text, topic, message):
    """The message has the remedy, and no secret."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        make(text, topic)

    assert KEY.rstrip("=") not in str(caught.value)


@pytest.mark.parametrize("text", ["kafka:secret:9092", "secret:9092", "kafka+secret:9092"])
def test_an_address_without_its_prefix_is_refused_with_all_forms(text):
    """It may contain a password, so the message does not repeat it."""
    with pytest.raises(ConfigurationError, match=r"kafka://HOST:PORT .* amqp://USER") as refused:
        make(text, "orders")
    assert "secret" not in str(refused.value)
