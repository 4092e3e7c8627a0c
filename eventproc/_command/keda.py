"""KEDA's external scaler: serves the newest vote over gRPC.

The messages are those of KEDA's ``externalscaler.proto``, described here field by field, because a
file that protoc generates works with few versions of protobuf. ``StreamMetricSpec`` is left out: it
is optional, and a target changes only when the scaled object is changed.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from eventproc._base.extras import needing
from eventproc._base.http.address import ListenAddress
from eventproc._group.autoscaler import Autoscaler
from eventproc.errors import ConfigurationError

with needing("keda"):
    import grpc
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessages

PACKAGE: Final = "externalscaler"
SERVICE: Final = f"{PACKAGE}.ExternalScaler"

METRIC: Final = "eventproc-replicas"
PROCESSES_PER_POD: Final = "processesPerPod"
"""Key in the trigger's metadata: how many processes a pod has, as with ``--workers``; by default 1.
It is the target of the metric, so KEDA runs as many pods as the vote divided by it, rounded up."""

COUNT_MAX: Final = 10_000
"""Most processes of a pod: a larger number is refused as a mistake."""

GRACE_S: Final = 1.0
"""How long a call may continue when the server stops."""

_LIMITS: Final = (
    ("grpc.max_allowed_incoming_connections", 100),
    ("grpc.server_handshake_timeout_ms", 10_000),  # until the client has begun to speak HTTP/2
    ("grpc.max_connection_idle_ms", 300_000),  # KEDA asks every 30 s
    ("grpc.keepalive_time_ms", 60_000),  # pings show that a client has gone
    ("grpc.max_concurrent_streams", 100),
)
"""What keeps idle connections from taking the descriptors of the process; in gRPC's own words."""

_Message: TypeAlias = Any
"""A message of a class that is made at run time, so it has no static type."""

_STRING: Final = FieldDescriptorProto.TYPE_STRING
_BOOL: Final = FieldDescriptorProto.TYPE_BOOL
_INT64: Final = FieldDescriptorProto.TYPE_INT64
_DOUBLE: Final = FieldDescriptorProto.TYPE_DOUBLE

_Field: TypeAlias = tuple[str, Any]
"""A name and a type; ``X`` is a message, ``[X]`` repeated messages."""

_FIELDS: Final[Mapping[str, Sequence[_Field]]] = {
    "ScaledObjectRef": [
        ("name", _STRING),
        ("namespace", _STRING),
        ("scalerMetadata", ["ScaledObjectRef.ScalerMetadataEntry"]),
    ],
    "IsActiveResponse": [("result", _BOOL)],
    "GetMetricSpecResponse": [("metricSpecs", ["MetricSpec"])],
    "MetricSpec": [("metricName", _STRING), ("targetSize", _INT64), ("targetSizeFloat", _DOUBLE)],
    "GetMetricsRequest": [("scaledObjectRef", "ScaledObjectRef"), ("metricName", _STRING)],
    "GetMetricsResponse": [("metricValues", ["MetricValue"])],
    "MetricValue": [
        ("metricName", _STRING),
        ("metricValue", _INT64),
        ("metricValueFloat", _DOUBLE),
    ],
}
"""The fields of each message, in the order of their numbers, from 1."""


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="externalscaler.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        _add_fields(file.message_type.add(name=name), fields)
    entry = file.message_type[0].nested_type.add(name="ScalerMetadataEntry")
    _add_fields(entry, [("key", _STRING), ("value", _STRING)])
    entry.options.map_entry = True
    return file


def _add_fields(message: _Message, fields: Sequence[_Field]) -> None:
    for number, (name, kind) in enumerate(fields, start=1):
        repeated = isinstance(kind, list)
        field = message.field.add(name=name, number=number)
        field.label = (
            FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        )
        of = kind[0] if repeated else kind
        if isinstance(of, str):
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{PACKAGE}.{of}"
        else:
            field.type = of


# A pool of its own: the process may also have the messages that protoc generated.
_MESSAGES: Final = GetMessages([_file()], pool=DescriptorPool())


