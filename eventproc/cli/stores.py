"""From ``--store sqlite:PATH`` or ``--store blob:CONTAINER`` to a store."""

from pathlib import Path

from eventproc.cli.extras import needing
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore

STORAGE_VARIABLE = "EVENTPROC_STORAGE_CONNECTION_STRING"
"""Environment variable: the storage account's connection string."""


def open_store(
    spec: str,
    *,
    storage_connection_string: str | None,
    create_container: bool = False,
    must_exist: bool = False,
) -> CheckpointStore:
    """Make the store that a ``--store`` names; nothing is opened yet.

    Args:
        spec: ``sqlite:PATH`` or ``blob:CONTAINER``.
        storage_connection_string: Needed for ``blob``.
        create_container: Whether ``blob`` may create its container.
        must_exist: Whether ``sqlite`` refuses a file that is not there: who only looks must not
            leave a file behind.

    Raises:
        ConfigurationError: It names no store, or lacks what it needs.
    """
    kind, _, place = spec.partition(":")
    if kind == "sqlite" and place:
        return _sqlite(place, must_exist=must_exist)
    if kind == "blob" and place:
        return _blob(place, storage_connection_string, create_container=create_container)
    raise ConfigurationError(
        f"--store is {spec!r}: give sqlite:PATH, for example sqlite:group.db, or blob:CONTAINER, "
        "for example blob:checkpoints"
    )


def _sqlite(place: str, *, must_exist: bool) -> CheckpointStore:
    from checkpointstores.sqlite import SqliteCheckpointStore  # noqa: PLC0415 - one store is used

    path = Path(place).expanduser()
    if must_exist and not path.is_file():
        raise ConfigurationError(
            f"--store sqlite:{place}: there is no such file; a group's first processor creates "
            "it, so check the path"
        )
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"--store sqlite:{place}: there is no folder {path.parent}: create it, or correct the "
            "path"
        )
    return SqliteCheckpointStore(path)


def _blob(
    container: str, connection_string: str | None, *, create_container: bool
) -> CheckpointStore:
    if not connection_string:
        raise ConfigurationError(
            f"--store blob:{container} needs the storage account's connection string: set the "
            f"environment variable {STORAGE_VARIABLE}"
        )
    with needing("blob"):
        from checkpointstores.blob import BlobCheckpointStore  # noqa: PLC0415 - it is an extra
    return BlobCheckpointStore.from_connection_string(
        connection_string, container, create_container=create_container
    )
