"""A second process that writes the member record of a live processor again and again."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.scenarios.group_setup import Setup, seconds

INTERVAL = timedelta(seconds=10)
WRITE_COUNT = 3
"""Less often than one of two live processors has to yield."""


class SecondProcess:
    """Another process under the owner id, which writes before each answer of the live one."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        store: Any = setup.store_by_owner["a"]
        self._announce = store.announce_member
        store.announce_member = self._answer
        self.written_at_s: list[float] = []
        """When it wrote, each time."""

        self.answered_at_s = float("inf")
        """When an answer of the live one was confirmed."""

    @property
    def found(self):
        """The member record."""
        return self.setup.account.records(self.setup.group).member_by_owner["a"]

    async def write(self):
        """Write the record, as its start does if no answer of the store comes."""
        mine = replace(self.found, incarnation="~")
        await self._announce(self.setup.group, mine)
        self.written_at_s.append(self.setup.now_s)

    async def _answer(self, group, member):
        if 0 < len(self.written_at_s) < WRITE_COUNT:
            await self.write()
        result = await self._announce(group, member)
        if self.written_at_s and self.found.incarnation == member.incarnation:
            self.answered_at_s = self.setup.now_s
        return result


async def test_a_live_processor_repeats_a_refused_answer_without_waiting_for_its_next_poll():
    """Otherwise its leases may end first, and it yields to a process that is refused."""
    setup = Setup()
    processor = setup.processor(load_balancing_interval=INTERVAL)
    async with processor:
        await seconds(30)
        second = SecondProcess(setup)
        await second.write()
        await seconds(2 * INTERVAL.total_seconds())

        assert len(second.written_at_s) == WRITE_COUNT
        assert second.answered_at_s - second.written_at_s[1] < 1
        assert setup.owners() == {"0": "a"}
