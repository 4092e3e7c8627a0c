"""A scaler that runs on: which errors end it, and which are outages."""

import asyncio
import json
import re
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest

from eventproc._base.http.address import Answer
from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT, exit_code_of
from eventproc._command.verbs.scale import _answer, _serve
from eventproc._core.scaling.decision import Decision, Reason, ScalingRules
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc._group.autoscaler import Autoscaler, Vote
from eventproc.errors import (
    EventProcError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.testing._virtual_time import run_virtual

EVERY = timedelta(seconds=10)
GROUP = Reading(
    at_s=0,
    partitions={"0": PartitionReading(first=0, last=-1, handled=None, owner_id="a")},
    member_ids=frozenset("a"),
)
REJECTED = [SourceRejectedError("there is no such hub"), StoreRejectedError("it may not be read")]
AWAY = [SourceUnavailableError("the hub is away"), StoreUnavailableError("the store is away")]


def serve(*answers):
    """Watch a group for an hour whose readings are these answers, the last one again and again.

    Return when each reading began.
    """
    begun_s = []

    async def scenario():
        given = iter(answers)

        async def read():
            begun_s.append(asyncio.get_running_loop().time())
            await asyncio.sleep(1)
            answer = next(given, answers[-1])
            if isinstance(answer, EventProcError):
                raise answer
            return answer

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await _serve(Autoscaler(read, ScalingRules()), {}, EVERY)

    run_virtual(scenario())
    return begun_s


def test_the_time_between_two_readings_is_kept_from_the_start():
    """After the end of a reading the next one begins in ``--every``; each takes a second here."""
    begun_s = serve(GROUP)

    assert {after - before for before, after in pairwise(begun_s)} == {EVERY.total_seconds() + 1}


@pytest.mark.parametrize("every", ["0", "0s", "99ms"])
def test_a_time_between_two_readings_that_is_too_short_is_refused(every, capsys):
    """It would ask store and hub again and again without a pause."""
    address = ("--eventhub", "orders", "--store", "sqlite:group.db")
    code = main(["scale", *address, "--watch", "--every", every])

    assert code == BAD_INPUT
    assert re.search(r"--every is 0(\.099)? s: give 0\.1 s or more", capsys.readouterr().err)


@pytest.mark.parametrize("error", REJECTED)
def test_wrong_input_ends_the_command_at_once(error, capsys):
    """A retry cannot mend it: the exit code is 2, and nothing is printed."""
    with pytest.raises(type(error)) as raised:
        serve(error)

    assert exit_code_of(raised.value) == BAD_INPUT
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("answers", [(error, GROUP) for error in AWAY])
def test_an_outage_at_the_start_does_not_end_the_command(answers, capsys):
    """There is a vote as soon as the group can be read."""
    serve(*answers)

    assert [json.loads(line)["replicas"] for line in capsys.readouterr().out.splitlines()][-1] == 1


@pytest.mark.parametrize("error", [*REJECTED, *AWAY])
def test_an_error_of_a_later_reading_is_an_outage(error, capsys):
    """Even if it would have ended the command at the start: the vote keeps its number."""
    serve(GROUP, error)

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(vote["replicas"], vote.get("error")) for vote in found] == [
        (1, None),
        (1, str(error)),
    ]


@pytest.mark.parametrize(("replicas", "status"), [(None, 503), (0, 200), (3, 200)])
async def test_a_vote_without_a_number_has_status_503(replicas, status):
    """So that it is not taken for zero, which is a vote like any other."""
    vote = Vote(decision=Decision(replicas=replicas, reason=Reason.NO_ANSWER))

    assert await _answer(SimpleNamespace(vote=vote)) == Answer(vote.as_json(), status)  # type: ignore[arg-type]
