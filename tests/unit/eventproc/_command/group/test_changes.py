"""Resetting checkpoints and reading lag: what would change, what is done, and the output."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from rich.console import Console

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._command.arguments.options import ChangeMode
from eventproc._command.group.changes import Change, _events_between, carry_out, plan_reset
from eventproc._command.group.connection import Connection
from eventproc._command.group.records import (
    lags_json,
    lags_table,
    read_lags,
    read_records,
    records_table,
)
from eventproc._command.group.shown_changes import changes_json, changes_table, warnings_for
from eventproc._command.group.targets import parse_target
from eventproc._command.terminal.exits import FAILED
from eventproc._command.verbs.checkpoints import _change
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_OFFSET, BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.admin import CheckpointMoved
from eventproc.errors import ConfigurationError
from eventproc.models import (
    ALONE,
    IN_PART,
    NOT_BEGUN,
    CheckpointUpdate,
    EventPosition,
    OwnershipClaim,
    PartitionProperties,
    ReceivedEvent,
    SequenceRange,
)
from eventproc.ports import PartitionReceiver
from eventproc.sources.memory import MemoryEventSource
from eventproc.sources.memory._source import MemoryReceiver
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds

T = TypeVar("T")
LIFE = timedelta(seconds=60)


def with_group(
    scenario: Callable[[Setup, Connection], Awaitable[T]],
    source: type[MemoryEventSource] = MemoryEventSource,
) -> T:
    """Run a scenario on a hub of two partitions: 20 events a second apart, and an empty one."""

    async def run() -> T:
        setup = Setup(2)
        for _ in range(20):
            setup.publish(1)
            await seconds(1)
        store = MemoryCheckpointStore(setup.account)
        async with store, source(setup.hub) as opened:
            return await scenario(setup, Connection(group=setup.group, store=store, source=opened))

    return run_virtual(run())


async def checkpoint(connection: Connection, number: int, **changes: object) -> None:
    """Store a checkpoint of partition 0."""
    update = CheckpointUpdate(
        partition_id="0",
        offset=str(4096 + 57 * number),
        sequence_number=number,
        replaces=None,
        writer="a/1/1",
        **changes,  # type: ignore[arg-type] # what a test wants
    )
    await connection.store.update_checkpoint(connection.group, update)


def as_read(output: dict[str, object]) -> Any:
    """Return what a program reads from the JSON output."""
    return json.loads(json.dumps(output))


async def own(connection: Connection, owner_id: str = "a") -> None:
    """Make a processor the owner of partition 0."""
    claim = OwnershipClaim(partition_id="0", owner_id=owner_id, expected_etag=None)
    await connection.store.claim_ownership(connection.group, [claim])


async def plan(
    connection: Connection, to: str, *ids: str, keeps_state: bool = False, lookup_group: str = ""
) -> list[Change]:
    """Plan a reset."""
    return await plan_reset(
        connection,
        ids or ["0"],
        parse_target("--to", to),
        keeps_state=keeps_state,
        lookup_group=lookup_group,
        expiration=LIFE,
    )


@pytest.mark.parametrize(
    ("to", "first", "events"),
    [
        ("earliest", 0, -8),
        ("latest", 20, 12),
        ("5", 5, -3),
        ("12", 12, 4),
        ("-3", 5, -3),
        ("+4", 12, 4),
        ("2026-01-01T00:00:04.5Z", 5, -3),
        ("2026-01-01T00:00:30Z", 20, 12),
    ],
)
def test_after_a_reset_the_group_continues_at_the_requested_event(to, first, events):
    """In every form in which an event can be named."""

    async def scenario(setup, connection):
        await checkpoint(connection, 7)
        (change,) = changes = await plan(connection, to)
        await carry_out(connection, changes, expiration=LIFE)
        async with setup.processor():
            await seconds(5)
        return change.events, setup.numbers()

    assert with_group(scenario) == (events, list(range(first, 20)))


class HubWithGap(MemoryEventSource):
    """A hub without the events 5 to 11 of partition 0."""

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        """Open a receiver that leaves them out."""
        link = self.hub._attach(consumer_group, partition_id, position)
        return ReceiverWithGap(self.hub, link)


class ReceiverWithGap(MemoryReceiver):
    """Leaves out the events that the hub lacks."""

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Return the other events."""
        events = await super().receive(events_max=1, wait_max=wait_max)
        found = [event for event in events if event.sequence_number not in range(5, 12)]
        if events and not found:
            return await self.receive(events_max=events_max, wait_max=wait_max)
        return found


