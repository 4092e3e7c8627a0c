"""The callable for ``foreachBatch`` on Spark Connect, where it cannot work."""

import pickle

import pytest

from eventproc import PartitionHandler
from eventproc.errors import ConfigurationError
from spark_integration import CheckpointingSink

WORDS = "cannot work on Spark Connect.* use writeStream.format"


class Orders(PartitionHandler):
    """A user's handler."""

    async def process_event(self, context, event):
        """Do nothing."""


@pytest.fixture(name="sink")
def _sink() -> CheckpointingSink:
    return CheckpointingSink(
        Orders,
        checkpointStore="sqlite:group.db",
        fullyQualifiedNamespace="localhost",
        eventHubName="orders",
    )


def test_pickling_a_sink_for_spark_connect_raises(sink):
    """A client pickles the callable when it starts the query, so the start fails, not a batch."""
    with pytest.raises(ConfigurationError, match=WORDS):
        pickle.dumps(sink)


def test_calling_a_sink_on_a_spark_connect_server_raises(sink):
    """For example inside a pickled function that makes the sink on the server."""
    with pytest.raises(ConfigurationError, match=WORDS):
        sink(object(), 0)
