"""The database file: what a won write means."""

from checkpointstores.sqlite.file import connect


def test_a_won_write_is_on_the_disk(tmp_path):
    """Not only in the system's cache: with less than FULL, a power cut may undo the last ones."""
    connection = connect(tmp_path / "group.db", busy_timeout_s=5)
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.close()

    assert synchronous == 2
