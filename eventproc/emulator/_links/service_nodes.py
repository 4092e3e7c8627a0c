"""The nodes that answer requests: ``$cbs`` takes tokens, ``$management`` describes hubs.

A response carries the request's message-id, unchanged and with its type, as its correlation-id:
the Azure SDKs use a uuid, a number or a string, and match the response by it.
"""

from collections.abc import Callable
from typing import Final

from eventproc.emulator._amqp.message import Message, write_message
from eventproc.emulator._amqp.refusal import RefusedError
from eventproc.emulator._amqp.values import Array, Int, Long, Timestamp, Value
from eventproc.emulator._hub.hub import Namespace
from eventproc.emulator._links.interfaces import Access, path_of
from eventproc.emulator._tokens import Right

_STRING_8: Final = 0xA1
_STATUS_BY_CONDITION: Final = {
    "amqp:not-found": 404,
    "amqp:unauthorized-access": 401,
    "com.microsoft:auth-failed": 401,
    "com.microsoft:argument-out-of-range": 400,
}

Respond = Callable[[Message], bytes]


def answer_cbs(request: Message, namespace: Namespace, access: Access, now_ms: int) -> bytes:
    """Take a token for a hub that exists; without rules, any.

    For an unknown hub the service answers 404 here, before the client attaches a link. Azure's
    Python client turns that into its ``AuthenticationError``.
    """
    audience = request.application_properties.get("name")
    hub_name = path_of(audience).partition("/")[0] if isinstance(audience, str) else ""
    try:
        if hub_name and not hub_name.startswith("$"):
            namespace.hub(hub_name, path_of(str(audience)))
            kind = str(request.application_properties.get("type"))
            access.present(hub_name, kind, str(request.value), now_ms / 1000)
    except RefusedError as refusal:
        return _refusal(request, refusal)
    return _response(request, 202, "Accepted")


def answer_management(request: Message, namespace: Namespace, access: Access, now_ms: int) -> bytes:
    """Return the properties of a hub or a partition."""
    asked = request.application_properties
    name = str(asked.get("name") or "")
    try:
        if asked.get("operation") != "READ":
            return _response(request, 501, f"The operation {asked.get('operation')!r} is unknown.")
        access.require(name, (Right.LISTEN, Right.SEND, Right.MANAGE), name, now_ms / 1000)
        match asked.get("type"):
            case "com.microsoft:eventhub":
                return _response(request, 200, "OK", _describe_hub(namespace, name))
            case "com.microsoft:partition":
                partition_id = str(asked.get("partition"))
                described = _describe_partition(namespace, name, partition_id, now_ms)
                return _response(request, 200, "OK", described)
            case other:
                return _response(request, 501, f"The type {other!r} is unknown.")
    except RefusedError as refusal:
        return _refusal(request, refusal)


def _describe_hub(namespace: Namespace, name: str) -> dict[Value, Value]:
    hub = namespace.hub(name)
    return {
        "name": hub.name,
        "type": "com.microsoft:eventhub",
        "created_at": Timestamp(hub.created_ms),
        "partition_count": Int(len(hub.partitions)),
        "georeplication_factor": Int(1),
        "partition_ids": Array(_STRING_8, [partition.partition_id for partition in hub.partitions]),
    }


def _describe_partition(
    namespace: Namespace, name: str, partition_id: str, now_ms: int
) -> dict[Value, Value]:
    hub = namespace.hub(name)
    log = hub.partition(partition_id).log.properties()
    return {
        "name": hub.name,
        "type": "com.microsoft:partition",
        "partition": partition_id,
        "begin_sequence_number": Long(log.first_sequence_number),
        "last_enqueued_sequence_number": Long(log.last_sequence_number),
        "last_enqueued_offset": str(log.last_offset),
        "last_enqueued_time_utc": Timestamp(log.last_enqueued_ms),
        "runtime_info_retrieval_time_utc": Timestamp(now_ms),
        "is_partition_empty": log.is_empty,
    }


def _response(request: Message, status: int, description: str, value: Value = None) -> bytes:
    return write_message(
        correlation_id=request.property_at(0),
        application_properties={
            "status-code": Int(status),
            "status-description": description,
        },
        value=value,
    )


def _refusal(request: Message, refusal: RefusedError) -> bytes:
    error = refusal.as_error()
    return write_message(
        correlation_id=request.property_at(0),
        application_properties={
            "status-code": Int(_STATUS_BY_CONDITION.get(refusal.condition, 500)),
            "status-description": error.description,
            "error-condition": error.condition,
        },
    )
