"""The stage finds out when a process may be frozen."""

import sqlite3
from contextlib import closing

from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.stage import SQLITE_FILE, StoreChoice


def test_the_sqlite_file_is_locked_during_a_write(tmp_path):
    """A process that is frozen during a write would block all others."""
    stage = HubStage(partition_count=1, store=StoreChoice.SQLITE, print_line=print)
    stage.folder = tmp_path
    before = stage.is_file_locked()
    with closing(sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        during = stage.is_file_locked()
        writer.execute("ROLLBACK")
        after = stage.is_file_locked()

    assert (before, during, after) == (False, True, False)
