"""Decoders of bodies: a handler with one gets values of a type instead of bytes."""

from eventproc._base import public_names as _public_names
from eventproc.decoders._cloud_events import CloudEvent, CloudEventDecoder
from eventproc.decoders._decoders import Decoder, FunctionDecoder, JsonDecoder, MsgpackDecoder

__all__ = [
    "CloudEvent",
    "CloudEventDecoder",
    "Decoder",
    "FunctionDecoder",
    "JsonDecoder",
    "MsgpackDecoder",
]

_public_names.set_module(__name__, globals())
