"""The database file: what a won write means."""

import logging
from typing import Any, cast

import pytest

from checkpointstores.sqlite._clock import HostClock
from checkpointstores.sqlite._file import connect, open_file
from eventproc._base.logs import get_logger
from eventproc.errors import StoreCorruptError


def test_a_won_write_is_on_the_disk(tmp_path):
    """Not only in the system's cache: with less than FULL, a power cut may undo the last ones."""
    connection = connect(tmp_path / "group.db", busy_timeout_s=5)
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.close()

    assert synchronous == 2


def test_a_path_at_which_no_file_can_be_created_is_refused_and_not_tried_again(tmp_path):
    """A process that is restarted again and again would not help."""
    path = tmp_path / "group.db"
    path.symlink_to(tmp_path / "missing" / "group.db")

    with pytest.raises(StoreCorruptError, match="needs the right to write the file"):
        connect(path, busy_timeout_s=5)


def test_a_file_that_could_not_be_opened_is_closed(tmp_path):
    """The log beside it goes with its last connection; attempts would keep more and more files."""
    path, no_clock = tmp_path / "group.db", cast("Any", object())
    with pytest.raises(AttributeError):
        open_file(path, no_clock, busy_timeout_s=5, log=get_logger("eventproc.test"))

    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_logged(tmp_path, caplog):
    """If it should have been there, the group begins without checkpoints, which has to be seen."""
    caplog.set_level(logging.INFO)
    path = tmp_path / "group.db"
    for _ in range(2):
        file = open_file(path, HostClock(), busy_timeout_s=5, log=get_logger("eventproc.test"))
        file.connection.close()

    (record,) = caplog.records
    assert (getattr(record, "event", ""), getattr(record, "path", "")) == (
        "store_created",
        str(path),
    )
