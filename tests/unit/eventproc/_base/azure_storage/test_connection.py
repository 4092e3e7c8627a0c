"""The HTTP transport of the blob and table stores."""

from datetime import timedelta

from azure.core.pipeline.transport import AioHttpTransport

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
