"""Make the store that ``--store`` names: in a SQLite file, blob storage, a table or PostgreSQL."""

import re
from pathlib import Path
from typing import Final

from eventproc._command.arguments.access import StorageAccess, secret_in_variable
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore

_SETTING: Final = re.compile(r"\?\w*=|\?$")
"""What looks like a setting of another kind of store; a question mark in a path does not."""


def open_store(
    spec: str,
    storage: StorageAccess,
    *,
    creates: bool = False,
    must_exist: bool = False,
) -> CheckpointStore:
    """Make the store that ``--store`` names, without opening it.

    Args:
        spec: ``sqlite:PATH``; ``blob:CONTAINER``, or ``blob:CONTAINER?namespace=HOST`` if the
            names of the blobs begin with another spelling of the namespace, and
            ``blob:CONTAINER?names=exact`` if they are not in lower case; ``tables:TABLE``;
            ``postgres:NAME``, or
            ``postgres:NAME?schema=SCHEMA``, where ``NAME`` is the environment variable that has
            the connection string, or ``file:PATH``.
        storage: How to reach the storage account, for ``blob`` and ``tables``.
        creates: Whether ``blob`` may create its container, ``tables`` its table, and ``postgres``
            its tables.
        must_exist: Whether ``sqlite`` refuses a file that does not exist, so that a verb that only
            reads does not create one.

    Raises:
        ConfigurationError: The option has another form, or a connection string is missing.
    """
    kind, _, place = spec.partition(":")
    if kind in {"sqlite", "tables"} and _SETTING.search(place):
        raise ConfigurationError(
            f"--store {kind}:{place}: such a store has no settings after a question mark: only "
            "blob:CONTAINER?namespace=HOST&names=exact and postgres:NAME?schema=SCHEMA have some"
        )
    if kind == "sqlite" and place:
        return _sqlite(place, must_exist=must_exist)
    if kind == "blob" and place:
        return _blob(place, storage, creates=creates)
    if kind == "tables" and place:
        return _tables(place, storage, creates=creates)
    if (kind == "postgres" and place) or kind == "postgresql":
        return _postgres(place, creates=creates)
    raise ConfigurationError(
        f"--store is {spec!r}: give sqlite:PATH, for example sqlite:group.db; blob:CONTAINER, for "
        "example blob:checkpoints; tables:TABLE, for example tables:checkpoints; or postgres:NAME, "
        "where NAME is the environment variable that has the connection string"
    )


def _sqlite(place: str, *, must_exist: bool) -> CheckpointStore:
    from checkpointstores.sqlite import SqliteCheckpointStore  # noqa: PLC0415 - only if used

    path = Path(place).expanduser()
    if must_exist and not path.is_file():
        raise ConfigurationError(
            f"--store sqlite:{place}: there is no such file: check the path. If the group has run "
            "here, stop its processors and put the file back with its -wal: one that starts "
            "without it makes an empty one, and begins anew. A new group's first processor makes "
            "it, or `eventproc store init`"
        )
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"--store sqlite:{place}: there is no folder {path.parent}: create it, or correct the "
            "path"
        )
    return SqliteCheckpointStore(path)


def _blob(place: str, storage: StorageAccess, *, creates: bool) -> CheckpointStore:
    container, question_mark, text = place.partition("?")
    settings = dict(setting.partition("=")[::2] for setting in text.split("&") if question_mark)
    namespace, names = settings.pop("namespace", None), settings.pop("names", "lower")
    if settings or namespace == "" or names not in {"exact", "lower"}:
        raise ConfigurationError(
            f"--store blob:{place}: after the question mark, give namespace=HOST, the namespace "
            "with which the names of the blobs begin, names=exact if they are spelled as "
            "configured, not in lower case, or both with & between them"
        )
    from checkpointstores.blob import BlobCheckpointStore  # noqa: PLC0415 - it is an extra

    return storage.in_account(
        BlobCheckpointStore,
        container,
        f"--store blob:{container}",
        create_container=creates,
        namespace=namespace,
        exact_names=names == "exact",
    )


def _tables(place: str, storage: StorageAccess, *, creates: bool) -> CheckpointStore:
    from checkpointstores.tables import TableCheckpointStore  # noqa: PLC0415 - it is an extra

    return storage.in_account(
        TableCheckpointStore,
        place,
        f"--store tables:{place}",
        "table",
        create_table=creates,
    )


def _postgres(place: str, *, creates: bool) -> CheckpointStore:
    variable, question_mark, setting = place.partition("?")
    name, _, schema = setting.partition("=")
    if question_mark and (name != "schema" or not schema):
        raise ConfigurationError(
            "--store postgres: after the question mark, give schema=NAME, the schema that has the "
            "tables"
        )
    dsn = secret_in_variable("--store postgres", variable)
    from checkpointstores.postgres import PostgresCheckpointStore  # noqa: PLC0415 - it is an extra

    if not schema:
        return PostgresCheckpointStore(dsn, create_schema=creates)
    return PostgresCheckpointStore(dsn, schema=schema, create_schema=creates)
