"""The options of the source: parsing, defaults, and error messages."""

from datetime import timedelta

import pytest

from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import Transport
from spark_integration import NetworkRecipe, Secret, SourceRecipe, StoreRecipe
from spark_integration._options import (
    SOURCE_OPTIONS,
    Alignment,
    SourceOptions,
    parse_source_options,
)
from spark_integration._recipes import network_of
from spark_integration._source.planning import from_json, to_json

KEY = "c2VjcmV0"
CONNECTION = (
    "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=listen;"
    f"SharedAccessKey={KEY};EntityPath=orders"
)


BLOB = {"startingPositions": "checkpoints", "checkpointStore": "blob:checkpoints"}


def parse(is_stream: bool = True, **options: str) -> SourceOptions:
    return parse_source_options({"connectionString": CONNECTION, **options}, is_stream=is_stream)


def test_names_may_have_the_scala_connectors_prefix_and_any_case():
    """Spark passes option names in the case in which they were written."""
    options = parse_source_options(
        {"eventhubs.connectionString": CONNECTION, "EVENTHUBS.CONSUMERGROUP": "audit"},
        is_stream=True,
    )

    assert options.consumer_group == "audit"


def test_a_stream_begins_at_new_events_and_a_batch_at_the_oldest():
    """The defaults are those of the Scala connector."""
    assert parse().starting.otherwise.is_latest
    assert parse(is_stream=False).starting.otherwise.is_earliest


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("10", timedelta(seconds=10)),
        ("2m", timedelta(minutes=2)),
        ("PT60S", timedelta(minutes=1)),
    ],
)
def test_durations_are_parsed_in_all_forms(text, span):
    """This project's, and the Scala connector's."""
    assert parse(receiverTimeout=text).silence_max == span


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxEventPerTrigger": "5"}, "did you mean maxEventsPerTrigger"),
        ({"threadPoolSize": "16"}, "remove it"),
        ({"maxEventsPerTrigger": "0"}, "whole number"),
        ({"maxTasks": "many"}, "whole number"),
        ({"failOnDataLoss": "no"}, "true or false"),
        ({"operationTimeout": "soon"}, "duration"),
        ({"operationTimeout": "0s"}, "duration"),
        ({"maxTasks": "2", "maxEventsPerTask": "5"}, "not both"),
        ({"useExclusiveReceiver": "true", "maxEventsPerTask": "5"}, "one reader"),
        ({"startingPositions": "checkpoints"}, "checkpointStore"),
        ({"endingPositions": "checkpoints", "is_stream": False}, "checkpointStore"),
        ({"checkpointStore": "blob"}, "sqlite:PATH"),
        (BLOB, "storageConnectionString is not given and storageAccount is not given"),
        (
            {"sourceRecipe": "hubs:orders"},
            "connectionString is given, .* and sourceRecipe is given: .* Give one of the three",
        ),
        ({"fullyQualifiedNamespace": "n"}, "connectionString is given: .*not both"),
        (
            {**BLOB, "storageConnectionString": KEY, "storageAccount": "contoso"},
            "storageAccount is given and storageConnectionString is given: .*not both",
        ),
        ({**BLOB, "storageAccount": "Con/toso"}, "storageAccount is 'Con/toso': give"),
        (
            {**BLOB, "checkpointStore": "sqlite:x", "storageAccount": "contoso"},
            "storageAccount is given and checkpointStore is 'sqlite:x'",
        ),
        ({"storageAccount": "contoso"}, "storageAccount has no effect without checkpointStore"),
        ({"storageConnectionString": KEY}, "storageConnectionString has no effect without"),
        ({"proxy": f"anna:{KEY}@proxy"}, "proxy: give http://HOST:PORT"),
        ({"transport": "udp"}, "transport is 'udp': give amqp or websocket"),
        ({"prefetchCount": "999999"}, "prefetch"),
        (
            {"minOffsetsPerTrigger": "9", "maxEventsPerTrigger": "8"},
            "minOffsetsPerTrigger is 9, more than maxEventsPerTrigger, which is 8",
        ),
        ({"alignBy": "time"}, "alignBy is 'time': give backlog or enqueuedTime"),
    ],
)
def test_invalid_options_are_refused_with_the_remedy(options, words):
    """The message does not contain the key."""
    with pytest.raises(ConfigurationError, match=words) as refused:
        parse(**options).hub_options()

    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("is_stream", "options", "words"),
    [
        (True, {"endingPosition": "latest"}, "^endingPosition has no effect on a stream.*remove"),
        (True, {"endingPositions": '{"0": 5}'}, "^endingPositions has no effect on a stream"),
        (False, {"maxEventsPerTrigger": "5"}, "^maxEventsPerTrigger.*batch.*maxEventsPerTask"),
        (False, {"minOffsetsPerTrigger": "5"}, "^minOffsetsPerTrigger.*batch.*remove"),
        (False, {"maxTriggerDelay": "5s"}, "^maxTriggerDelay.*batch.*remove"),
        (True, {"maxTriggerDelay": "5s"}, "^maxTriggerDelay.*without minOffsetsPerTrigger"),
        (False, {"alignBy": "backlog"}, "^alignBy has no effect on a batch.*remove"),
        (False, {"pollInterval": "1s"}, "^pollInterval has no effect on a batch.*remove"),
        (True, {"checkpointLocation": "/x"}, "^checkpointLocation .* give it to writeStream"),
        (True, {"checkpointStore": "sqlite:x"}, "^checkpointStore has no.*startingPositions="),
        (True, {"storageConnectionString": "x"}, "^storageConnectionString.*checkpointStore=blob"),
        (
            True,
            {
                "startingPositions": "checkpoints",
                "checkpointStore": "sqlite:x",
                "storageConnectionString": "x",
            },
            "^storageConnectionString is given and checkpointStore is 'sqlite:x'",
        ),
        (
            True,
            {"connectionString": None, "sourceRecipe": "hubs:orders", "eventHubName": "orders"},
            "^eventHubName is 'orders' and sourceRecipe is",
        ),
    ],
)
def test_an_option_without_effect_is_refused_with_the_remedy(is_stream, options, words):
    """Ignoring such an option silently would mislead the user."""
    given = {"connectionString": CONNECTION, **options}
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigurationError, match=words):
        parse_source_options(given, is_stream=is_stream)


