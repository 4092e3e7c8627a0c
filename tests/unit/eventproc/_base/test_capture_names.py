"""Names of Capture files: formats, prefixes of listings, and times."""

from datetime import UTC, date, datetime

import pytest

from eventproc._base.capture_names import (
    DEFAULT_FORMAT,
    FileNames,
    check_format,
    namespace_in_names,
)
from eventproc.errors import ConfigurationError

DAY = date(2026, 11, 6)


def names(text: str = DEFAULT_FORMAT) -> FileNames:
    return FileNames(check_format(text), "acme", "orders")


def test_a_name_has_the_partition_and_the_time_of_its_window():
    name = "acme/orders/12/2026/11/26/21/03/17.avro"
    partition_id, file = names().file(name, 508) or ("", None)

    assert partition_id == "12"
    assert file is not None
    assert (file.at, file.byte_count) == (datetime(2026, 11, 26, 21, 3, 17, tzinfo=UTC), 508)
    assert names().name("12", file.at) == name


@pytest.mark.parametrize(
    "name",
    [
        "acme/orders/12/2026/11/26",
        "acme/orders/12/2026/11/26/21/03/17",
        "acme/orders/12/2026/13/26/21/03/17.avro",
        "acme/others/12/2026/11/26/21/03/17.avro",
        "acme/orders/12/2026/11/26/21/03/17.avro.tmp",
    ],
    ids=["folder", "no suffix", "no such month", "another hub", "half written"],
)
def test_what_has_another_name_is_no_file(name):
    assert names().file(name, 508) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DEFAULT_FORMAT, ["acme/orders/3/2026/11/06/"]),
        (DEFAULT_FORMAT + ".avro", ["acme/orders/3/2026/11/06/"]),
        (
            "{Year}-{Month}-{Day}/{EventHub}.{PartitionId}/{Namespace}_{Hour}{Minute}{Second}",
            ["2026-11-06/orders.3/acme_"],
        ),
        ("a/b/{PartitionId}/{Day}.{Month}.{Year}/{Hour}/{Minute}/{Second}", ["a/b/3/06.11.2026/"]),
        (
            "{Namespace}/{Year}/{Month}/{Day}/{Hour}/{PartitionId}/{Minute}/{Second}",
            [f"acme/2026/11/06/{hour:02}/3/" for hour in range(24)],
        ),
    ],
)
def test_a_day_of_a_partition_has_prefixes_of_its_own(text, expected):
    assert list(names(text).prefixes("3", DAY)) == expected


def test_a_listing_begins_with_the_oldest_file_only_if_the_year_comes_first():
    assert names().is_in_order
    assert not names("{PartitionId}/{Day}/{Month}/{Year}/{Hour}/{Minute}/{Second}").is_in_order


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}", "lacks {Second}"),
        (DEFAULT_FORMAT + "{Second}", "{Second} is there twice"),
        (DEFAULT_FORMAT + "{Zone}", "no placeholder {Zone}"),
        ("{Minute}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Second}", "must come after"),
    ],
)
def test_a_format_that_cannot_work_is_refused_with_its_remedy(text, part):
    with pytest.raises(ConfigurationError, match=r"name_format") as raised:
        check_format(text)

    assert part in str(raised.value)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("acme.servicebus.windows.net", "acme"),
        ("localhost:5672", "localhost"),
        ("127.0.0.1:5672", "127.0.0.1"),
        ("memory", "memory"),
    ],
)
def test_the_namespace_in_names_is_the_short_one(host, expected):
    assert namespace_in_names(host) == expected
