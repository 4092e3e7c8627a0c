"""Votes again and again: which of them reach those that wait for changes."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc._base.tasks import end
from eventproc._core.scaling.decision import Decision, Reason, ScalingRules
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc._group.autoscaler import Autoscaler, Vote
from eventproc.errors import SourceUnavailableError, StoreUnavailableError
from eventproc.testing._virtual_time import run_virtual

EVERY = timedelta(seconds=10)
RULES = ScalingRules(replicas_min=0, cooldown=timedelta(minutes=1), checkpoint_interval=EVERY)
STORE_AWAY = StoreUnavailableError("the store\n does not answer")
HUB_AWAY = SourceUnavailableError("the hub does not answer")


def group(*, last, handled, members):
    """Return a reading of one partition."""
    return Reading(
        at_s=0,
        partitions={
            "0": PartitionReading(
                first=0, last=last, handled=handled, owner_id="a" if members else None
            )
        },
        member_ids=frozenset("abc"[:members]),
    )


EMPTY = group(last=-1, handled=None, members=0)
WAITING = group(last=4, handled=None, members=0)
WORKING = group(last=4, handled=4, members=1)


def seen(ask, *answers):
    """Return what *ask* yields while a group is read once for each answer."""

    async def scenario():
        given = iter(answers)

        async def read():
            answer = next(given)
            if isinstance(answer, Exception):
                raise answer
            return replace(answer, at_s=asyncio.get_running_loop().time())

        async def collect():
            async for each in ask(scaler):
                found.append(each)  # noqa: PERF401 - what was found is kept when this is cancelled

        found: list[object] = []
        scaler = Autoscaler(read, RULES)
        tasks = [asyncio.create_task(collect()), asyncio.create_task(scaler.run(EVERY))]
        await asyncio.sleep((len(answers) - 0.5) * EVERY.total_seconds())
        await end(tasks)
        return found

    return run_virtual(scenario())


def votes(*answers):
    """Return the number and the error of each vote that is shown."""
    return [(v.decision.replicas, v.error) for v in seen(Autoscaler.changes, *answers)]


def test_begin_and_end_of_an_outage_are_changes():
    """The number is the same in all of these votes; the outage is shown once, with its error."""
    assert votes(WORKING, WORKING, STORE_AWAY, HUB_AWAY, HUB_AWAY, WORKING) == [
        (1, None),
        (1, "the store does not answer"),
        (1, None),
    ]


def test_an_outage_at_the_start_is_shown_without_a_number():
    """Before the first reading there is no vote at all."""
    assert votes(STORE_AWAY, STORE_AWAY, WORKING) == [
        (None, "the store does not answer"),
        (1, None),
    ]


def test_another_number_is_a_change():
    """The same one is none, even if its reason differs."""
    found = seen(Autoscaler.changes, EMPTY, EMPTY, WAITING, WAITING)

    assert [(v.decision.replicas, v.decision.reason) for v in found] == [
        (0, Reason.FIRST_READING),
        (1, Reason.WOKEN),
    ]


def test_activity_is_yielded_when_it_changes():
    """Not again at begin or end of an outage, nor before the first answer."""
    answers = (STORE_AWAY, EMPTY, HUB_AWAY, EMPTY, WAITING, WORKING, HUB_AWAY, WORKING)

    assert seen(Autoscaler.activity, *answers) == [False, True]


def test_an_idle_group_is_not_active_any_more():
    """Nothing waits and nothing arrives, so after the cool-down it needs no process."""
    assert seen(Autoscaler.activity, *[WORKING] * 10) == [True, False]


def test_a_vote_as_json_has_rounded_rates():
    """What is not known is null, and there is an error only in an outage."""
    decision = Decision(replicas=2, reason=Reason.ENOUGH, backlog=3, arrival_per_s=2 / 3)
    common = {"replicas": 2, "reason": Reason.ENOUGH.value, "backlog": 3, "arrival_per_s": 0.667}
    unknown = {"drain_per_s": None, "rate_of_one": None}

    assert Vote(decision=decision).as_json() == common | unknown
    assert Vote(decision=decision, error="x").as_json() == common | unknown | {"error": "x"}


@pytest.mark.parametrize("error", [STORE_AWAY, HUB_AWAY])
def test_a_single_vote_fails_without_an_answer(error):
    """Unlike those of ``run``: whoever asks once wants to know."""

    async def read():
        raise error

    with pytest.raises(type(error)):
        run_virtual(Autoscaler(read, RULES).decide())
