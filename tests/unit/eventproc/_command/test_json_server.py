"""The newest vote over HTTP."""

from datetime import timedelta

import pytest

from eventproc._base.http.address import Answer, ListenAddress
from eventproc._base.http.client import fetch
from eventproc._command.json_server import serve_json
from eventproc._core.scaling.decision import Decision, Reason
from eventproc._group.autoscaler import Vote


@pytest.mark.parametrize(("replicas", "status"), [(None, 503), (0, 200), (3, 200)])
async def test_a_vote_without_a_number_has_status_503(replicas, status):
    """So that it is not taken for zero, which is a vote like any other."""
    vote = Vote(decision=Decision(replicas=replicas, reason=Reason.NO_ANSWER))
    async with serve_json(ListenAddress(), lambda: vote) as bound:
        answer = await fetch(bound, "/", timedelta(seconds=60))

    assert answer == Answer(vote.as_json(), status)