def test_options_of_streams_or_batches_alone_are_checked_when_the_kind_is_known():
    """Spark asks for the columns before it says which of the two it reads."""
    options = {"connectionString": CONNECTION, "endingPosition": "5", "maxEventsPerTrigger": "5"}

    assert parse_source_options(options, is_stream=None).events_per_trigger_max == 5


@pytest.mark.parametrize("text", ["enqueuedTime", "ENQUEUEDTIME"])
def test_a_named_choice_may_be_in_any_case(text):
    """Values of enumerations ignore case, as everywhere in Spark."""
    assert parse(alignBy=text).alignment is Alignment.ENQUEUED_TIME


@pytest.mark.parametrize(
    ("options", "is_exclusive"),
    [
        ({}, False),
        ({"useExclusiveReceiver": "false"}, False),
        ({"useExclusiveReceiver": "True"}, True),
    ],
)
def test_receivers_are_exclusive_only_if_that_is_wanted(options, is_exclusive):
    """An exclusive one displaces the processors and the other queries of its consumer group."""
    assert parse(**options).hub_options().is_exclusive is is_exclusive


def test_no_printed_form_of_options_shows_the_key():
    """Options end up in tracebacks and debuggers."""
    options = parse(
        startingPositions="checkpoints",
        storageConnectionString=CONNECTION,
        checkpointStore="blob:checkpoints",
    )

    assert KEY not in f"{options!r} {options.source.connection} {options.store}"


def test_a_hub_and_an_account_are_named_without_a_key():
    """Both are reached through the same network, and printing the options shows no password."""
    given = {
        "fullyQualifiedNamespace": "contoso.servicebus.windows.net",
        "eventHubName": "orders",
        **BLOB,
        "storageAccount": "contoso",
        "caBundle": "ca.pem",
        "proxy": f"http://anna:{KEY}@proxy:8080",
        "transport": "WebSocket",
        "customEndpoint": "sb://gateway:5671",
    }
    options = parse_source_options(given, is_stream=True)
    network = NetworkRecipe(ca_bundle="ca.pem", proxy=Secret(given["proxy"]))

    assert options.source == SourceRecipe(
        namespace="contoso.servicebus.windows.net", eventhub_name="orders"
    )
    assert options.store == StoreRecipe(spec="blob:checkpoints", account="contoso", network=network)
    connection = options.hub_options()
    assert connection.transport is Transport.WEBSOCKET
    assert connection.custom_endpoint == "sb://gateway:5671"
    assert connection.ca_bundle == "ca.pem"
    assert connection.http_proxy == network_of(network).proxy
    assert KEY not in f"{options!r} {connection!r}"


def test_an_identity_needs_the_name_of_the_hub():
    """A connection string may have it."""
    with pytest.raises(ConfigurationError, match=r"eventHubName is not given"):
        parse_source_options({"fullyQualifiedNamespace": "n"}, is_stream=True)


def test_a_hub_has_to_be_named():
    """The message has all ways."""
    with pytest.raises(ConfigurationError, match=r"connectionString.*Namespace.*sourceRecipe"):
        parse_source_options({}, is_stream=True)


def test_a_store_that_is_a_file_does_not_use_the_network_of_the_hub(tmp_path):
    """With SQLite the options for the hub are no error."""
    spec = f"sqlite:{tmp_path}/x.db"
    options = parse(startingPositions="checkpoints", checkpointStore=spec, caBundle="ca.pem")

    assert options.store == StoreRecipe(spec=spec)
    assert options.hub_options().ca_bundle == "ca.pem"


def test_every_option_is_documented(request):
    """The table in the docs lists exactly the options that exist."""
    page = (request.config.rootpath / "docs/spark-source.md").read_text("utf-8")
    table = page.split("## Options")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in row.split("`")[1::2]}

    assert documented == set(SOURCE_OPTIONS)


# --- offsets -------------------------------------------------------------------------------------


def test_equal_offsets_give_equal_texts():
    """Spark compares the texts to find out whether there are new events."""
    assert str(to_json("hub", {"10": 1, "9": 2})) == str(to_json("hub", {"9": 2, "10": 1}))
    assert from_json("hub", to_json("hub", {"9": 2, "10": 1})) == {"9": 2, "10": 1}


def test_an_offset_log_of_another_hub_is_refused():
    """Sequence numbers of one hub mean nothing in another."""
    with pytest.raises(ConfigurationError, match="checkpointLocation"):
        from_json("test/orders", to_json("production/orders", {"0": 5}))


def test_an_offset_log_of_a_later_release_is_refused():
    """An unknown format version raises instead of being misread."""
    with pytest.raises(ConfigurationError, match="version 2"):
        from_json("hub", {**to_json("hub", {"0": 5}), "version": 2})
