"""Decoders of bodies: a handler with one gets values of a type instead of bytes."""

from eventproc.decoders.cloud_events import CloudEvent, CloudEventDecoder
from eventproc.decoders.decoder import Decoder, FunctionDecoder
from eventproc.decoders.structs import JsonDecoder, MsgpackDecoder

__all__ = [
    "CloudEvent",
    "CloudEventDecoder",
    "Decoder",
    "FunctionDecoder",
    "JsonDecoder",
    "MsgpackDecoder",
]
