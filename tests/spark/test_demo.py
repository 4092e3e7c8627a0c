"""The queries of the Spark demo, without its cluster."""

import asyncio
import os
from pathlib import Path

import pytest

from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.spark.cluster import Cluster, QueryFailedError
from eventproc.cli.demo.stage import StoreChoice, StoreInfo


async def test_a_query_that_does_not_start_raises_query_failed_error(spark):
    """The demo raises its own error with a message of one line, from any thread."""
    stage = HubStage(partition_count=2, store=StoreChoice.SQLITE, print_line=print)
    stage.note = StoreInfo(name="SQLite", spec="sqlite:group.db")
    stage.folder = Path(os.devnull)
    cluster = Cluster(spark, stage, events_per_batch=100)

    with pytest.raises(QueryFailedError, match=r"a query does not start: .* not a directory: \S+$"):
        await asyncio.to_thread(cluster.start)
