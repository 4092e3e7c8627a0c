"""The checks of ``eventproc verify``, on the emulator and on Azurite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from eventproc._base.logs import get_logger
from eventproc._command.arguments.address import StoreAddress
from eventproc._command.verify import blob_storage, event_hubs
from eventproc._command.verify.bench import ContainerBench, HubBench
from eventproc._command.verify.run import Result, chapters_of, checks_in, run_check
from eventproc.emulator import EmulatorConfiguration, EmulatorServer, hubs_of
from eventproc.sources.eventhubs._client import EventHubAddress
from eventproc.testing._clauses import clauses_of, described

LIMITS = {
    "a_wrong_key_is_refused": "the emulator checks no keys",
    "the_kafka_endpoint_has_the_same_events": "the emulator has no Kafka endpoint",
}
"""What the emulator cannot show, and why."""


@asynccontextmanager
async def hub_bench(kind: type[HubBench] = HubBench) -> AsyncIterator[HubBench]:
    """Yield a new hub of an emulator."""
    configuration = EmulatorConfiguration(hubs=hubs_of({"orders": 3}, ["audit"]), port=0)
    async with EmulatorServer(configuration) as server:
        hub = EventHubAddress.from_connection_string(
            server.connection_string, eventhub_name="orders", options=None
        )
        await hub.open()
        bench = kind(hub, idle=timedelta(seconds=0.3), kafka=None)
        async with bench.producer:
            yield bench


@asynccontextmanager
async def container_bench(storage, container, kind=None) -> AsyncIterator[ContainerBench]:
    """Yield an empty container of Azurite; *kind* makes its requests, if it is given."""
    address = StoreAddress(storage_connection_string=storage, store=f"blob:{container}")
    bench = ContainerBench(address)
    if kind is not None:
        broken = kind(bench.store._connection, is_created=False, log=get_logger("broken"))
        bench.store._blobs.vendor = broken
    async with bench.store:
        yield bench


@pytest.mark.parametrize("check", clauses_of(event_hubs), ids=lambda check: check.__name__)
async def test_the_emulator_does_what_the_source_assumes_of_event_hubs(check):
    """All that it cannot show is in ``LIMITS``."""
    async with hub_bench() as bench:
        finding = await run_check("Event Hubs", bench, check)

    limit = LIMITS.get(check.__name__)
    wanted = Result.NOT_CHECKED if limit else Result.AS_ASSUMED
    assert finding.details == (limit or "")
    assert finding.result is wanted


@pytest.mark.parametrize("check", clauses_of(blob_storage), ids=lambda check: check.__name__)
async def test_azurite_does_what_the_store_assumes_of_blob_storage(storage, container, check):
    """Without exceptions."""
    async with container_bench(storage, container) as bench:
        finding = await run_check("Blob Storage", bench, check)

    assert finding.details == ""
    assert finding.result is Result.AS_ASSUMED


def test_every_check_names_files_that_rely_on_it():
    """The report tells an engineer where to look if an assumption does not hold."""
    root = Path(event_hubs.__file__).parents[3]
    for _, _, check in checks_in(chapters_of(None, None, None)):
        files = described(check).relied_on_by.split(", ")

        assert all((root / file).is_file() for file in files), (check, files)
