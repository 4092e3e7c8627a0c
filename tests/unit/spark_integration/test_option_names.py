"""An error names the option that Spark's user gave, wherever it is found."""

from datetime import timedelta
from pathlib import Path

import pytest

from eventproc.errors import ConfigurationError
from eventproc.models import OutgoingEvent
from spark_integration._option_names import OPTIONS, naming_options, naming_recipes
from spark_integration._options import parse_source_options
from spark_integration._publish.connections import Connections
from spark_integration._publish.options import parse_publish_options
from spark_integration._source.hub import Hub
from spark_integration._source.planning import EventRange
from spark_integration._source.reading import read_ranges

KEY = (
    "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=listen;"
    "SharedAccessKey=c2VjcmV0"
)
STORAGE = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"
SINK = {"handler": "shop:Orders", "eventHubName": "orders", "checkpointStore": "sqlite:a.db"}


def ask_hub(**options):
    """Let the driver ask the hub, as at the start of a query."""
    Hub(parse_source_options(options, is_stream=True)).check()


def read(**options):
    """Read on an executor."""
    planned = EventRange(partition_id="0", start=0, end=1)
    list(read_ranges(parse_source_options(options, is_stream=True), [planned]))


def publish(**options):
    """Publish on an executor."""
    given = parse_publish_options({name.replace("__", "."): options[name] for name in options})
    connections = Connections()
    try:
        connections.publish(given.target, [OutgoingEvent(body=b"")], timedelta(seconds=1))
    finally:
        connections.close()


def test_an_error_names_the_option_and_stays_the_same_error():
    """Spark's retries look at the class, and people at the cause."""
    error = ConfigurationError("cannot be read", setting="ca_bundle", value="'no.pem'")

    with pytest.raises(ConfigurationError) as raised, naming_options():
        raise error

    assert raised.value is error
    assert str(error) == "caBundle is 'no.pem': cannot be read"


def test_other_errors_are_left_alone():
    """They are not of this library."""
    with pytest.raises(ValueError, match="ca_bundle"), naming_options():
        raise ValueError("ca_bundle")


def test_a_fleet_has_fields_of_recipes_and_no_options():
    """An argument that both have keeps its name."""
    with pytest.raises(ConfigurationError) as raised, naming_recipes():
        raise ConfigurationError(
            "give both", setting="fully_qualified_namespace", beside={"eventhub_name": "not given"}
        )

    assert str(raised.value) == ("SourceRecipe.namespace and eventhub_name is not given: give both")


@pytest.mark.parametrize("work", [ask_hub, read])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"connectionString": KEY},
            "eventHubName is not given: the connection string has no EntityPath, so give",
        ),
        (
            {"connectionString": KEY + ";EntityPath=sales", "eventHubName": "orders"},
            (
                "eventHubName is 'orders': the connection string is for event hub 'sales' (its "
                "EntityPath): give one of them, or the same"
            ),
        ),
        (
            {"connectionString": KEY, "eventHubName": "orders", "caBundle": "no.pem"},
            "caBundle is 'no.pem': cannot be read as certificates: ",
        ),
        (
            {"sourceRecipe": "json:no"},
            "sourceRecipe is 'json:no': module 'json' has no function or class 'no'",
        ),
    ],
)
def test_the_driver_and_a_task_that_reads_name_options(work, options, message):
    """The error is the same in both."""
    with pytest.raises(ConfigurationError) as refused:
        work(**options)

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"publish": "eventhub", "connectionString": KEY},
            "eventHubName is not given: the connection string has no EntityPath, so give",
        ),
        (
            {
                "publish": "eventhub",
                "fullyQualifiedNamespace": "sb://contoso/",
                "eventHubName": "orders",
            },
            (
                "fullyQualifiedNamespace is 'sb://contoso/': give a bare host name such as "
                "contoso.servicebus.windows.net"
            ),
        ),
        (
            {"publish": "kafka", "kafka__bootstrap__servers": "broker", "topic": "orders"},
            "kafka.bootstrap.servers is 'broker': give host:port, or several with commas between",
        ),
        (
            {"publish": "kafka", "kafka__bootstrap__servers": KEY, "topic": "orders"},
            "kafka.bootstrap.servers: give host:port",
        ),
        (
            {
                "publish": "kafka",
                "kafka__bootstrap__servers": "broker:9092",
                "topic": "orders",
                "kafka__acks": "1",
            },
            "the options kafka.*: 'acks' cannot be set: a message counts as published when every",
        ),
    ],
)
def test_a_task_that_publishes_names_options(options, message):
    """Of Event Hubs, and of Kafka with Spark's prefix."""
    with pytest.raises(ConfigurationError) as refused:
        publish(**options)

    assert str(refused.value).startswith(message)
    assert "from_connection_string" not in str(refused.value)


def test_the_options_are_documented():
    """With their names of today."""
    docs = Path(__file__).parents[3] / "docs"
    pages = "".join(page.read_text("utf-8") for page in docs.glob("spark*.md"))

    assert all(f"`{option}`" in pages for option in OPTIONS.values() if " " not in option)
