"""What a processor shows of its pumps and hand-overs, and where stalled partitions go."""

from datetime import timedelta

from eventproc.models import CloseReason
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._group.pumps.stub_pumps import PumpsFixture


async def test_pumps_are_shown_in_the_order_of_their_partitions():
    """Not in the order in which they were started."""
    fixture = PumpsFixture()
    await fixture.adjust("1")
    await fixture.adjust("01")

    assert fixture.pumps.current == (fixture.newest("0"), fixture.newest("1"))


async def test_a_partition_is_shown_as_restarting_until_its_next_pump_has_started():
    """Although failures in a row are still counted: that pump may fail, too."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    fixture.newest().fail(RuntimeError())
    await seconds(0.1)
    resting = fixture.pumps.restarting
    await seconds(10)
    await fixture.adjust("0")

    assert (resting, fixture.pumps.restarting) == (("0",), ())


async def test_a_failed_partition_that_another_processor_took_over_is_not_shown_as_restarting():
    """Of two that fail here one moves to a processor that joins; the other one is still tried."""
    setup = Setup(partition_count=2)

    def fail():
        raise RuntimeError

    async with setup.processor(fail) as failing:
        await seconds(5)
        before = failing.statistics().restarting
        async with setup.processor(owner_id="b"):
            await seconds(30)
            after, owners = failing.statistics().restarting, setup.owners()

    assert before == ("0", "1")
    assert set(owners.values()) == {"a", "b"}
    assert after == tuple(p for p, owner_id in owners.items() if owner_id == "a")


async def test_stalled_partitions_are_spread_over_the_other_members():
    """One that cannot serve them either does not get all of them."""
    fixture = PumpsFixture()
    partitions = "0123456789"
    await fixture.adjust(partitions, others=("b", "c"))
    for partition_id in partitions:
        fixture.newest(partition_id).end(CloseReason.STALLED)
    await seconds(2)

    assert {owner_id for _, owner_id in fixture.transfers} == {"b", "c"}


async def test_a_hand_over_that_a_drain_finds_under_way_is_counted(caplog):
    """The plan asked for it, and not the stop."""
    caplog.set_level("INFO")
    fixture = PumpsFixture()
    await fixture.adjust("0")
    await fixture.adjust("0", {"0": "b"})
    await fixture.pumps.drain("0", {"0": "b"}, timedelta(seconds=10))

    assert (fixture.transfers, fixture.pumps.hand_overs.count) == ([("0", "b")], 1)
    assert "partition_handed_over" in caplog.text
