"""The options of the sink: parsing, defaults, and error messages."""

import pickle
from datetime import timedelta

import pytest

from eventproc import BlockingPartitionHandler, FailureAction, PartitionHandler
from eventproc._delivery.handler_threads import ThreadedHandler
from eventproc.decoders import JsonDecoder
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from spark_integration import CheckpointingSink, NetworkRecipe, Secret, StoreRecipe
from spark_integration._sink.column_handler import ColumnHandler
from spark_integration._sink.options import parse_sink_options

CONNECTION = (
    "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=listen;"
    "SharedAccessKey=c2VjcmV0;EntityPath=orders"
)
LEAST = {
    "handler": f"{__name__}:Orders",
    "checkpointStore": "sqlite:group.db",
    "connectionString": CONNECTION,
}

NAMES = {"connectionString": None, "fullyQualifiedNamespace": "ns", "eventHubName": "hub"}


class Orders(PartitionHandler):
    """A user's handler."""

    async def process_event(self, context, event):
        """Do nothing."""


class Blocking(BlockingPartitionHandler):
    """Another one."""

    def process_event(self, context, event):
        """Do nothing."""


class Columns(PartitionHandler):
    """Takes Arrow batches, and nothing else."""

    async def process_columns(self, context, columns):
        """Do nothing."""


def test_three_options_are_required():
    """The connection string gives the hub's names; Spark's own options are ignored."""
    options = parse_sink_options({**LEAST, "checkpointLocation": "/tmp/x", "queryName": "y"})

    assert options.group.make() == ConsumerGroup(
        fully_qualified_namespace="contoso.servicebus.windows.net", eventhub_name="orders"
    )
    assert options.failure_policy.attempts_max == 3
    assert type(options.make_handler()) is Orders
    assert options.make_dead_letters() is None
    assert not options.defers_checkpoints
    assert options.patience == timedelta(minutes=1)


def test_every_option_is_parsed():
    """In any case, and with the prefix of the Scala connector."""
    given = {
        "HANDLER": f"{__name__}:Blocking",
        "checkpointstore": "blob:checkpoints",
        "storageConnectionString": "env:STORAGE",
        "fullyQualifiedNamespace": "ns",
        "eventhubs.eventHubName": "hub",
        "eventhubs.consumerGroup": "spark",
        "maxEventsPerCall": "7",
        "maxAttempts": "1",
        "onFailure": "deadLetter",
        "deadLetters": "json:loads",
        "deferCheckpoints": "true",
        "operationTimeout": "2m",
    }
    options = parse_sink_options(given)

    assert pickle.loads(pickle.dumps(options)) == options
    assert (options.group.make().name, options.group.make().eventhub_name) == ("spark", "hub")
    assert isinstance(options.make_handler(), ThreadedHandler)
    assert (options.events_per_call_max, options.patience) == (7, timedelta(minutes=2))
    assert options.failure_policy.action is FailureAction.DEAD_LETTER
    assert options.defers_checkpoints
    assert "c2VjcmV0" not in repr(parse_sink_options(LEAST))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"handler": None}, "the sink needs the options handler"),
        ({"checkpointStore": None}, "the sink needs the options handler .* and checkpointStore"),
        ({"connectionString": None}, "which hub's checkpoints"),
        ({"fullyQualifiedNamespace": "ns"}, "which hub's checkpoints"),
        ({"connectionString": None, "fullyQualifiedNamespace": "ns"}, "eventHubName"),
        ({"handlers": "x:y"}, "did you mean handler"),
        ({"onFailure": "retry"}, "stop, skip or deadLetter"),
        ({"onFailure": "deadLetter"}, "need each other"),
        ({"deadLetters": "json:loads"}, "need each other"),
        ({"maxAttempts": "0"}, "of 1 or more"),
        ({"batchMin": "10"}, "batchMin is a setting of a processor: in Spark the rows"),
        ({"batchWait": "1s"}, "batchWait is a setting of a processor"),
        ({"path": "y"}, "'path' is not an option of the eventproc sink: remove it"),
        (
            {"storageConnectionString": "x"},
            "storageConnectionString is given and checkpointStore is .* no effect",
        ),
        ({"storageAccount": "contoso"}, "storageAccount is given and checkpointStore is 'sqlite"),
        ({**NAMES, "caBundle": "ca.pem"}, "caBundle is given and checkpointStore is 'sqlite"),
        ({**NAMES, "proxy": "env:PROXY"}, "proxy is given and checkpointStore is 'sqlite"),
        ({**NAMES, "transport": "websocket"}, "transport has no effect without connectionString"),
        ({**NAMES, "customEndpoint": "sb://x"}, "customEndpoint has no effect without"),
        (
            {"checkpointStore": "blob:box"},
            "storageConnectionString is not given and storageAccount is not",
        ),
        (
            {"checkpointStore": "blob:b", "storageConnectionString": "x", "storageAccount": "abc"},
            "storageAccount is given and storageConnectionString is given: .*not both",
        ),
    ],
)
def test_invalid_options_are_refused(change, words):
    """When the query starts. The message names the option."""
    given = {name: value for name, value in {**LEAST, **change}.items() if value is not None}
    with pytest.raises(ConfigurationError, match=words):
        parse_sink_options(given)