@pytest.mark.parametrize(("to", "number"), [("12", 4), ("8", 4), ("5", 4), ("13", 12), ("14", 13)])
def test_a_checkpoint_at_a_gap_names_the_last_event_before_it(to, number):
    """A reader could not begin after an event that does not exist."""

    async def scenario(_, connection):
        (change,) = await plan(connection, to)
        return change.move.sequence_number, change.move.offset

    assert with_group(scenario, HubWithGap) == (number, str(4096 + 57 * number))


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [(1219, 100, -720), (1219, 1000, -219), (100, 1000, 501), (600, 700, 100), (100, 200, 0)],
)
def test_only_events_that_the_hub_still_has_are_counted(before, after, count):
    """It has 500 to 1235."""
    end = PartitionProperties(
        partition_id="0",
        beginning_sequence_number=500,
        last_enqueued_sequence_number=1235,
        last_enqueued_offset="1235",
        last_enqueued_time=datetime(2026, 1, 31, tzinfo=UTC),
        is_empty=False,
    )

    assert _events_between(before, after, end) == count


def test_planned_changes_are_shown_and_nothing_is_written():
    """Positions, the number of events between them, and whether state is dropped."""

    async def scenario(setup, connection):
        await checkpoint(connection, 7, state=b"1234")
        await own(connection)
        before = setup.checkpoint()
        changes = await plan(connection, "earliest", "0", "1")
        console = Console(width=100)
        with console.capture() as capture:
            console.print(changes_table(connection.group, changes))
        return setup.checkpoint() == before, capture.get(), changes_json(setup.group, changes, {})

    is_untouched, table, output = with_group(scenario)
    lines = [line.split() for line in table.splitlines()]

    assert is_untouched
    assert ["0", "7", "the", "start", "8", "again", "dropped", "(4", "bytes)", "a"] in lines
    assert ["1", "none", "the", "start", "new"] in lines
    assert ["all", "8", "again,", "1", "new"] in lines
    assert output["changes"][0] == {
        "partition_id": "0",
        "from_sequence_number": 7,
        "to_sequence_number": -1,
        "to_offset": "-1",
        "skipped_count": 0,
        "repeated_count": 8,
        "lag_here": 12,
        "lag_there": None,
        "state": "dropped (4 bytes)",
        "owner_id": "a",
        "is_needed": True,
        "is_moved": False,
        "notified_owner_id": None,
        "error": None,
    }


def test_a_checkpoint_at_the_requested_position_is_not_written():
    """Its owner would restart for nothing. An isolation or state to drop makes it necessary."""

    async def scenario(setup, connection):
        await checkpoint(connection, 7)
        again = await plan(connection, "8")
        done = await carry_out(connection, again, expiration=LIFE)
        writer = setup.checkpoint().writer
        setup.account.records(setup.group).checkpoint_by_partition.clear()
        await checkpoint(connection, 7, state=b"s", isolation=ALONE)
        kept = await plan(connection, "8", keeps_state=True)
        needed = [kept[0].is_needed, (await plan(connection, "8"))[0].is_needed]
        await carry_out(connection, kept, expiration=LIFE)
        return done, writer, needed, setup.checkpoint()

    done, writer, needed, stored = with_group(scenario)

    assert (done, writer) == ({}, "a/1/1")
    assert needed == [True, True]
    assert (stored.isolation, stored.state) == (NOT_BEGUN, b"s")


def test_a_foreign_owner_causes_a_warning():
    """It has no member record, and writes checkpoints unconditionally."""

    async def scenario(setup, connection):
        await own(connection, "azure")
        foreign = warnings_for(await plan(connection, "5"))
        setup.account.records(setup.group).ownership_by_partition.clear()
        async with setup.processor():
            await seconds(5)
            ours = warnings_for(await plan(connection, "5"))
        return [text.plain.split()[0] for text in foreign], ours

    assert with_group(scenario) == (["azure"], [])


def test_events_may_be_looked_up_through_another_consumer_group():
    """So that the owner's link is not stolen."""

    async def scenario(setup, connection):
        async with setup.processor() as processor:
            await seconds(5)
            await plan(connection, "5", lookup_group="unused")
            await seconds(5)
            unaffected = processor.statistics().pumps[0].counters.receiver_error_count
            await plan(connection, "5")
            await seconds(5)
            return unaffected, processor.statistics().pumps[0].counters.receiver_error_count

    assert with_group(scenario) == (0, 1)


