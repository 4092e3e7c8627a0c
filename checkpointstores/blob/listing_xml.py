"""Parse one page of a container's listing from XML.

The parser of Azure's client takes ten times as long, and a group is listed in every cycle.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from checkpointstores.blob.container import BlobItem

FOLDER_METADATA = "hdi_isfolder"
"""Metadata key of the stub of a directory, on accounts with a hierarchical namespace."""

PIECE_BYTES: Final = 64 * 1024
"""Bytes to parse at a time: the parser holds the GIL, and a page may have megabytes."""


def parse_page(xml: bytes) -> tuple[Sequence[BlobItem], str]:
    """Return the blobs of a page, and the marker of the next page, empty on the last.

    Raises:
        ValueError: the XML is not a listing.
    """
    # A processor renews many records within a few seconds, so most times on a page are equal.
    time_of = lru_cache(maxsize=None)(parsedate_to_datetime)
    items: list[BlobItem] = []
    element = None
    try:
        for element in _elements(xml):
            # A metadata entry may have the same tag, but it has no child elements.
            if element.tag == "Blob" and len(element):
                items.append(_as_item(element, time_of))
                element.clear()
    except ET.ParseError as error:
        raise ValueError(f"not a listing: {error}") from error
    assert element is not None, "without an element, the parser raises ParseError"
    blobs = element.find("Blobs")
    if blobs is None:
        raise ValueError(f"not a listing, but <{element.tag}>")
    if len(blobs.findall("Blob")) != len(items):
        raise ValueError("not a listing: it has blobs without a name")
    return items, element.findtext("NextMarker") or ""


def _elements(xml: bytes) -> Iterator[ET.Element]:
    """Yield each element when it is complete, the outermost last.

    The caller clears an element after reading it. Otherwise a listing of 5,000 blobs would become a
    tree of 100,000 objects, which Python's garbage collector traverses repeatedly.
    """
    parser: Any = ET.XMLPullParser(["end"])  # its type stub does not know the events' types
    for begin in range(0, len(xml), PIECE_BYTES):
        parser.feed(xml[begin : begin + PIECE_BYTES])
        yield from (element for _, element in parser.read_events())
    parser.close()  # the parser may have kept some elements back until the end
    yield from (element for _, element in parser.read_events())


def _as_item(blob: ET.Element, time_of: Callable[[str], datetime]) -> BlobItem:
    name, properties, entries = blob.find("Name"), blob.find("Properties"), blob.find("Metadata")
    if name is None or not name.text or properties is None:
        raise ValueError("not a listing: it has blobs without a name or without properties")
    # Names with characters that XML cannot carry are percent-encoded.
    text = unquote(name.text) if name.get("Encoded") == "true" else name.text
    metadata = {entry.tag: entry.text for entry in entries} if entries is not None else {}
    return BlobItem(
        name=text,
        etag=(properties.findtext("Etag") or "").strip('"'),
        last_modified=time_of(properties.findtext("Last-Modified") or ""),
        metadata=metadata,
        is_folder=properties.findtext("ResourceType") == "directory" or FOLDER_METADATA in metadata,
    )
