"""Servers, topics and connection strings, checked at the door; secrets stay there."""

from datetime import timedelta

import pytest

from eventproc import ConfigurationError, SourceRejectedError
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.kafka import KafkaEventSource, KafkaOptions
from eventproc.sources.kafka.address import address_in

KEY = "c2VjcmV0LWtleQ=="
HUB = f"Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey={KEY}"
EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    f"SharedAccessKey={KEY};UseDevelopmentEmulator=true;"
)


def test_event_hubs_is_reached_by_its_connection_string():
    """The endpoint, and the string itself as the password, as Azure documents it."""
    address = address_in(HUB, "orders", None)

    assert address.bootstrap_servers == "contoso.servicebus.windows.net:9093"
    assert address.settings["security.protocol"] == "SASL_SSL"
    assert address.settings["sasl.mechanism"] == "PLAIN"
    assert address.settings["sasl.username"] == "$ConnectionString"
    assert address.settings["sasl.password"] == HUB


def test_the_emulator_is_reached_without_tls():
    """On the port that the official one has for Kafka."""
    address = address_in(EMULATOR, "orders", None)

    assert address.bootstrap_servers == "localhost:9092"
    assert address.settings["security.protocol"] == "SASL_PLAINTEXT"


@pytest.mark.parametrize("string", [HUB, EMULATOR, EMULATOR.replace("localhost", "localhost:5673")])
def test_a_hub_has_the_same_names_over_kafka_as_over_amqp(string):
    """So the two meet each other's records, and are refused instead of beginning anew."""
    kafka = KafkaEventSource.from_connection_string(string, topic="orders")
    amqp = EventHubSource.from_connection_string(string, eventhub_name="orders")

    assert kafka.fully_qualified_namespace == amqp.fully_qualified_namespace
    assert kafka.eventhub_name == amqp.eventhub_name
    assert kafka.offset_format is not amqp.offset_format


def test_a_hub_has_the_same_names_when_its_server_is_given():
    """Whoever signs in by other means than a connection string names the endpoint."""
    kafka = KafkaEventSource("contoso.servicebus.windows.net:9093", topic="orders")

    assert kafka.fully_qualified_namespace == "contoso.servicebus.windows.net"


def test_a_broker_is_named_by_its_address_or_by_the_user():
    """Two brokers on one host are two."""
    one = KafkaEventSource("localhost:9092", topic="t")
    named = KafkaEventSource("a:9092, b:9092", topic="t", namespace="plant")

    assert one.fully_qualified_namespace == "localhost:9092"
    assert named.fully_qualified_namespace == "plant"


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ("a:9092,b:9092", "give namespace="),
        ("", "host:port"),
        ("localhost", "host:port"),
        ("kafka://localhost:9092", "host:port"),
        (HUB, "from_connection_string"),
    ],
)
def test_servers_that_cannot_work_are_refused(servers, said):
    """With the remedy, and without repeating what may be a secret."""
    with pytest.raises(ConfigurationError, match=said) as caught:
        KafkaEventSource(servers, topic="t")

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("topic", ["", "a b", "a/b", "..", "x" * 250])
def test_topics_that_cannot_be_are_refused(topic):
    """Their names become parts of a record's key."""
    with pytest.raises(ConfigurationError, match="topic"):
        KafkaEventSource("localhost:9092", topic=topic)


def test_a_string_without_a_topic_says_which_argument_to_give():
    """It is called topic here."""
    with pytest.raises(ConfigurationError, match="pass topic"):
        KafkaEventSource.from_connection_string(HUB)


@pytest.mark.parametrize(
    "name",
    [
        "group.id",
        "group.instance.id",
        "group.protocol",
        "partition.assignment.strategy",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "auto.offset.reset",
        "enable.partition.eof",
        "allow.auto.create.topics",
        "bootstrap.servers",
    ],
)
def test_settings_that_would_break_a_promise_are_refused(name):
    """By name, with the reason; their values are not repeated."""
    for make in (
        lambda config: KafkaEventSource("localhost:9092", topic="t", config=config),
        lambda config: KafkaEventSource.from_connection_string(HUB, topic="t", config=config),
    ):
        with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")) as caught:
            make({name: KEY})

        assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "settings", [{"prefetch": 0}, {"prefetch_bytes": 0}, {"connect_timeout": timedelta(0)}]
)
def test_options_that_cannot_work_are_refused(settings):
    """Each by its name."""
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        KafkaOptions(**settings)


def test_nothing_that_is_printed_shows_the_key():
    """Neither the source nor its address."""
    source = KafkaEventSource.from_connection_string(HUB, topic="orders")

    assert KEY not in repr(source)
    assert KEY not in repr(address_in(HUB, "orders", None))


async def test_a_setting_that_the_client_does_not_know_is_refused_when_it_opens():
    """Before anything is claimed."""
    source = KafkaEventSource("localhost:9092", topic="t", config={"sasl.mechanizm": KEY})
    with pytest.raises(ConfigurationError, match="mechanizm") as caught:
        await source.open()

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("partition_id", ["x", "-1", "\u0663", "9" * 30, "9" * 5_000])
async def test_a_partition_that_no_topic_can_have_is_refused(partition_id):
    """Before anybody is asked."""
    source = KafkaEventSource("localhost:9092", topic="t")
    with pytest.raises(SourceRejectedError, match="has no partition"):
        await source.partition_properties(partition_id)
