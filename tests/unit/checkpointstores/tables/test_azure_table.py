"""What the client of Azure returns, as values of eventproc."""

from datetime import UTC, datetime

import pytest

from checkpointstores.tables._azure_table import TABLES, time_in
from eventproc._base.azure_storage.answers import no_answer
from eventproc._base.azure_storage.connection import account_in
from eventproc.errors import ConfigurationError, StoreUnavailableError


def test_an_etag_tells_when_the_entity_was_written():
    """As the service writes it, with tenths of microseconds."""
    etag = "W/\"datetime'2026-01-02T03%3A04%3A05.1234567Z'\""

    assert time_in(etag) == datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)


@pytest.mark.parametrize("etag", ["0x8DB", "W/\"datetime'yesterday'\"", ""])
def test_an_etag_of_another_form_tells_no_time(etag):
    """Then the store reads the entity."""
    assert time_in(etag) is None


def test_a_connection_string_that_is_none_is_refused_without_its_secret():
    """The client's own message quotes it."""
    with pytest.raises(ConfigurationError, match="AccountName") as refused:
        account_in("AccountKey=hush", TABLES)

    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        "AccountName=shop;AccountKey=aHVzaA==;BlobEndpoint=http://127.0.0.1:10000/shop;",
        "BlobEndpoint=https://shop.blob.core.windows.net/;SharedAccessSignature=sv=aHVzaA",
    ],
)
def test_a_connection_string_for_blobs_alone_is_refused(given):
    """The client would look for a host that the string does not name."""
    with pytest.raises(
        ConfigurationError, match=r"has BlobEndpoint=\.\.\. and no Table"
    ) as refused:
        account_in(given, TABLES)
    tables = "TableEndpoint=http://127.0.0.1:10002/shop"

    assert "aHVzaA" not in str(refused.value)
    assert account_in(f"{given.rstrip(';')};{tables}", TABLES)[0] == "http://127.0.0.1:10002/shop"


def test_a_connection_string_without_any_endpoint_has_that_of_azure():
    """As the portal shows it."""
    given = "AccountName=shop;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net"
    url, _ = account_in(given, TABLES)

    assert url == "https://shop.table.core.windows.net"


def test_a_connection_string_may_be_in_a_file(tmp_path):
    """As a mounted secret of Kubernetes."""
    (tmp_path / "account").write_text("AccountName=shop;AccountKey=aHVzaA==\n")

    assert account_in(f"file:{tmp_path}/account", TABLES)[0].startswith("https://shop.table.")


def test_no_answer_names_the_table_and_the_reason():
    """So that whoever reads it knows which store does not answer."""
    error = no_answer(ConnectionResetError(104, "Connection reset by peer"), "table host/leases")

    assert isinstance(error, StoreUnavailableError)
    assert "table host/leases" in str(error)
    assert "reset" in str(error).lower()
