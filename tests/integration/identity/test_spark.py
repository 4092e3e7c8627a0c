"""What Spark's tasks do, with an identity instead of keys, over TLS; each in a process of its own.

Without Spark: the code of a task is plain Python.
"""

import asyncio
import pickle
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from eventproc import PartitionHandler
from spark_integration._options import parse_source_options
from spark_integration._publish.connections import Connections
from spark_integration._publish.options import parse_publish_options
from spark_integration._publish.writer import publish_rows
from spark_integration._sink.options import parse_sink_options
from spark_integration._sink.records import TaskId
from spark_integration._sink.task import _handle, commit_reports
from spark_integration._source.hub import Hub
from spark_integration._source.planning import EventRange
from spark_integration._source.reading import read_ranges

from .conftest import NAMESPACE

HUB = {"fullyQualifiedNamespace": NAMESPACE, "eventHubName": "orders"}
TASK = TaskId(query_id="query", batch_id=0, run_id="run", task=0)


class Handler(PartitionHandler):
    """Handles everything."""

    async def process_event(self, context, event):
        """Do nothing."""


@pytest.fixture(name="network")
def _network(hub, tls):
    """Return the options that say how the hub is reached."""
    return {"customEndpoint": f"sb://127.0.0.1:{hub.port}", "caBundle": str(tls.ca)}


def publish(options, bodies):
    """Publish in a task."""
    connections = Connections()
    rows = pa.RecordBatch.from_pydict({"body": bodies, "partition": ["0"] * len(bodies)})
    try:
        return publish_rows(options, iter([rows]), connections)
    finally:
        connections.close()


def read(options, end):
    """Plan as the driver does, and read as a task does."""
    ends = Hub(options).partition_ends()
    positions = Hub(options).find(options.starting, ends)
    ranges = [EventRange(partition_id="0", start=positions["0"], end=end)]
    found = [event for _, events in read_ranges(options, ranges) for event in events]
    return positions["0"], [event.body for event in found]


def handle(options, offset):
    """Handle the row with sequence number 0 as a task does, and commit as the driver does."""
    row = pa.RecordBatch.from_pydict(
        {
            "body": [b"a"],
            "partition": ["0"],
            "offset": [offset],
            "sequenceNumber": [0],
            "enqueuedTime": [datetime.now(UTC)],
        }
    )
    report = asyncio.run(_handle(options, TASK, iter([row])))
    return commit_reports(options, 0, [report])


@pytest.mark.long
def test_publisher_source_and_sink_need_no_secret(
    executor, hub, network, account, box, tls, identity
):
    """The options are sent to the process, and the credential is made there."""
    store = {"checkpointStore": f"blob:{box}", "storageAccount": account.endpoint}
    publishing = parse_publish_options({"publish": "eventhub", **HUB, **network})
    first = parse_source_options({**HUB, **network}, is_stream=False)
    by_checkpoints = {"startingPositions": "checkpoints", **store}
    after = parse_source_options({**HUB, **network, **by_checkpoints}, is_stream=True)
    handler = {"handler": f"{__name__}:Handler"}
    sink = parse_sink_options({**HUB, **store, **handler, "caBundle": str(tls.ca)})

    count = executor.submit(publish, publishing, ["a", "b"]).result()
    whole = executor.submit(read, first, 2).result()
    offset = hub.events("orders", "0")[0].offset
    executor.submit(handle, sink, str(offset)).result()
    rest = executor.submit(read, after, 2).result()

    assert (count, whole, rest) == (2, (0, [b"a", b"b"]), (1, [b"b"]))
    assert set(identity.asked) == {"https://storage.azure.com", "https://eventhubs.azure.net/"}
    assert len(identity.asked) == 2, "one token each, for all tasks of the process"
    assert b"Credential" not in pickle.dumps((publishing, first, after, sink))