def message_class(name: str) -> _Message:
    """Return the class of a message of ``externalscaler.proto``."""
    return _MESSAGES[f"{PACKAGE}.{name}"]


def processes_per_pod(metadata: Mapping[str, str]) -> int:
    """Return how many processes a pod of the scaled object has.

    Raises:
        ConfigurationError: it is no number from 1 to ``COUNT_MAX``.
    """
    text = metadata.get(PROCESSES_PER_POD, "1")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= COUNT_MAX):
        raise ConfigurationError(
            f"{PROCESSES_PER_POD} is {text!r} in the metadata of the trigger: give the number of "
            'processes in a pod, the N of --workers N, such as "4"'
        )
    return int(text)


@asynccontextmanager
async def serve_keda(address: ListenAddress, scaler: Autoscaler) -> AsyncIterator[ListenAddress]:
    """Serve while the block runs; yield the address with its port.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    server = grpc.aio.server(options=_LIMITS)
    server.add_generic_rpc_handlers((_handlers(scaler),))
    try:
        bound = server.add_insecure_port(str(address))
    except RuntimeError as error:
        raise ConfigurationError(
            f"--grpc {address} cannot be listened on: the address is in use or not of this machine"
        ) from error
    await server.start()
    try:
        yield address if address.path else ListenAddress(address.host, bound)
    finally:
        await server.stop(GRACE_S)


def _handlers(scaler: Autoscaler) -> Any:  # noqa: ANN401 - grpc has no types
    service = _Service(scaler)
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "IsActive": _handler(service.is_active, "ScaledObjectRef"),
            "StreamIsActive": _handler(
                service.stream_is_active,
                "ScaledObjectRef",
                grpc.unary_stream_rpc_method_handler,
            ),
            "GetMetricSpec": _handler(service.get_metric_spec, "ScaledObjectRef"),
            "GetMetrics": _handler(service.get_metrics, "GetMetricsRequest"),
        },
    )


def _handler(
    method: Callable[..., object],
    request: str,
    kind: Callable[..., object] = grpc.unary_unary_rpc_method_handler,
) -> object:
    return kind(
        method,
        request_deserializer=message_class(request).FromString,
        response_serializer=lambda answer: answer.SerializeToString(),
    )


class _Service:
    """The methods of the service, for one group; all scaled objects get the same answers."""

    def __init__(self, scaler: Autoscaler) -> None:
        self._scaler = scaler

    async def is_active(self, _: _Message, call: _Message) -> _Message:
        return _is_active(await self._replicas(call) > 0)

    async def stream_is_active(self, _: _Message, __: _Message) -> AsyncIterator[_Message]:
        async for is_active in self._scaler.activity():
            yield _is_active(is_active)

    async def get_metric_spec(self, scaled: _Message, call: _Message) -> _Message:
        try:
            target = processes_per_pod(scaled.scalerMetadata)
        except ConfigurationError as error:
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise  # Not reached: abort raises.
        spec = message_class("MetricSpec")(
            metricName=METRIC, targetSize=target, targetSizeFloat=target
        )
        return message_class("GetMetricSpecResponse")(metricSpecs=[spec])

    async def get_metrics(self, _: _Message, call: _Message) -> _Message:
        replicas = await self._replicas(call)
        value = message_class("MetricValue")(
            metricName=METRIC, metricValue=replicas, metricValueFloat=replicas
        )
        return message_class("GetMetricsResponse")(metricValues=[value])

    async def _replicas(self, call: _Message) -> int:
        """Return the vote; without one fail the call, so that KEDA does not scale to zero."""
        vote = self._scaler.vote
        if vote.decision.replicas is None:
            await call.abort(grpc.StatusCode.UNAVAILABLE, vote.error or vote.decision.reason.value)
        assert vote.decision.replicas is not None, "abort raises"
        return vote.decision.replicas


def _is_active(is_active: bool) -> _Message:
    return message_class("IsActiveResponse")(result=is_active)
