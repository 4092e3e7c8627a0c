"""Votes on a real group, with short spans of time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest

from eventproc._core.scaling.decision import ScalingRules
from eventproc._group.autoscaler import Autoscaler, Vote, read_group
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore
from eventproc.sources.eventhubs import EventHubSource

TIMEOUT_S = 60
EVERY = timedelta(seconds=0.5)

RULES = ScalingRules(
    drain_target=timedelta(seconds=20),
    cooldown=timedelta(seconds=4),
    start_time=timedelta(seconds=2),
    checkpoint_interval=timedelta(seconds=2),
)


class Votes:
    """Every vote on a group so far."""

    def __init__(self, scaler: Autoscaler) -> None:
        self.scaler = scaler
        self.given: list[Vote] = []

    @property
    def replicas(self) -> int | None:
        return self.scaler.vote.decision.replicas

    def reasons(self, since: int = 0) -> set[str]:
        """Return the names of the reasons of the votes from a number on."""
        return {vote.decision.reason.name for vote in self.given[since:]}

    def numbers(self, since: int = 0) -> set[int | None]:
        """Return the numbers that were voted for, from a number of votes on."""
        return {vote.decision.replicas for vote in self.given[since:]}

    async def until(self, condition: Callable[[Vote], bool], what: str) -> None:
        """Wait for a vote; fail with *what* and the last votes if none comes."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not condition(self.scaler.vote):  # noqa: ASYNC110 - other programs change it
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"not within {TIMEOUT_S} s: {what}: {self.given[-5:]}")


@asynccontextmanager
async def voting(
    store: CheckpointStore,
    connection_string: str,
    *,
    expiration: timedelta,
    rules: ScalingRules = RULES,
) -> AsyncIterator[Votes]:
    """Vote on the group of a hub again and again for as long as the block lasts."""
    source = EventHubSource.from_connection_string(connection_string)
    group = ConsumerGroup(
        fully_qualified_namespace=source.fully_qualified_namespace,
        eventhub_name=source.eventhub_name,
        name="$Default",
    )
    async with store, source:
        read = partial(
            read_group, store, group, source, expiration=expiration, clock=time.monotonic
        )
        votes = Votes(Autoscaler(read, rules))
        tasks = [
            asyncio.create_task(votes.scaler.run(EVERY)),
            asyncio.create_task(_keep(votes)),
        ]
        try:
            yield votes
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def _keep(votes: Votes) -> None:
    while True:
        if not votes.given or votes.given[-1] is not votes.scaler.vote:
            votes.given.append(votes.scaler.vote)
        await asyncio.sleep(0.05)
