"""The requests that the table store makes to a table, and the errors for their answers.

``records.py`` uses this interface, so it does not depend on Azure's client.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Protocol

from checkpointstores.requests import ConditionFailedError
from eventproc.errors import StoreRejectedError, StoreUnavailableError
from eventproc.identity.storage_account import NO_ACCOUNT

TRANSACTION_MAX: Final = 100
"""Most entities in one entity-group transaction; all must have the same partition key."""

ROLE: Final = "Storage Table Data Contributor"
"""The built-in role of Azure that includes every right that a store needs."""

_RACES: Final = frozenset(
    {
        "ConditionNotMet",
        "EntityAlreadyExists",
        "EntityNotFound",
        "ResourceNotFound",
        "UpdateConditionNotSatisfied",
    }
)
"""Error codes that mean that the entity changed since it was read."""

_LACKS_RIGHT: Final = frozenset(
    {"AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"}
)
_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_BUSY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})

Value = str | int | float | bool | bytes
Values = Mapping[str, Value]


class Right(StrEnum):
    """The right that a request needs."""

    READ = "read entities"
    WRITE = "write entities"
    DELETE = "delete entities"
    CREATE_TABLE = "create the table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key of an entity in its table."""

    partition: str
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One version of an entity."""

    key: Key
    etag: str
    last_modified: datetime
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The version that a write created."""

    etag: str
    last_modified: datetime | None
    """``None`` if the ETag does not contain it: then the entity has to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A conditional write: the stored entity must have this ETag; ``None``: must not exist.

    An update keeps the properties that *values* leaves out.
    """

    key: Key
    values: Values
    etag: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entities with one partition key."""

    entities: tuple[Entity, ...]
    as_of: datetime
    """The service's time in the answer with the first page. Relative to it, entities on later pages
    can only appear younger than they are, never older."""


class Table(Protocol):
    """A table. Each method is one request, or one for each page of a listing.

    All methods raise ``StoreUnavailableError`` if there is no answer or a temporary failure, and
    ``StoreRejectedError`` if the service refuses permanently. Writes also raise
    ``ConditionFailedError``.
    """

    async def list(
        self, partition: str, columns: Sequence[str], *, row_prefix: str = ""
    ) -> Listing:
        """Return the entities of a partition key, with the named properties."""

    async def read(self, key: Key) -> Entity | None:
        """Return an entity with all properties, or ``None``."""

    async def write(self, write: Write) -> Written:
        """Make one conditional write."""

    async def write_together(self, writes: Sequence[Write]) -> Sequence[Written]:
        """Make up to ``TRANSACTION_MAX`` conditional writes, all or none of them."""

    async def put(self, key: Key, values: Values) -> None:
        """Write an entity, whether it exists or not."""

    async def delete(self, key: Key, *, etag: str | None) -> None:
        """Delete an entity of the version *etag*; ``None``: of any version.

        An entity that does not exist counts as deleted.
        """


def error_for(
    status: int, code: str, *, place: str, right: Right, is_identity: bool
) -> StoreUnavailableError | StoreRejectedError | ConditionFailedError:
    """Return the error for an answer that is not a success.

    Args:
        status: The HTTP status; 0 if the request could not be signed.
        code: The service's error code, empty if something else answered; with status 0, the reason
            why signing failed.
        place: The table, for error messages.
        right: The right that the request needs.
        is_identity: Whether the credential is a token of Entra ID, whose rights are roles.
    """
    if code in _RACES:
        return no_account(place) if right is Right.CREATE_TABLE else ConditionFailedError()
    answer = f"({status} {code})" if code else f"({status} without an error code)"
    is_busy = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY
    if is_busy or code == "TableBeingDeleted" or (status and not code):
        return StoreUnavailableError(f"table {place} cannot answer now {answer}")
    if code == "TableNotFound":
        why = (
            "the table does not exist; create it with `eventproc store init --store "
            f"tables:{place.rpartition('/')[2]}`, or let a processor create it when it starts "
            "(create_table=True, --create-container)"
        )
    elif not status:
        why = f"no request can be signed with the credential ({code}); is the account key complete?"
    elif code in _LACKS_RIGHT and is_identity:
        why = (
            f"the identity lacks the right to {right} {answer}; assign it the role {ROLE} on the "
            "table or the storage account (it takes effect after some minutes)"
        )
    elif status in _REFUSED:
        why = (
            f"the credential is refused {answer} for the right to {right}; check the key, token or "
            "role, and whether the account's network rules let this machine in"
        )
    else:
        why = f"the service refuses the request {answer}"
    return StoreRejectedError(f"table {place} cannot be used: {why}")


def no_account(place: str) -> StoreRejectedError:
    """Return the error for a service that does not know the account."""
    return StoreRejectedError(f"table {place} cannot be used: {NO_ACCOUNT}")
