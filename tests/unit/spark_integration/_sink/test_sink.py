"""The callable for ``foreachBatch`` on Spark Connect, where it cannot work."""

import pickle

import pytest
from pyspark.sql import is_remote

from eventproc import PartitionHandler
from eventproc.errors import ConfigurationError
from spark_integration import CheckpointingSink

WORDS = "cannot work on Spark Connect.* use writeStream.format"


class Orders(PartitionHandler):
    """A user's handler."""

    async def process_event(self, context, event):
        """Do nothing."""


OPTIONS = {
    "checkpointStore": "sqlite:group.db",
    "fullyQualifiedNamespace": "localhost",
    "eventHubName": "orders",
}


@pytest.fixture(name="sink")
def _sink() -> CheckpointingSink:
    return CheckpointingSink(Orders, **OPTIONS)


def test_a_sink_is_refused_in_a_program_on_spark_connect(monkeypatch):
    """As soon as it is made: PySpark knows that a session of Spark Connect exists."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")

    assert is_remote()
    with pytest.raises(ConfigurationError, match=WORDS):
        CheckpointingSink(Orders, **OPTIONS)


def test_pickling_a_sink_for_spark_connect_raises(sink):
    """A client pickles a sink that it made before its session: the start fails, not a batch."""
    with pytest.raises(ConfigurationError, match=WORDS):
        pickle.dumps(sink)


def test_calling_a_sink_on_a_spark_connect_server_raises(sink):
    """For example inside a pickled function that makes the sink on the server."""
    with pytest.raises(ConfigurationError, match=WORDS):
        sink(object(), 0)
