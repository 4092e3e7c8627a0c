"""The callable for ``foreachBatch``: where it cannot work it says so."""

import pickle

import pytest

from eventproc import PartitionHandler
from eventproc.errors import ConfigurationError
from spark_integration import CheckpointingSink

WORDS = "cannot work on Spark Connect.* use writeStream.format"


@pytest.fixture(name="sink")
def _sink() -> CheckpointingSink:
    return CheckpointingSink(
        PartitionHandler,
        checkpointStore="sqlite:group.db",
        fullyQualifiedNamespace="localhost",
        eventHubName="orders",
    )


def test_it_does_not_travel_to_a_server_of_connect(sink):
    """A client sends the callable when it starts the query, so that fails, and not a batch."""
    with pytest.raises(ConfigurationError, match=WORDS):
        pickle.dumps(sink)


def test_a_server_of_connect_cannot_call_it(sink):
    """As where a function makes it that has travelled; frames there are none of Java's."""
    with pytest.raises(ConfigurationError, match=WORDS):
        sink(object(), 0)
