"""Servers, topics and connection strings are checked at construction; no message shows a secret."""

import time
from datetime import timedelta
from typing import NamedTuple

import pytest

from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.sources.eventhubs import EventHubSource
from eventproc.sources.kafka import KafkaEventSource, KafkaOptions, KafkaPublisher
from eventproc.sources.kafka._address import Tokens, address_in, address_of
from eventproc.sources.kafka._errors import NO_TOKEN, ClientError, TokenError, error_for

KEY = "c2VjcmV0LWtleQ=="
HUB = f"Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey={KEY}"
EMULATOR = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    f"SharedAccessKey={KEY};UseDevelopmentEmulator=true;"
)


def test_the_address_of_event_hubs_comes_from_a_connection_string():
    """The whole string is the password, as Azure documents it."""
    address = address_in(HUB, "orders", None)

    assert address.bootstrap_servers == "contoso.servicebus.windows.net:9093"
    assert address.settings["security.protocol"] == "SASL_SSL"
    assert address.settings["sasl.mechanism"] == "PLAIN"
    assert address.settings["sasl.username"] == "$ConnectionString"
    assert address.settings["sasl.password"] == HUB


def test_the_address_of_the_emulator_is_its_kafka_port_without_tls():
    """The port is that of the official emulator."""
    address = address_in(EMULATOR, "orders", None)

    assert address.bootstrap_servers == "localhost:9092"
    assert address.settings["security.protocol"] == "SASL_PLAINTEXT"


def test_only_event_hubs_know_a_topic_by_its_name_in_another_case():
    """A group's offsets are found under the name that its consumers wrote."""
    hub = address_in(HUB, "orders", None)
    broker = address_of("broker:9092", "orders", None, None)

    assert [each.is_topic("orders") for each in (hub, broker)] == [True, True]
    assert [each.is_topic("Orders") for each in (hub, broker)] == [True, False]


@pytest.mark.parametrize("string", [HUB, EMULATOR, EMULATOR.replace("localhost", "localhost:5673")])
def test_a_hub_has_the_same_names_over_kafka_as_over_amqp(string):
    """So processors of both see each other's records, and refuse to share a group."""
    kafka = KafkaEventSource.from_connection_string(string, topic="orders")
    amqp = EventHubSource.from_connection_string(string, eventhub_name="orders")

    assert kafka.fully_qualified_namespace == amqp.fully_qualified_namespace
    assert kafka.eventhub_name == amqp.eventhub_name
    assert kafka.offset_format is not amqp.offset_format


def test_a_hub_has_the_same_namespace_if_its_server_is_given():
    """For sign-in by other means than a connection string."""
    kafka = KafkaEventSource("contoso.servicebus.windows.net:9093", topic="orders")

    assert kafka.fully_qualified_namespace == "contoso.servicebus.windows.net"


def test_the_namespace_of_a_broker_is_its_address_or_the_users_choice():
    """The port counts, so two brokers on one host differ."""
    one = KafkaEventSource("localhost:9092", topic="t")
    named = KafkaEventSource("a:9092, b:9092", topic="t", namespace="plant")

    assert one.fully_qualified_namespace == "localhost:9092"
    assert named.fully_qualified_namespace == "plant"


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("a:9092,b:9092", "give namespace="),
        ("", "host:port"),
        ("localhost", "host:port"),
        ("kafka://localhost:9092", "host:port"),
        (HUB, "not the place of a connection string"),
    ],
)
def test_servers_that_cannot_work_are_refused(servers, message):
    """The message has the remedy, and does not repeat what may be a secret."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        KafkaEventSource(servers, topic="t")

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("topic", ["", "a b", "a/b", "..", "x" * 250])
def test_invalid_topic_names_are_refused(topic):
    """They become parts of a record's key."""
    with pytest.raises(ConfigurationError, match="topic"):
        KafkaEventSource("localhost:9092", topic=topic)


def test_a_connection_string_without_hub_needs_the_argument_topic():
    """The message names it."""
    with pytest.raises(ConfigurationError, match="topic is not given"):
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
        "default.topic.config",
        "enable.partition.eof",
        "allow.auto.create.topics",
        "bootstrap.servers",
    ],
)
def test_client_settings_that_would_break_the_source_are_refused(name):
    """The message names the setting and does not repeat its value."""
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
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        KafkaOptions(**settings)


def test_the_repr_of_source_and_address_does_not_show_the_key():
    """They may be logged."""
    source = KafkaEventSource.from_connection_string(HUB, topic="orders")

    assert KEY not in repr(source)
    assert KEY not in repr(address_in(HUB, "orders", None))


