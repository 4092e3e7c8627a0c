"""The errors of the service: its AMQP conditions and descriptions.

The Azure SDKs choose their exception by the condition, and people search for the description.
Both are the service's own, as quoted in public issue reports.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from eventproc.emulator._amqp.performatives import AmqpError

NOT_FOUND: Final = "amqp:not-found"
UNAUTHORIZED_ACCESS: Final = "amqp:unauthorized-access"
AUTH_FAILED: Final = "com.microsoft:auth-failed"
LINK_STOLEN: Final = "amqp:link:stolen"
DETACH_FORCED: Final = "amqp:link:detach-forced"
MESSAGE_SIZE_EXCEEDED: Final = "amqp:link:message-size-exceeded"
RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"
CONNECTION_FORCED: Final = "amqp:connection:forced"
DECODE_ERROR: Final = "amqp:decode-error"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"
NOT_ALLOWED: Final = "amqp:not-allowed"
ARGUMENT_ERROR: Final = "com.microsoft:argument-error"
ARGUMENT_OUT_OF_RANGE: Final = "com.microsoft:argument-out-of-range"
INVALID_OFFSET: Final = "com.microsoft:georeplication:invalid-offset"
SERVER_BUSY: Final = "com.microsoft:server-busy"


class RefusedError(Exception):
    """A client's request is refused. The client receives the reason; its connection stays open."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(description)
        self.condition = condition
        self.description = description

    def as_error(self) -> AmqpError:
        """Return the error for the wire, with tracking fields as the service appends them."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        trackers = f"TrackingId:{uuid4().hex}_B0, SystemTracker:emulator, Timestamp:{now}"
        # It may quote a client's JSON, which can have halves of characters.
        description = self.description.encode(errors="replace").decode()
        return AmqpError(self.condition, f"{description} {trackers}")


def entity_not_found(path: str) -> RefusedError:
    """The hub or the consumer group does not exist."""
    return RefusedError(
        NOT_FOUND,
        f"The messaging entity 'sb://{path}' could not be found. "
        "To know more visit https://aka.ms/sbResourceMgrExceptions. ",
    )


def right_missing(right: str, path: str) -> RefusedError:
    """The token of the connection does not allow this."""
    return RefusedError(
        UNAUTHORIZED_ACCESS,
        f"Unauthorized access. '{right}' claim(s) are required to perform this operation. "
        f"Resource: 'sb://{path}'.",
    )


def token_expired(link: str, right: str, path: str) -> RefusedError:
    """The token of a link expired, and the client presented no other."""
    return RefusedError(
        DETACH_FORCED,
        f"The link '{link}' is force detached. Code: RenewToken. Details: "
        f"{right_missing(right, path).description}",
    )


def partition_invalid(partition_count: int) -> RefusedError:
    """The hub exists, the partition does not."""
    return RefusedError(
        ARGUMENT_OUT_OF_RANGE,
        "The specified partition is invalid for an EventHub partition sender or receiver. "
        f"It should be between 0 and {partition_count - 1}.",
    )


def position_beyond_end(kind: str, asked: int, last: int) -> RefusedError:
    """A receiver starts after the last event: its checkpoint belongs to another log."""
    return RefusedError(
        ARGUMENT_ERROR,
        f"The supplied {kind} '{asked}' is invalid. The last {kind} in the system is '{last}'",
    )


def offset_before_replication(offset: int) -> RefusedError:
    """A receiver begins at an offset from before geo-replication was switched on.

    The condition is the service's; its description is not known.
    """
    return RefusedError(
        INVALID_OFFSET,
        f"The supplied offset '{offset}' is not one of an event hub with geo-replication.",
    )


def epoch_taken_over(
    name: str, epoch: int | None, newcomer: str, newcomer_epoch: int | None
) -> RefusedError:
    """A receiver with the same or a higher epoch connected, so this one is disconnected."""
    old, new = (-1 if each is None else each for each in (epoch, newcomer_epoch))
    return RefusedError(
        LINK_STOLEN,
        f"New receiver '{newcomer}' with higher epoch of '{new}' is created hence "
        f"current receiver '{name}' with epoch '{old}' is getting disconnected. "
        "If you are recreating the receiver, make sure a higher epoch is used.",
    )


def epoch_too_low(name: str, epoch: int, holder: str, holder_epoch: int) -> RefusedError:
    """A receiver with a higher epoch is connected already."""
    return RefusedError(
        LINK_STOLEN,
        f"Receiver '{holder}' with a higher epoch '{holder_epoch}' already exists. "
        f"Receiver '{name}' with epoch {epoch} cannot be created. "
        "Make sure you are creating receiver with increasing epoch value to ensure "
        "connectivity, or ensure all old epoch receivers are closed or disconnected.",
    )


def epoch_missing(holder_epoch: int) -> RefusedError:
    """A receiver without an epoch, while one with an epoch is connected."""
    return RefusedError(
        LINK_STOLEN,
        f"At least one receiver for the endpoint is created with epoch of '{holder_epoch}', and "
        "so non-epoch receiver is not allowed. Either reconnect with a higher epoch, or make "
        "sure all epoch receivers are closed or disconnected.",
    )


def too_many_receivers(limit: int, names: Sequence[str]) -> RefusedError:
    """The sixth receiver without an epoch, of one partition in one consumer group."""
    return RefusedError(
        RESOURCE_LIMIT_EXCEEDED,
        "Exceeded the maximum number of allowed receivers per partition in a consumer group "
        f"which is {limit}. List of connected receivers - {', '.join(names)}.",
    )


def message_too_large(delivery_id: int, size: int, limit: int) -> RefusedError:
    """A message of more bytes than the link allows."""
    return RefusedError(
        MESSAGE_SIZE_EXCEEDED,
        f"The received message (delivery-id:{delivery_id}, size:{size} bytes) exceeds the limit "
        f"({limit} bytes) currently allowed on the link.",
    )


def server_busy() -> RefusedError:
    """Throttled: the client should wait and try again."""
    return RefusedError(
        SERVER_BUSY,
        "The request was terminated because the entity is being throttled. Error code : 50002. "
        "Please wait 4 seconds and try again. To know more visit "
        "https://aka.ms/sbResourceMgrExceptions.",
    )
