"""Make the store that ``--store sqlite:PATH`` or ``--store blob:CONTAINER`` names."""

from pathlib import Path

from eventproc.cli.access.storage import StorageAccess
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore


def open_store(
    spec: str,
    storage: StorageAccess,
    *,
    create_container: bool = False,
    must_exist: bool = False,
) -> CheckpointStore:
    """Make the store that ``--store`` names, without opening it.

    Args:
        spec: ``sqlite:PATH``, ``blob:CONTAINER``, or ``blob:CONTAINER?namespace=HOST`` if the
            names of the blobs begin with another spelling of the namespace.
        storage: How to reach the storage account, for ``blob``.
        create_container: Whether ``blob`` may create its container.
        must_exist: Whether ``sqlite`` refuses a file that does not exist, so that a verb that only
            reads does not create one.

    Raises:
        ConfigurationError: The option has another form, or the storage account is missing.
    """
    kind, _, place = spec.partition(":")
    if kind == "sqlite" and place:
        return _sqlite(place, must_exist=must_exist)
    if kind == "blob" and place:
        return _blob(place, storage, create_container=create_container)
    raise ConfigurationError(
        f"--store is {spec!r}: give sqlite:PATH, for example sqlite:group.db, or blob:CONTAINER, "
        "for example blob:checkpoints"
    )


def _sqlite(place: str, *, must_exist: bool) -> CheckpointStore:
    from checkpointstores.sqlite import SqliteCheckpointStore  # noqa: PLC0415 - only if used

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


def _blob(place: str, storage: StorageAccess, *, create_container: bool) -> CheckpointStore:
    container, question_mark, setting = place.partition("?")
    name, _, namespace = setting.partition("=")
    if question_mark and (name != "namespace" or not namespace):
        raise ConfigurationError(
            f"--store blob:{place}: after the question mark, give namespace=HOST, the namespace "
            "with which the names of the blobs begin"
        )
    from checkpointstores.blob import BlobCheckpointStore  # noqa: PLC0415 - it is an extra

    return storage.make(
        BlobCheckpointStore,
        container,
        f"--store blob:{container}",
        create_container=create_container,
        namespace=namespace or None,
    )
