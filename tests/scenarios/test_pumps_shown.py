"""What a processor shows of its pumps and hand-overs, and where stalled partitions go."""

from datetime import timedelta

from eventproc.models import CloseReason
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import seconds
from tests.unit.eventproc._group.pumps.stub_pumps import PumpsFixture


def test_pumps_are_shown_in_the_order_of_their_partitions():
    """Not in the order in which they were started."""

    async def scenario():
        fixture = PumpsFixture()
        await fixture.adjust("1")
        await fixture.adjust("01")
        return fixture.pumps.current == (fixture.newest("0"), fixture.newest("1"))

    assert run_virtual(scenario())


def test_a_partition_is_shown_as_restarting_until_its_next_pump_has_started():
    """Although failures in a row are still counted: that pump may fail, too."""

    async def scenario():
        fixture = PumpsFixture()
        await fixture.adjust("0")
        fixture.newest().fail(RuntimeError())
        await seconds(0.1)
        resting = fixture.pumps.restarting
        await seconds(10)
        await fixture.adjust("0")
        return resting, fixture.pumps.restarting

    assert run_virtual(scenario()) == (("0",), ())


def test_stalled_partitions_are_spread_over_the_other_members():
    """One that cannot serve them either does not get all of them."""

    async def scenario():
        fixture = PumpsFixture()
        partitions = "0123456789"
        await fixture.adjust(partitions, others=("b", "c"))
        for partition_id in partitions:
            fixture.newest(partition_id).end(CloseReason.STALLED)
        await seconds(2)
        return {owner_id for _, owner_id in fixture.transfers}

    assert run_virtual(scenario()) == {"b", "c"}


def test_a_hand_over_that_a_drain_finds_under_way_is_counted(caplog):
    """The plan asked for it, and not the stop."""

    async def scenario():
        fixture = PumpsFixture()
        await fixture.adjust("0")
        await fixture.adjust("0", {"0": "b"})
        await fixture.pumps.drain("0", {"0": "b"}, timedelta(seconds=10))
        return fixture.transfers, fixture.pumps.hand_overs.count

    caplog.set_level("INFO")
    assert run_virtual(scenario()) == ([("0", "b")], 1)
    assert "partition_handed_over" in caplog.text
