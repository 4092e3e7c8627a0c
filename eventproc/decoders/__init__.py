"""Decoders of bodies: a handler with one gets values of a type instead of bytes."""

from eventproc._base.public import set_public_module
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

set_public_module(__name__, globals())
