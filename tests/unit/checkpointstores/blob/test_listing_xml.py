"""The fast parser of a listing page."""

import codecs
from datetime import UTC, datetime

import pytest

from checkpointstores.blob._azure_container import PIECE_BYTES, parse_page
from checkpointstores.blob._container import BlobItem

PAGE = b"""<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://x/" ContainerName="c"><Blobs>
<Blob><Name>a/ownership/0</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified><Etag>0x8D1</Etag>
</Properties><Metadata><ownerid>me</ownerid><empty /></Metadata></Blob>
<Blob><Name Encoded="true">a%%2Fb%%EF%%BF%%BE</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 20:00:02 GMT</Last-Modified><Etag>"0x8D2"</Etag>
  <ResourceType>directory</ResourceType></Properties></Blob>
<BlobPrefix><Name>a/</Name></BlobPrefix>
</Blobs><NextMarker>%s</NextMarker></EnumerationResults>"""


def test_a_page_has_blobs_and_the_next_marker():
    """Each part that a record needs; ETags without quotes, encoded names decoded."""
    items, marker = parse_page(PAGE % b"next")

    assert marker == "next"
    assert items == [
        BlobItem(
            name="a/ownership/0",
            etag="0x8D1",
            last_modified=datetime(2026, 11, 20, 20, 0, 1, tzinfo=UTC),
            metadata={"ownerid": "me", "empty": None},
        ),
        BlobItem(
            name="a/b\ufffe",
            etag="0x8D2",
            last_modified=datetime(2026, 11, 20, 20, 0, 2, tzinfo=UTC),
            is_folder=True,
        ),
    ]


def test_the_last_page_has_no_marker():
    """An empty marker, or none, ends the listing."""
    assert parse_page(PAGE % b"")[1] == ""
    assert parse_page((PAGE % b"").replace(b"<NextMarker></NextMarker>", b""))[1] == ""


def test_a_name_that_is_not_marked_as_encoded_is_taken_as_it_is():
    """It may have percent signs of its own."""
    (_, second), _ = parse_page((PAGE % b"").replace(b' Encoded="true"', b""))

    assert second.name == "a%2Fb%EF%BF%BE"


NO_PROPERTIES = (
    b"<EnumerationResults><Blobs><Blob><Name>a</Name></Blob></Blobs></EnumerationResults>"
)


NO_NAME = (
    b"<EnumerationResults><Blobs><Blob><Properties>"
    b"<Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified></Properties></Blob></Blobs>"
    b"</EnumerationResults>"
)
EMPTY_NAME = NO_NAME.replace(b"<Properties>", b"<Name/><Properties>")


NO_PARTS = b"<EnumerationResults><Blobs><Blob/></Blobs></EnumerationResults>"


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"<html>",
        b"<html><body/></html>",
        b"\x00",
        NO_PROPERTIES,
        NO_NAME,
        EMPTY_NAME,
        NO_PARTS,
        PAGE % b"" + b"<more/>",
        (PAGE % b"")[:-1],
    ],
)
def test_other_xml_raises(page):
    """The caller then uses the vendor's parser."""
    with pytest.raises(ValueError, match="not a listing"):
        parse_page(page)


def test_a_page_with_a_byte_order_mark_is_parsed_in_pieces():
    """As Azure sends it. A piece may end within a name, or within a character."""
    blob = (
        "<Blob><Name>é%d</Name><Properties>"
        "<Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified></Properties></Blob>"
    )
    blobs = "".join(blob % number for number in range(3 * PIECE_BYTES // len(blob)))
    page = f"<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>"

    items, _ = parse_page(codecs.BOM_UTF8 + page.encode())

    assert [item.name for item in items] == [f"é{number}" for number in range(len(items))]
    assert len(items) == blobs.count("<Blob>")


def test_metadata_may_have_the_names_of_the_listings_elements():
    """They stay metadata of their blob."""
    entries = b"<Blob>x</Blob><NextMarker>y</NextMarker><Name>z</Name><Etag>w</Etag>"

    ((first, second), marker) = parse_page(PAGE.replace(b"<empty />", entries) % b"next")

    assert first.metadata == {
        "ownerid": "me",
        "Blob": "x",
        "NextMarker": "y",
        "Name": "z",
        "Etag": "w",
    }
    assert (first.name, first.etag, second.name) == ("a/ownership/0", "0x8D1", "a/b\ufffe")
    assert marker == "next"
