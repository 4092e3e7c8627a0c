"""The messages of KEDA's ``externalscaler.proto``, byte by byte, by its published field numbers.

Independent of the code under test and of protobuf, so that a wrong number shows.
"""

import struct

VARINT, DOUBLE, TEXT = 0, 1, 2


def text(number, value):
    """Return a string, or a message as bytes, as a field."""
    content = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | TEXT, len(content)]) + content


def scaled_object_ref(**more):
    """name = 1, namespace = 2, scalerMetadata = 3, a map of strings."""
    metadata = {"scalerAddress": "eventproc-scale:6000", **more}
    entries = [text(3, text(1, key) + text(2, value)) for key, value in metadata.items()]
    return text(1, "orders") + text(2, "default") + b"".join(entries)


def get_metrics_request():
    """scaledObjectRef = 1, metricName = 2."""
    return text(1, scaled_object_ref()) + text(2, "eventproc-replicas")


def fields_of(message):
    """Return the values of each field, by its number."""
    found: dict[int, list] = {}
    place = 0
    while place < len(message):
        number, kind = message[place] >> 3, message[place] & 7
        place += 1
        if kind == DOUBLE:
            value = struct.unpack("<d", message[place : place + 8])[0]
            place += 8
        elif kind == TEXT:
            value = message[place + 1 : place + 1 + message[place]]
            place += 1 + message[place]
        else:
            assert kind == VARINT
            assert message[place] < 128, "small numbers only"
            value = message[place]
            place += 1
        found.setdefault(number, []).append(value)
    return found
