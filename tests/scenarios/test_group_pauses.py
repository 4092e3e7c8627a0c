"""An operator pauses a group or a partition: over moves, restarts and conflicts."""

from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError, StoreRejectedError
from eventproc._core.ownership.pauses import NO_PAUSES, PAUSES_RECORD
from eventproc.admin import pause_group, read_pauses, resume_group
from eventproc.errors import StoreCorruptError, StoreUnavailableError
from eventproc.models import (
    ConsumerGroup,
    GroupRecord,
    Member,
    OwnershipClaim,
    RecordResult,
    WriteOutcome,
)
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.scenarios.pausing import EXPIRATION, POLLED_S, pause, resume, store_of


async def test_a_paused_partition_receives_nothing_and_the_others_go_on():
    """It stays owned, for longer than an expiration, without a stall."""
    setup = Setup(partition_count=2)
    async with setup.processor(stall_timeout=timedelta(seconds=30)) as processor:
        await seconds(5)
        await pause(setup, "0")
        await seconds(POLLED_S)
        for p in ("0", "1"):
            setup.publish(2, p)
        await seconds(200)
        during = setup.numbers("0"), setup.numbers("1"), setup.owners()
        pumps = processor.statistics().pumps
        await resume(setup)
        await seconds(POLLED_S)
    (paused, other) = pumps

    assert during == ([], [0, 1], {"0": "a", "1": "a"})
    assert (paused.is_paused, paused.pause_reason, paused.is_stalled) == (True, "a test", False)
    assert (other.is_paused, other.pause_reason, other.paused_since) == (False, None, None)
    assert setup.numbers("0") == [0, 1]


async def test_a_pause_outlasts_a_move_and_a_restart_of_the_whole_group():
    """It is the group's, so the next owners and the next processes have it from their start."""
    setup = Setup(partition_count=4)
    for p in "0123":
        setup.publish(1, p)
    async with setup.processor(owner_id="a"):
        await seconds(30)
        await pause(setup, "1", "2")
        await seconds(POLLED_S)
        for p in "0123":
            setup.publish(1, p)
        async with setup.processor(owner_id="b"):
            await seconds(120)
            shared = set(setup.owners().values())
        await seconds(60)
    async with setup.processor(owner_id="c"), setup.processor(owner_id="d"):
        await seconds(120)
        during = [setup.numbers(p) for p in "0123"]
        await resume(setup, "1", "2")
        await seconds(POLLED_S)

    assert shared == {"a", "b"}
    assert during == [[0, 1], [0], [0], [0, 1]]
    assert [setup.numbers(p) for p in "0123"] == [[0, 1]] * 4


async def test_the_pauses_of_a_process_and_of_the_group_do_not_end_each_other():
    """A partition is received when neither is left."""
    setup = Setup()
    found = []
    async with setup.processor() as processor:
        await seconds(5)
        processor.pause("0")
        await pause(setup, "0")
        await seconds(POLLED_S)
        setup.publish(1)
        processor.resume("0")
        await seconds(POLLED_S)
        found.append(setup.numbers())
        processor.pause("0")
        await resume(setup)
        await seconds(POLLED_S)
        found.append(setup.numbers())
        processor.resume("0")
        await seconds(1)
        found.append(setup.numbers())

    assert found == [[], [], [0]]


async def test_a_damaged_record_pauses_a_group_that_starts_and_is_mended_by_a_resume():
    """A processor that has read the pauses before goes on with those."""
    setup = Setup(partition_count=2)
    found = []
    async with setup.processor(owner_id="a"):
        await seconds(5)
        await pause(setup, "0")
        await seconds(POLLED_S)
        async with store_of(setup) as store:
            etag = (await store.list_members(setup.group)).record_etags[PAUSES_RECORD]
            record = GroupRecord(name=PAUSES_RECORD, content=b"?", etag=etag)
            await store.write_record(setup.group, record)
            with pytest.raises(StoreCorruptError, match="resume the whole group"):
                await resume_group(store, setup.group, ["0"])
        await seconds(POLLED_S)
        for p in "01":
            setup.publish(1, p)
        await seconds(POLLED_S)
        found.append([setup.numbers(p) for p in "01"])
    async with setup.processor(owner_id="b") as processor:
        await seconds(POLLED_S)
        setup.publish(1, "1")
        await seconds(POLLED_S)
        found.append([setup.numbers(p) for p in "01"])
        (reason,) = {pump.pause_reason for pump in processor.statistics().pumps}
        await resume(setup)
        await seconds(POLLED_S)
        found.append([setup.numbers(p) for p in "01"])

    assert found == [[[], [0]], [[], [0]], [[0], [0, 1]]]
    assert "damaged" in (reason or "")


