"""The options of the sink: what is understood, and what is refused with which words."""

import pickle
from datetime import timedelta

import pytest

from eventproc import BlockingPartitionHandler, FailureAction, PartitionHandler
from eventproc.blocking import ThreadedHandler
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from spark_integration.sink_options import parse_sink_options

CONNECTION = (
    "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=listen;"
    "SharedAccessKey=c2VjcmV0;EntityPath=orders"
)
LEAST = {
    "handler": f"{__name__}:Orders",
    "checkpointStore": "sqlite:group.db",
    "connectionString": CONNECTION,
}


class Orders(PartitionHandler):
    """Stands for a user's."""


class Blocking(BlockingPartitionHandler):
    """Another one."""


def test_the_least_is_three_options():
    """Names come from the connection string; Spark's own options are passed over."""
    options = parse_sink_options({**LEAST, "checkpointLocation": "/tmp/x", "path": "y"})

    assert options.group.make() == ConsumerGroup(
        fully_qualified_namespace="contoso.servicebus.windows.net", eventhub_name="orders"
    )
    assert options.failure_policy.attempts_max == 3
    assert type(options.make_handler()) is Orders
    assert options.make_dead_letters() is None


def test_everything_can_be_said():
    """Without regard to case, and with the prefix of the Scala connector."""
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
    assert options.failure_policy.then is FailureAction.DEAD_LETTER
    assert options.defers_checkpoints
    assert "c2VjcmV0" not in repr(parse_sink_options(LEAST))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"handler": None}, "handler"),
        ({"checkpointStore": None}, "checkpointStore"),
        ({"connectionString": None}, "whose checkpoints"),
        ({"fullyQualifiedNamespace": "ns"}, "whose checkpoints"),
        ({"connectionString": None, "fullyQualifiedNamespace": "ns"}, "eventHubName"),
        ({"handlers": "x:y"}, "did you mean handler"),
        ({"onFailure": "retry"}, "stop, skip or deadLetter"),
        ({"onFailure": "deadLetter"}, "belong together"),
        ({"deadLetters": "json:loads"}, "belong together"),
        ({"maxAttempts": "0"}, "from 1 on"),
    ],
)
def test_what_cannot_work_is_refused(change, words):
    """When the query starts, with the option's name."""
    given = {name: value for name, value in {**LEAST, **change}.items() if value is not None}
    with pytest.raises(ConfigurationError, match=words):
        parse_sink_options(given)


def test_what_is_no_handler_is_refused():
    """Where it is made, with what it makes."""
    options = parse_sink_options({**LEAST, "handler": "builtins:dict"})
    with pytest.raises(ConfigurationError, match="makes a dict"):
        options.make_handler()