async def test_open_refuses_a_setting_that_the_client_does_not_know():
    """Before anything is claimed."""
    source = KafkaEventSource("localhost:9092", topic="t", config={"sasl.mechanizm": KEY})
    with pytest.raises(ConfigurationError, match="mechanizm") as caught:
        await source.open()

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("partition_id", ["x", "-1", "\u0663", "9" * 30, "9" * 5_000])
async def test_an_invalid_partition_id_is_refused(partition_id):
    """Without asking the broker."""
    source = KafkaEventSource("localhost:9092", topic="t")
    with pytest.raises(SourceRejectedError, match="has no partition"):
        await source.partition_properties(partition_id)


HOST = "contoso.servicebus.windows.net"


class Token(NamedTuple):
    token: str
    expires_on: int


class Credential:
    """Gives tokens of an hour, or fails while ``error`` is set."""

    def __init__(self):
        self.scopes = []
        self.error = None
        self.lifetime_s = 3600

    def get_token(self, *scopes, **_):
        self.scopes.append(scopes)
        if self.error is not None:
            raise self.error
        return Token("secret", int(time.time()) + self.lifetime_s)


def test_the_client_gets_a_token_for_the_namespace():
    """With the time of its expiry, which tells librdkafka when to ask again."""
    credential = Credential()
    tokens = Tokens(credential, HOST)
    token, expires_on = tokens("")

    assert token == "secret"
    assert time.time() + 3500 < expires_on < time.time() + 3700
    assert credential.scopes == [(f"https://{HOST}/.default",)]


def test_a_failure_is_kept_until_there_is_a_token():
    """The client reports only that something failed; ``reason`` says what."""
    credential = Credential()
    tokens = Tokens(credential, HOST)
    credential.error = OSError("identity is away")
    with pytest.raises(TokenError, match="identity is away"):
        tokens("")
    failed = tokens.reason
    credential.error = None
    tokens("")

    assert failed == "the credential gave no token: identity is away"
    assert tokens.reason == ""


async def test_a_check_raises_what_the_client_would_get():
    """So a source says at once why it cannot be read."""
    credential = Credential()
    credential.error = OSError("identity is away")
    with pytest.raises(TokenError, match="identity is away"):
        await Tokens(credential, HOST).check()


async def test_a_publisher_without_a_token_names_itself_and_the_reason():
    """It creates no client, whose constructor would wait ten seconds."""
    credential = Credential()
    credential.error = OSError("identity is away")
    with pytest.raises(ConfigurationError, match=r"'orders' at .* published to: .* is away$"):
        await KafkaPublisher.with_identity(HOST, "orders", credential).open()


async def test_a_source_without_a_token_names_itself_and_the_reason():
    """It creates no client, whose constructor would wait ten seconds."""
    credential = Credential()
    credential.error = OSError("identity is away")
    async with KafkaEventSource.with_identity(HOST, "orders", credential) as source:
        with pytest.raises(TokenError, match=r"'orders'.* cannot be read: .* identity is away"):
            await source.partition_ids()
        with pytest.raises(ConfigurationError, match=r"identity is away$"):
            await source.check_consumer_group("g")


def test_a_source_with_an_identity_keeps_the_names_of_the_one_with_a_key():
    """Records stay valid when a group changes from keys to an identity."""
    source = KafkaEventSource.with_identity(HOST, "orders", Credential())
    keyed = KafkaEventSource.from_connection_string(
        f"Endpoint=sb://{HOST}/;SharedAccessKeyName=a;SharedAccessKey=b", topic="orders"
    )

    assert repr(source) == repr(keyed) == f"KafkaEventSource('{HOST}:9093', 'orders')"
    assert source.fully_qualified_namespace == keyed.fully_qualified_namespace == HOST


@pytest.mark.parametrize("host", ["", f"{HOST}:9093", f"sb://{HOST}", f"https://{HOST}/"])
def test_a_namespace_is_a_host_name(host):
    """The message has the value and an example."""
    with pytest.raises(ConfigurationError, match=r"qualified_namespace is .* host name alone"):
        KafkaEventSource.with_identity(host, "orders", Credential())


def test_a_callback_for_tokens_of_ones_own_is_refused():
    """There is a credential for that."""
    for made in (KafkaEventSource, KafkaPublisher):
        with pytest.raises(ConfigurationError, match="oauth_cb"):
            made.with_identity(HOST, "orders", Credential(), config={"oauth_cb": lambda _: None})


def test_a_missing_token_ends_all_receivers_with_an_error_that_has_the_remedy():
    """They are opened again, with back-off."""
    error = error_for("the Kafka client", NO_TOKEN, "no credential was found")

    assert ClientError(NO_TOKEN, "").ends_all
    assert isinstance(error, TokenError)
    assert error.names_remedy
