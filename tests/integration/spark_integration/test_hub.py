"""The driver's requests to a hub, and the lookup of positions."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.emulator import EventHubsEmulator
from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.models import Checkpoint, CheckpointUpdate, ConsumerGroup, EventPosition
from spark_integration._options import parse_source_options
from spark_integration._source.hub import Hub, after, span_of
from tests.integration.spark_integration.conftest import COUNT, options_for, publish

HUB = "orders"


def found(emulator: EventHubsEmulator, **options: str) -> dict[str, int]:
    """Return the next sequence numbers at which a reader with these options begins."""
    given = options_for(emulator, **options)
    hub = Hub(given)
    return hub.find(given.starting, hub.partition_ends())


def test_the_first_number_of_an_empty_partition_is_its_next_one(own):
    """Whether it never had an event, or all of them were deleted."""
    own.expire_before(HUB, "1", COUNT)
    own.expire_before(HUB, "0", 400)
    spans = {
        p: span_of(properties) for p, properties in Hub(options_for(own)).partition_ends().items()
    }

    assert {p: (span.first, span.next) for p, span in spans.items()} == {
        "0": (400, COUNT),
        "1": (COUNT, COUNT),
        "2": (0, 0),
    }


def test_positions_by_word_and_by_sequence_number(own):
    """``earliest`` is the oldest event that exists; a number may be that of a deleted event."""
    own.expire_before(HUB, "0", 400)

    assert found(own, startingPosition="earliest") == {"0": 400, "1": 0, "2": 0}
    assert found(own, startingPosition="latest") == {"0": COUNT, "1": COUNT, "2": 0}
    assert found(own, startingPosition="earliest", startingPositions='{"0": 7}')["0"] == 7


def test_positions_by_offset(own):
    """A position is at the event of an offset or after it, up to the end of the partition."""
    stored = own.events(HUB, "0")

    def at(index: int, *, is_inclusive: bool) -> int:
        position = {"offset": str(stored[index].offset), "isInclusive": is_inclusive}
        positions = json.dumps({"0": position})
        return found(own, startingPositions=positions)["0"]

    assert at(70, is_inclusive=True) == 70
    assert at(70, is_inclusive=False) == 71
    assert at(-1, is_inclusive=True) == COUNT - 1
    assert at(-1, is_inclusive=False) == COUNT


def test_positions_by_enqueued_time(own):
    """Before all events, at one, between two, at the last, after it."""
    stored = own.events(HUB, "1")
    publish(own, "1", b"much later")
    last_ms = own.events(HUB, "1")[-1].enqueued_ms

    def at(milliseconds: int, *, is_inclusive: bool = True) -> int:
        instant = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
        position = {"enqueuedTime": instant, "isInclusive": is_inclusive}
        return found(own, startingPositions=json.dumps({"1": position}))["1"]

    assert at(stored[0].enqueued_ms - 60_000) == 0
    assert at(stored[-1].enqueued_ms, is_inclusive=False) == COUNT
    assert at(last_ms - 1) == COUNT
    assert at(last_ms) == COUNT
    assert at(last_ms, is_inclusive=False) == COUNT + 1
    assert at(last_ms + 1) == COUNT + 1


async def write_checkpoint(store: Path, hub: EventHubsEmulator, number: int, offset: str) -> None:
    """Write a checkpoint of partition 0."""
    group = ConsumerGroup(
        fully_qualified_namespace=f"127.0.0.1:{hub.port}", eventhub_name=HUB, name="$Default"
    )
    async with SqliteCheckpointStore(store) as opened:
        await opened.update_checkpoint(
            group,
            CheckpointUpdate(
                partition_id="0",
                offset=offset,
                sequence_number=number,
                replaces=None,
                writer="test",
            ),
        )


@pytest.mark.parametrize(("number", "begin"), [(70, 71), (COUNT - 1, COUNT), (-1, 0)])
async def test_positions_by_checkpoint(own, tmp_path, number, begin):
    """After the last handled event; -1 is the position before the first one."""
    store = tmp_path / "group.db"
    await write_checkpoint(store, own, number, "-1" if number < 0 else str(number))

    assert await _in_thread(own, store) == {"0": begin, "1": 0, "2": 0}


async def test_a_group_that_has_handled_nothing_begins_where_the_partition_does(own, tmp_path):
    """Retention may have removed any number of events: none of them is lost to the group."""
    store = tmp_path / "group.db"
    await write_checkpoint(store, own, -1, "-1")
    own.expire_before(HUB, "0", 40)

    assert (await _in_thread(own, store))["0"] == 40


async def test_a_group_without_any_checkpoint_is_reported(own, tmp_path, caplog):
    """A mistyped name would have everything handled again without a word."""
    assert await _in_thread(own, tmp_path / "new.db") == {"0": 0, "1": 0, "2": 0}

    (record,) = [r for r in caplog.records if r.levelname == "WARNING"]
    assert "checkpoints_not_found" in record.getMessage()


def test_a_checkpoint_with_only_an_offset_is_a_position():
    """Some releases of the Azure SDKs write these."""
    checkpoint = Checkpoint(
        partition_id="0",
        offset="880",
        sequence_number=None,
        etag="1",
        last_modified=datetime(2026, 1, 31, tzinfo=UTC),
    )

    assert after(checkpoint) == EventPosition.from_offset("880")


async def test_a_checkpoint_beyond_the_end_of_the_partition_is_refused(own, tmp_path):
    """The checkpoint belongs to a deleted hub of the same name."""
    store = tmp_path / "group.db"
    await write_checkpoint(store, own, COUNT + 5, "9999999")
    with pytest.raises(ConfigurationError, match="created again"):
        await _in_thread(own, store)


async def _in_thread(own: EventHubsEmulator, store: Path) -> dict[str, int]:
    """Look positions up as a driver does, which has no event loop."""
    options = {"startingPositions": "checkpoints", "checkpointStore": f"sqlite:{store}"}
    return await asyncio.to_thread(found, own, **options)


def test_an_unknown_hub_is_refused_by_the_driver(own, monkeypatch):
    """Before planning. Direct path only: public methods do not report it."""
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "direct")
    options = parse_source_options(
        {"connectionString": own.connection_string, "eventHubName": "nothing"}, is_stream=True
    )
    with pytest.raises(ConfigurationError, match="nothing"):
        Hub(options).check()
    with pytest.raises(SourceRejectedError, match="nothing"):
        Hub(options).partition_ends()
