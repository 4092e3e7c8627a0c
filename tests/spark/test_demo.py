"""The demo's queries, as far as they can be seen without its cluster."""

import asyncio
import os
from pathlib import Path

import pytest

from eventproc.cli.demo.spark.cluster import Cluster, QueryFailedError
from eventproc.cli.demo.stage import Stage, StoreChoice, StoreInfo


async def test_a_query_that_does_not_start_is_the_demos_own_error(spark):
    """The command says that in one line; it starts queries in whatever thread is free."""
    stage = Stage(partition_count=2, store=StoreChoice.SQLITE, print_line=print)
    stage.note = StoreInfo(name="SQLite", spec="sqlite:group.db")
    stage.folder = Path(os.devnull)
    cluster = Cluster(spark, stage, events_per_batch=100)

    with pytest.raises(QueryFailedError, match=r"a query does not start: .* not a directory: \S+$"):
        await asyncio.to_thread(cluster.start)