class Contested(MemoryCheckpointStore):
    """A store in which others write first, or whose answers are lost."""

    lost = 0
    overtaken = 0
    unknown = 0
    refused = False

    def __init__(self, account):
        super().__init__(account)
        self.account = account

    async def read_record(self, group, name):
        """Write another operator's pause after the read."""
        record = await super().read_record(group, name)
        if self.overtaken:
            self.overtaken -= 1
            async with MemoryCheckpointStore(self.account) as other:
                await pause_group(other, group, ["other"], reason="other", expiration=EXPIRATION)
        return record

    async def write_record(self, group, record):
        """Write another operator's pause first, or lose the answer."""
        if self.refused:
            error = StoreRejectedError("no permission")
            return RecordResult(outcome=WriteOutcome.UNKNOWN, error=error)
        if self.lost:
            self.lost -= 1
            async with MemoryCheckpointStore(self.account) as other:
                await pause_group(
                    other, group, [f"other-{self.lost}"], reason="other", expiration=EXPIRATION
                )
        result = await super().write_record(group, record)
        if self.unknown:
            self.unknown -= 1
            return RecordResult(
                outcome=WriteOutcome.UNKNOWN, error=StoreUnavailableError("no answer")
            )
        return result


def run_contested(scenario):
    """Run a scenario with such a store."""

    async def main():
        setup = Setup()
        store = Contested(setup.account)
        async with store:
            return await scenario(store, setup.group)

    return run_virtual(main())


def test_two_operators_do_not_undo_each_others_pauses():
    """A write that lost is computed again from what the other one wrote."""

    async def scenario(store, group):
        store.lost = 3
        await pause_group(store, group, ["0"], reason="mine", expiration=EXPIRATION)
        return sorted((await read_pauses(store, group)).by_partition)

    assert run_contested(scenario) == ["0", "other-0", "other-1", "other-2"]


def test_a_pause_that_was_written_after_the_record_was_read_is_not_lost():
    """The write is conditional on what was read, not on what is there by then."""

    async def scenario(store, group):
        await pause_group(store, group, ["0"], reason="first", expiration=EXPIRATION)
        store.overtaken = 1
        await pause_group(store, group, ["1"], reason="mine", expiration=EXPIRATION)
        return sorted((await read_pauses(store, group)).by_partition)

    assert run_contested(scenario) == ["0", "1", "other"]


def test_a_write_without_an_answer_is_found_out_about():
    """The same pause is not written twice."""

    async def scenario(store, group):
        store.unknown = 1
        found = await pause_group(store, group, ["0"], reason="mine", expiration=EXPIRATION)
        return found, await read_pauses(store, group)

    found, kept = run_contested(scenario)

    assert found == kept != NO_PAUSES


def test_a_store_that_refuses_or_is_always_first_is_an_error():
    """Not a pause that does not exist."""

    async def scenario(store, group):
        store.lost = 100
        with pytest.raises(StoreUnavailableError, match="20 attempts"):
            await pause_group(store, group, reason="mine", expiration=EXPIRATION)
        store.refused = True
        with pytest.raises(StoreRejectedError, match="no permission"):
            await resume_group(store, group)

    run_contested(scenario)


def test_an_empty_list_of_partitions_changes_nothing():
    """It is an error, and neither pauses the whole group nor resumes it."""

    async def scenario(store, group):
        with pytest.raises(ValueError, match="pass None for the whole group"):
            await pause_group(store, group, [], reason="mine", expiration=EXPIRATION)
        never = await read_pauses(store, group)
        paused = await pause_group(store, group, reason="mine", expiration=EXPIRATION)
        with pytest.raises(ValueError, match="pass None for the whole group"):
            await resume_group(store, group, [])
        return never, paused, await read_pauses(store, group)

    never, paused, kept = run_contested(scenario)

    assert never == NO_PAUSES
    assert kept == paused


def test_a_group_without_pauses_gets_no_record_by_a_resume():
    """Nothing is to be written."""

    async def scenario(store, group):
        found = await resume_group(store, group), await resume_group(store, group, ["0"])
        return found, (await store.list_members(group)).record_etags

    found, etags = run_contested(scenario)

    assert (found, dict(etags)) == ((NO_PAUSES, NO_PAUSES), {})


def test_a_group_that_would_not_hear_of_a_pause_is_refused():
    """Processors of an Azure SDK go on receiving, and resources are not received from."""

    async def scenario(store, group):
        claim = OwnershipClaim(partition_id="0", owner_id="azure", expected_etag=None)
        await store.claim_ownership(group, [claim])
        with pytest.raises(ConfigurationError, match="azure is a processor of an Azure SDK"):
            await pause_group(store, group, reason="mine", expiration=EXPIRATION)
        resources = ConsumerGroup.of_resources("keys")
        with pytest.raises(ConfigurationError, match="named resources"):
            await pause_group(store, resources, reason="mine", expiration=EXPIRATION)
        await seconds(61)
        await pause_group(store, group, reason="mine", expiration=EXPIRATION)

    run_contested(scenario)


def test_a_processor_that_joins_while_a_pause_is_written_is_none_of_an_azure_sdk():
    """It was no member when the members were listed, and owned a partition right after that."""

    class Joined(MemoryCheckpointStore):
        is_first = True

        async def list_members(self, group):
            found = await super().list_members(group)
            if self.is_first:
                self.is_first = False
                await self.announce_member(group, Member(owner_id="new", incarnation="1"))
                claim = OwnershipClaim(partition_id="0", owner_id="new", expected_etag=None)
                await self.claim_ownership(group, [claim])
            return found

    async def scenario():
        group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
        async with Joined() as store:
            return await pause_group(store, group, reason="mine", expiration=EXPIRATION)

    assert run_virtual(scenario()).group is not None
