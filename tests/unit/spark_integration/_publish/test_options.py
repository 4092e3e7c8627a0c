"""The options of the publishing sink: parsing, defaults, error messages, and secrets."""

import pickle
from datetime import timedelta

import pytest

from eventproc._base.network import HttpProxy
from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import EventHubOptions, EventHubPublisher, Transport
from eventproc.sources.kafka import KafkaPublisher
from spark_integration._publish.options import PUBLISH_OPTIONS, is_publishing, parse_publish_options
from spark_integration._publish.properties import PropertyValues
from spark_integration._publish.targets import EventHubTarget, FunctionTarget, KafkaTarget
from spark_integration._recipes import HubRecipe, NetworkRecipe
from spark_integration._secrets import Secret

KEY = "c2VjcmV0"
CONNECTION = (
    "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=send;"
    f"SharedAccessKey={KEY};EntityPath=orders"
)
HOST = "contoso.servicebus.windows.net"
TOPIC = {"publish": "kafka", "kafka.bootstrap.servers": "broker:9092", "topic": "orders"}


def test_an_event_hub_is_named_as_for_the_source():
    """In any case, with the Scala connector's prefix, beside Spark's own options."""
    options = parse_publish_options(
        {
            "publish": "EventHub",
            "eventhubs.connectionString": CONNECTION,
            "EVENTHUBNAME": "orders",
            "checkpointLocation": "/tmp/x",
            "queryName": "q",
        }
    )

    assert options.target == EventHubTarget(connection=Secret(CONNECTION), eventhub_name="orders")
    assert options.property_values is PropertyValues.JSON
    assert options.patience == timedelta(minutes=5)


def test_an_event_hub_is_named_without_a_key():
    """The publisher is made with the identity of the process; no password is shown."""
    options = parse_publish_options(
        {
            "publish": "eventhub",
            "fullyQualifiedNamespace": "contoso.servicebus.windows.net",
            "eventHubName": "orders",
            "caBundle": "ca.pem",
            "proxy": f"http://anna:{KEY}@proxy:8080",
            "transport": "websocket",
            "customEndpoint": "sb://gateway",
        }
    )

    assert options.target == EventHubTarget(
        namespace="contoso.servicebus.windows.net",
        eventhub_name="orders",
        hub=HubRecipe(
            network=NetworkRecipe(
                ca_bundle="ca.pem", proxy=Secret(f"http://anna:{KEY}@proxy:8080")
            ),
            transport=Transport.WEBSOCKET,
            custom_endpoint="sb://gateway",
        ),
    )
    publisher = pickle.loads(pickle.dumps(options)).target.make()
    assert isinstance(publisher, EventHubPublisher)
    assert publisher._hub.options == EventHubOptions(
        transport=Transport.WEBSOCKET,
        custom_endpoint="sb://gateway",
        ca_bundle="ca.pem",
        http_proxy=HttpProxy(host="proxy", port=8080, username="anna", password=KEY),
    )
    assert KEY not in repr(options)


def test_servers_beside_a_namespace_take_the_place_of_its_own():
    """As a gateway in front of it does."""
    options = parse_publish_options({**TOPIC, "fullyQualifiedNamespace": HOST})
    made = options.target.make()

    assert isinstance(made, KafkaPublisher)
    assert made._address.bootstrap_servers == "broker:9092"
    assert made._address.settings["sasl.mechanism"] == "OAUTHBEARER"


def test_a_topic_of_event_hubs_is_named_without_a_key():
    """Its Kafka endpoint has port 9093 of the namespace, unless servers are given."""
    options = parse_publish_options(
        {"publish": "kafka", "fullyQualifiedNamespace": HOST, "topic": "orders", "caBundle": "ca"}
    )
    made = pickle.loads(pickle.dumps(options)).target.make()

    assert options.target == KafkaTarget(
        bootstrap_servers=None, topic="orders", namespace=HOST, ca_bundle="ca"
    )
    assert isinstance(made, KafkaPublisher)
    assert made._address.bootstrap_servers == f"{HOST}:9093"
    assert made._address.settings["sasl.mechanism"] == "OAUTHBEARER"
    assert made._address.settings["ssl.ca.location"] == "ca"


def test_a_connection_string_is_used_through_the_same_network():
    """Certificates and the way to the hub do not depend on the credential."""
    options = parse_publish_options(
        {"publish": "eventhub", "connectionString": CONNECTION, "caBundle": "ca.pem"}
    )

    publisher = options.target.make()
    assert isinstance(publisher, EventHubPublisher)
    assert publisher._hub.options.ca_bundle == "ca.pem"


