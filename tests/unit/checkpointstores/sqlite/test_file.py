"""The database file: what a won write means."""

import pytest

from checkpointstores.sqlite._file import connect
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