def test_no_option_needs_a_secret():
    """The hub is only named, and the store is reached with an identity."""
    options = parse_sink_options(
        {
            "handler": LEAST["handler"],
            "fullyQualifiedNamespace": "ns",
            "eventHubName": "hub",
            "checkpointStore": "blob:box",
            "storageAccount": "contoso",
            "caBundle": "ca.pem",
            "proxy": "env:PROXY",
        }
    )

    assert pickle.loads(pickle.dumps(options)).store == StoreRecipe(
        spec="blob:box",
        account="contoso",
        network=NetworkRecipe(ca_bundle="ca.pem", proxy=Secret("env:PROXY")),
    )


def makes_no_handler():
    """Return something else."""
    return {}


@pytest.mark.parametrize("name", ["builtins:dict", f"{__name__}:makes_no_handler"])
def test_a_factory_that_returns_no_handler_is_refused(name):
    """When the handler is made; the message names the type of the result."""
    options = parse_sink_options({**LEAST, "handler": name})
    with pytest.raises(ConfigurationError, match="dict is not a handler: let it inherit"):
        options.make_handler()


def test_sparks_own_options_are_refused_outside_of_spark():
    """``CheckpointingSink`` would ignore a checkpointLocation, so it is an error there."""
    with pytest.raises(ConfigurationError, match="'checkpointlocation' is not an option"):
        CheckpointingSink(Orders, checkpointStore="sqlite:x", checkpointLocation="/tmp/x")


def makes_columns():
    """Return a handler of columns."""
    return Columns()


@pytest.mark.parametrize(
    ("name", "takes_columns"), [("Columns", True), ("makes_columns", True), ("Orders", False)]
)
def test_it_is_known_whether_a_handler_takes_columns(name, takes_columns):
    """Also of one that a function makes."""
    options = parse_sink_options({**LEAST, "handler": f"{__name__}:{name}"})

    assert options.takes_columns() is takes_columns


def test_a_handler_with_process_columns_alone_is_accepted():
    """Spark calls only process_columns."""
    options = parse_sink_options({**LEAST, "handler": f"{__name__}:Columns"})

    assert isinstance(options.make_handler(), ColumnHandler)


class Values(BlockingPartitionHandler[dict[str, int]]):
    """Asks for decoded bodies as a column."""

    decode = JsonDecoder(dict[str, int])
    columns = ("value",)

    def process_columns(self, context, columns):
        """Do nothing."""


def test_a_column_of_decoded_bodies_is_refused():
    """The columns are those of the query, which can decode the body itself."""
    options = parse_sink_options({**LEAST, "handler": f"{__name__}:Values"})
    with pytest.raises(ConfigurationError, match="decode the body there with from_json"):
        options.make_handler()


def test_an_unusable_handler_class_is_refused_on_the_driver():
    """The error comes when the options are parsed, before any task runs."""
    given = {name: value for name, value in LEAST.items() if name != "handler"}
    with pytest.raises(ConfigurationError, match="PartitionHandler handles nothing: define"):
        parse_sink_options(given, handler=PartitionHandler)


class WithTransactions(PartitionHandler):
    """Writes in transactions."""

    uses_transactions = True

    async def process_event(self, context, event):
        """Do nothing."""


def test_a_handler_with_transactions_is_refused_with_the_reason():
    """Before a batch is handled."""
    options = parse_sink_options(LEAST | {"handler": f"{__name__}:WithTransactions"})
    with pytest.raises(ConfigurationError, match="commits a batch as a whole"):
        options.make_handler()