def test_a_topic_is_named_as_for_sparks_own_sink():
    """Other settings with the prefix go to the client."""
    options = parse_publish_options(
        {
            **TOPIC,
            "kafka.sasl.password": "env:PASSWORD",
            "KAFKA.linger.ms": "50",
            "operationTimeout": "30s",
            "propertyValues": "TEXT",
        }
    )

    assert options.target == KafkaTarget(
        bootstrap_servers="broker:9092",
        topic="orders",
        settings=(("linger.ms", Secret("50")), ("sasl.password", Secret("env:PASSWORD"))),
    )
    assert (options.patience, options.property_values) == (
        timedelta(seconds=30),
        PropertyValues.TEXT,
    )


def test_a_function_can_be_the_target():
    """Its name has a colon, as in the other options of this form."""
    assert parse_publish_options({"publish": "hubs:orders"}).target == FunctionTarget(
        function="hubs:orders"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"publish": ""}, "publish is '': give eventhub, kafka or module:function"),
        ({"publish": "hub"}, "publish is 'hub': give eventhub, kafka"),
        ({"publish": "function"}, "publish is 'function'"),
        ({"publish": "eventhub"}, "connectionString.*or fullyQualifiedNamespace to use an id"),
        ({"publish": "kafka", "topic": "orders"}, "kafka.bootstrap.servers and topic"),
        ({"publish": "kafka", "kafka.bootstrap.servers": "b:1"}, "and topic"),
        (
            {**TOPIC, "connectionString": CONNECTION},
            "connectionString has no effect.*publish=kafka",
        ),
        (
            {"publish": "eventhub", "connectionString": CONNECTION, "topic": "x"},
            "topic has no effect beside publish=eventhub: remove",
        ),
        ({"publish": "a:b", "kafka.linger.ms": "5"}, "kafka.linger.ms has no effect.*a:b"),
        (
            {**TOPIC, "handler": "sums:Sums"},
            "handler and publish exclude each other",
        ),
        (
            {"publish": "eventhub", "fullyQualifiedNamespace": "contoso.example"},
            "fullyQualifiedNamespace needs the option eventHubName",
        ),
        (
            {"publish": "eventhub", "connectionString": KEY, "fullyQualifiedNamespace": "n"},
            "connectionString is given: .*not both",
        ),
        ({**TOPIC, "caBundle": "ca.pem"}, "caBundle has no effect beside publish=kafka"),
        ({"publish": "a:b", "fullyQualifiedNamespace": "n"}, "Namespace has no effect.*a:b"),
        ({**TOPIC, "acks": "1"}, "'acks' is not an option of the eventproc sink with publish"),
        ({**TOPIC, "topics": "a"}, "did you mean topic"),
        ({**TOPIC, "propertyValues": "xml"}, "propertyValues is 'xml': give json or text"),
        ({**TOPIC, "operationTimeout": "0s"}, "duration"),
    ],
)
def test_invalid_options_are_refused_with_the_remedy(options, words):
    """The message names the option, and does not contain the key."""
    with pytest.raises(ConfigurationError, match=words) as refused:
        parse_publish_options(options)

    assert KEY not in str(refused.value)


def test_a_sink_publishes_if_the_option_is_given():
    """Otherwise it calls handlers."""
    assert is_publishing({"PUBLISH": "kafka"})
    assert not is_publishing({"handler": "sums:Sums", "publisher": "x"})


@pytest.mark.parametrize(
    "options", [{"publish": "eventhub", "connectionString": CONNECTION}, TOPIC]
)
def test_options_can_be_sent_to_executors_and_show_no_secret(options):
    """No printed form has it, and no setting of the Kafka client is shown at all."""
    secret = {"kafka.sasl.password": KEY} if options is TOPIC else {}
    parsed = parse_publish_options({**options, **secret})

    assert pickle.loads(pickle.dumps(parsed)) == parsed
    assert hash(parsed.target) == hash(pickle.loads(pickle.dumps(parsed.target)))
    assert KEY not in f"{parsed!r} {parsed} {parsed.target}"


@pytest.mark.parametrize(
    "name", ["acks", "default.topic.config", "delivery.timeout.ms", "transactional.id"]
)
def test_a_setting_that_would_weaken_the_guarantee_is_refused(name):
    """When the publisher is made; the message has no value."""
    options = parse_publish_options({**TOPIC, f"kafka.{name}": KEY})
    with pytest.raises(ConfigurationError, match=name) as refused:
        options.target.make()

    assert KEY not in str(refused.value)


def test_a_secret_that_a_machine_does_not_have_is_named(monkeypatch):
    """The message names the variable and the remedy."""
    monkeypatch.delenv("HUB", raising=False)
    options = parse_publish_options({"publish": "eventhub", "connectionString": "env:HUB"})
    with pytest.raises(ConfigurationError, match=r"'HUB' is not set.*every executor"):
        options.target.make()


def test_every_option_is_documented(request):
    """The table in the docs lists exactly the options that exist."""
    page = (request.config.rootpath / "docs/spark-publish.md").read_text("utf-8")
    table = page.split("| option |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in row.split("`")[1::2]}

    assert documented == {*PUBLISH_OPTIONS, "kafka.bootstrap.servers", "kafka."}
