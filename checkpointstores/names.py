"""Names of versions and writes, and checks of names that are part of a record's key."""

import secrets

from eventproc.errors import ConfigurationError


def require_partition_id(partition_id: str) -> str:
    """Return the id unchanged if it can be part of a key.

    All stores refuse the same ids, so that a group can be moved from one store to another.

    Raises:
        ConfigurationError: it is empty, has a slash, a backslash or surrounding blanks, is not
            printable, or is ``.`` or ``..``.
    """
    if (
        not partition_id
        or partition_id in {".", ".."}
        or partition_id != partition_id.strip()
        or "/" in partition_id
        or "\\" in partition_id
        or not partition_id.isprintable()
    ):
        raise ConfigurationError(
            f"partition id {partition_id!r} cannot be part of a record's key: "
            "it must be printable, without slashes or surrounding blanks"
        )
    return partition_id


def new_name() -> str:
    """Return a random name, so that recreated records and restored backups never repeat one."""
    return secrets.token_hex(8)
