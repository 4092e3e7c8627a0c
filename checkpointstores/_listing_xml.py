"""One page of a container's listing, from the XML that the service sends.

The vendor's own parser takes ten times as long, and a group is listed in every cycle.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from checkpointstores._blob_container import BlobItem

FOLDER_METADATA = "hdi_isfolder"
"""Marks the stub of a directory on accounts with a hierarchical namespace."""

PIECE_BYTES: Final = 64 * 1024
"""The parser lets no other thread run while it is at work: never for a whole page of megabytes."""


def parse_page(xml: bytes) -> tuple[Sequence[BlobItem], str]:
    """The blobs of a page, and the marker of the next one; empty on the last.

    Raises:
        ValueError: it is not a listing.
    """
    parser = ET.XMLParser()  # noqa: S314 - the service's own answer to a signed request
    try:
        for begin in range(0, len(xml), PIECE_BYTES):
            parser.feed(xml[begin : begin + PIECE_BYTES])
        root = parser.close()
    except ET.ParseError as error:
        raise ValueError(f"not a listing: {error}") from error
    blobs = root.find("Blobs")
    if blobs is None:
        raise ValueError(f"not a listing, but <{root.tag}>")
    # Who renews many records does so in few seconds: most of a page's times are the same ones.
    time_of = lru_cache(maxsize=None)(parsedate_to_datetime)
    items = [_as_item(blob, time_of) for blob in blobs.iterfind("Blob")]
    return items, root.findtext("NextMarker") or ""


def _as_item(blob: ET.Element, time_of: Callable[[str], datetime]) -> BlobItem:
    name, properties, entries = blob.find("Name"), blob.find("Properties"), blob.find("Metadata")
    text = (name.text if name is not None else None) or ""
    # Names with characters that XML cannot carry come percent-encoded.
    if name is not None and name.get("Encoded") == "true":
        text = unquote(text)
    if properties is None:
        raise ValueError(f"not a listing: {text!r} has no properties")
    metadata = {entry.tag: entry.text for entry in entries} if entries is not None else {}
    return BlobItem(
        name=text,
        etag=(properties.findtext("Etag") or "").strip('"'),
        last_modified=time_of(properties.findtext("Last-Modified") or ""),
        metadata=metadata,
        is_folder=properties.findtext("ResourceType") == "directory" or FOLDER_METADATA in metadata,
    )
