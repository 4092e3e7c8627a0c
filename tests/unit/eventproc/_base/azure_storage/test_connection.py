"""The HTTP transport of the blob and table stores."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from azure.core.pipeline.transport import AioHttpTransport

from checkpointstores.blob import BlobCheckpointStore
from eventproc._base.azure_storage.connection import new_transport


async def test_a_release_without_the_method_that_is_overridden_costs_a_warning(monkeypatch, caplog):
    """It sends large bodies at once; the rest is the same."""
    async with new_transport(timedelta(seconds=1), None):
        pass
    usual = list(caplog.records)
    monkeypatch.delattr(AioHttpTransport, "_get_request_data")
    async with new_transport(timedelta(seconds=1), None):
        pass

    assert usual == []
    assert [record.event for record in caplog.records] == ["body_pieces_unavailable"]


def test_the_time_of_an_answer_is_utc_also_if_a_proxy_adds_a_date():
    """Two headers of one name are one text for the client, in which it finds no zone."""
    date = "Fri, 27 Nov 2026 17:06:20 GMT"
    account = "AccountName=shop;AccountKey=aHVzaA=="
    store = BlobCheckpointStore.from_connection_string(account, "any")

    for text in (date, f"{date}, {date}"):
        answer: Any = SimpleNamespace(headers={"Date": text})
        assert store._connection.time_of(answer) == datetime(2026, 11, 27, 17, 6, 20, tzinfo=UTC)
