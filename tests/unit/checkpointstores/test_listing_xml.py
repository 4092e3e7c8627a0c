"""The fast reading of a listing page."""

from datetime import UTC, datetime

import pytest

from checkpointstores._blob_container import BlobItem
from checkpointstores._listing_xml import parse_page

PAGE = """<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://x/" ContainerName="c"><Blobs>
<Blob><Name>a/ownership/0</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 20:00:01 GMT</Last-Modified><Etag>0x8D1</Etag>
</Properties><Metadata><ownerid>me</ownerid><empty /></Metadata></Blob>
<Blob><Name Encoded="true">a%%2Fb%%EF%%BF%%BE</Name><Properties>
  <Last-Modified>Fri, 20 Nov 2026 20:00:02 GMT</Last-Modified><Etag>"0x8D2"</Etag>
  <ResourceType>directory</ResourceType></Properties></Blob>
<BlobPrefix><Name>a/</Name></BlobPrefix>
</Blobs><NextMarker>%s</NextMarker></EnumerationResults>"""


def test_a_page_gives_blobs_and_the_next_marker():
    """Every part that a record needs, etags without quotes, odd names decoded."""
    items, marker = parse_page(PAGE % "next")

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
    """An empty marker ends the listing."""
    assert parse_page(PAGE % "")[1] == ""


@pytest.mark.parametrize("text", ["", "<html>", "<html><body/></html>", "\x00"])
def test_what_is_no_listing_is_refused(text):
    """The caller then asks the vendor's own parser."""
    with pytest.raises(ValueError, match="not a listing"):
        parse_page(text)
