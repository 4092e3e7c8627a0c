"""What an answer other than success means."""

import pytest

from checkpointstores._blob_container import ConditionFailedError, meaning
from eventproc.errors import StoreCorruptError, StoreUnavailableError

LOST, AGAIN, NEVER = ConditionFailedError, StoreUnavailableError, StoreCorruptError


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (412, "ConditionNotMet", LOST),
        (409, "BlobAlreadyExists", LOST),
        (404, "BlobNotFound", LOST),
        (404, "", LOST),
        (412, "LeaseIdMissing", NEVER),
        (409, "ContainerBeingDeleted", NEVER),
        (404, "ContainerNotFound", NEVER),
        (403, "AuthenticationFailed", NEVER),
        (401, "", NEVER),
        (0, "", NEVER),
        (400, "InvalidHeaderValue", NEVER),
        (403, "ConditionNotMet", NEVER),
        (500, "OperationTimedOut", AGAIN),
        (503, "ServerBusy", AGAIN),
        (500, "ConditionNotMet", AGAIN),
        (408, "", AGAIN),
        (429, "", AGAIN),
    ],
)
def test_an_answer_is_a_lost_race_only_if_it_says_so(status, code, kind):
    """A lease or a vanished container has no winner."""
    assert type(meaning(status, code, was_repeated=False)) is kind


def test_a_repeated_request_is_remembered():
    """The second of two equal requests may have failed against the first."""
    error = meaning(412, "ConditionNotMet", was_repeated=True)

    assert isinstance(error, ConditionFailedError)
    assert error.was_repeated