def test_if_one_change_fails_the_others_are_still_made():
    """The result of the failed one is its error."""

    async def scenario(setup, connection):
        changes = await plan(connection, "earliest", "0", "1")
        records = setup.account.records(setup.group)

        class Half(MemoryCheckpointStore):
            async def update_checkpoint(self, group, update):
                if update.partition_id == "0":
                    raise ConfigurationError("no")
                return await super().update_checkpoint(group, update)

        half = Half(setup.account)
        await half.open()
        connection = Connection(group=setup.group, store=half, source=connection.source)
        results = await carry_out(connection, changes, expiration=LIFE)
        output = as_read(changes_json(setup.group, changes, results))["changes"]
        return [c["error"] for c in output], sorted(records.checkpoint_by_partition)

    assert with_group(scenario) == (["no", None], ["1"])


def test_lag_is_a_number_of_events_and_the_age_of_the_oldest():
    """The age is read only if that does not steal an owner's link."""

    async def scenario(setup, connection):
        await checkpoint(connection, 7)

        async def read(lookup_group: str = "") -> list[tuple[int, float | None]]:
            lags = await read_lags(
                connection, [], lookup_group=lookup_group, expiration=LIFE, now=setup.now()
            )
            output = as_read(lags_json(setup.group, lags))
            console = Console(width=100)
            with console.capture() as capture:
                console.print(lags_table(setup.group, lags))
            shown.append(capture.get())
            parts = [*output["partitions"], output]
            return [(part["lag"], part["oldest_age_s"]) for part in parts]

        shown: list[str] = []
        free = await read()
        await own(connection)
        held = await read()
        through = await read("unused")
        setup.hub.trim("0", before=15)
        trimmed = await read("unused")
        return free, held, through, trimmed, shown

    free, held, through, trimmed, shown = with_group(scenario)

    assert free == [(12, 12.0), (0, 0.0), (12, 12.0)]
    assert held == [(12, None), (0, 0.0), (12, None)]
    assert through == free
    assert trimmed == [(5, 5.0), (0, 0.0), (5, 5.0)]
    assert shown[0].splitlines()[-3].split() == ["0", "7", "19", "12", "12", "s"]
    assert shown[1].splitlines()[-1].split() == ["all", "12", "?"]


@pytest.mark.parametrize("has_begun", [False, True])
def test_lag_of_a_group_that_handled_nothing_counts_what_the_hub_retains(has_begun):
    """It has no checkpoint, or the one before the first event that a first owner stores."""

    async def scenario(setup, connection):
        if has_begun:
            update = CheckpointUpdate(
                partition_id="0",
                offset=BEFORE_FIRST_OFFSET,
                sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER,
                replaces=None,
                writer="a/1/1",
            )
            await connection.store.update_checkpoint(connection.group, update)
        setup.hub.trim("0", before=15)
        lags = await read_lags(connection, [], lookup_group="", expiration=LIFE, now=setup.now())
        return [(lag.lag, lag.oldest_age_s) for lag in lags]

    assert with_group(scenario) == [(5, 5.0), (0, 0.0)]


def test_the_list_of_checkpoints_shows_all_their_parts():
    """State, completed ranges, isolation and writer, too."""

    async def scenario(_, connection):
        done = (SequenceRange(9, 10), SequenceRange(15, 15))
        await checkpoint(connection, 7, state=b"1234", completed=done, isolation=IN_PART)
        console = Console(width=140)
        with console.capture() as capture:
            console.print(records_table(connection.group, await read_records(connection)))
        await carry_out(connection, await plan(connection, "5"), expiration=LIFE)
        with console.capture() as moved:
            console.print(records_table(connection.group, await read_records(connection)))
        return capture.get().splitlines()[-1], moved.get().splitlines()[-1]

    row, moved = with_group(scenario)
    day, time = "2026-01-01", "00:00:20"

    assert row.split() == f"0 7 4495 {day} {time} 4 bytes 3 in a part a".split()
    assert moved.split() == f"0 4 4324 {day} {time} an operator".split()


def test_a_moved_checkpoint_names_the_notified_owner():
    """The result has the owner that begins again from the new position."""

    async def scenario(_, connection):
        await own(connection)
        changes = await plan(connection, "5")
        (result,) = (await carry_out(connection, changes, expiration=LIFE)).values()
        return result.notified_owner_id if isinstance(result, CheckpointMoved) else None

    assert with_group(scenario) == "a"


def test_an_owner_whose_checkpoint_could_not_be_moved_is_not_said_to_begin_again(capsys):
    """Somebody else wrote the checkpoint between the plan and the move."""

    async def scenario(_, connection):
        await own(connection)
        changes = await plan(connection, "latest")
        await checkpoint(connection, 3)
        return await _change(connection, changes, LIFE, ChangeMode(yes=True), replaces=False)

    code = with_group(scenario)
    shown = capsys.readouterr()

    assert code == FAILED
    assert shown.out.splitlines()[-1] == "0 of 1 moved."
    assert "give --overwrite to replace it" in shown.err
