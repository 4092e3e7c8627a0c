"""What the answers of a storage account mean: another writer was first, not now, or never."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from eventproc._base.azure_storage.account import NO_ACCOUNT
from eventproc._base.network import failure_of
from eventproc.errors import StoreRejectedError, StoreUnavailableError

ClientT = TypeVar("ClientT")

_RACE_STATUSES: Final = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}
)
_LACKS_RIGHT: Final = frozenset(
    {
        "AuthorizationPermissionMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
    }
)
"""Error codes that mean that the credential is valid but lacks the right for the request."""

_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_BUSY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class ConditionFailedError(Exception):
    """The record was changed, created or deleted since the caller read it.

    Never leaves a store or a reader of dead letters.
    """

    def __init__(self, *, was_repeated: bool = False) -> None:
        super().__init__("the record changed since it was read")
        self.was_repeated = was_repeated
        """Whether the request was sent more than once."""


class Right(StrEnum):
    """The right that a request needs."""

    LIST = "list"
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    CREATE = "create"
    """To create the container or the table."""


_OF_ONE_RECORD: Final = frozenset({Right.READ, Right.WRITE, Right.DELETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Generic[ClientT]):
    """A service of a storage account: its client, its names, and its words in messages."""

    kind: Literal["blob", "table"]
    client: Callable[..., ClientT]
    """Makes a client from the account's URL and the name of the container or table."""

    account_of: Callable[[str], tuple[str, Any]]
    """Returns the URL and the key in a connection string; raises ``ValueError`` or ``TypeError``
    if that is none."""

    place: str
    """What is opened in messages: ``blob container``."""

    setting: Literal["container", "table"]
    items: Literal["blobs", "entities"]
    name_pattern: str
    name_rule: str
    role: str
    """The built-in role of Azure that includes every right that is needed."""

    races: frozenset[str]
    """Error codes that mean that the record changed since it was read, so another writer was
    first. Other codes with the same statuses (a lease, a container that is being deleted) do not
    mean that, and the outcome stays unknown."""

    missing: str
    """The error code if the container or the table does not exist."""

    remedy: str
    """What to do then, with ``{name}``."""

    pauses: frozenset[str] = frozenset()
    """Further error codes after which another attempt may succeed."""


def error_for(
    service: Service[Any],
    status: int,
    code: str,
    *,
    place: str,
    right: Right,
    was_repeated: bool = False,
    expired_at: str = "",
    is_identity: bool = False,
    url: str = "",
) -> StoreUnavailableError | StoreRejectedError | ConditionFailedError:
    """Return the error for an answer that is not a success.

    Args:
        service: The service that answered.
        status: The HTTP status; 0 if the request could not be signed.
        code: The service's error code, empty if something else answered; with status 0, the reason
            why signing failed.
        place: The container or table, for error messages.
        right: The right that the request needs.
        was_repeated: Whether the request was sent more than once.
        expired_at: When its SAS token expired, or empty.
        is_identity: Whether the credential is a token of Entra ID, whose rights are roles.
        url: The address that was requested.
    """
    if status in _RACE_STATUSES and code in service.races and right in _OF_ONE_RECORD:
        return ConditionFailedError(was_repeated=was_repeated)
    answer = f"({status} {code})" if code else f"({status} without an error code)"
    is_busy = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _BUSY
    if is_busy or code in service.pauses or (status and not code):
        return StoreUnavailableError(f"{service.place} {place} cannot answer now {answer}")
    if code.startswith("Lease"):
        return StoreRejectedError(
            f"{service.place} {place}: another program has a lease on the blob "
            f"{unquote(urlsplit(url).path)} {answer}, so nobody else can write it: end the lease "
            "(az storage blob lease break), and let that program use another container"
        )
    if code == service.missing:
        remedy = service.remedy.format(name=place.rpartition("/")[2])
        why = f"the {service.setting} does not exist; {remedy}"
    elif code == "ResourceNotFound":
        why = NO_ACCOUNT
    elif not status:
        why = f"no request can be signed with the credential ({code}); is the account key complete?"
    elif expired_at:
        why = f"the SAS token expired at {expired_at} {answer}; give a new one"
    elif code in _LACKS_RIGHT:
        why = _why_right_is_lacking(service, answer, right, is_identity=is_identity)
    elif status in _REFUSED:
        why = _why_refused(answer, is_identity=is_identity)
    else:
        why = f"the service refuses the request {answer}"
    return StoreRejectedError(f"{service.place} {place} cannot be used: {why}")


def _why_right_is_lacking(
    service: Service[Any], answer: str, right: Right, *, is_identity: bool
) -> str:
    what = f"the {service.setting}" if right is Right.CREATE else service.items
    if is_identity:
        return (
            f"the identity lacks the right to {right} {what} {answer}; assign it the role "
            f"{service.role} on the {service.setting} or the storage account (it takes effect "
            "after some minutes)"
        )
    return (
        f"the credential lacks the right to {right} {what} {answer}; it needs the rights to list, "
        "read, write and delete"
    )


def _why_refused(answer: str, *, is_identity: bool) -> str:
    if is_identity:
        return (
            f"the token is refused {answer}; check that the storage account belongs to the "
            "identity's tenant, and whether its network rules let this machine in"
        )
    return (
        f"the credential is refused {answer}; check the key or token, and whether the account's "
        "network rules let this machine in"
    )


def expiry_before(url: str, now: datetime | None) -> str:
    """Return when the SAS token in a request's URL expired, or an empty text if it has not."""
    for expiry in parse_qs(urlsplit(url).query).get("se", ()):
        try:
            is_over = now is not None and datetime.fromisoformat(expiry) <= now
        except (ValueError, TypeError):  # a date alone has no time zone
            is_over = False
        if is_over:
            return expiry
    return ""


def no_answer(error: Exception, what: str) -> StoreUnavailableError | StoreRejectedError:
    """Return the error for a request to *what*, such as ``table orders``, without an answer.

    The message contains the operating system's reason but not the client's text, which may quote
    the URL with a SAS token.
    """
    if failure := failure_of(error):
        kind = StoreRejectedError if failure.is_setting else StoreUnavailableError
        return kind(f"{what} cannot be reached: {failure.reason}")
    cause = getattr(error, "inner_exception", None) or error
    reason = type(cause).__name__
    if isinstance(cause, OSError) and cause.strerror:
        reason += f": {cause.strerror}"
    return StoreUnavailableError(
        f"{what} does not answer ({reason}); check the storage account's address, and that "
        "this machine can reach it"
    )
