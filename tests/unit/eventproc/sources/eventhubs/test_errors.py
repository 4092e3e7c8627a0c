"""AMQP error conditions and HTTP statuses of the service, and the errors raised for them."""

import pytest

from eventproc.errors import (
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
)
from eventproc.sources.eventhubs.errors import OffsetRefusedError, error_for


@pytest.mark.parametrize(
    ("condition", "status", "meaning"),
    [
        ("amqp:link:stolen", None, ReceiverDisplacedError),
        ("link:stolen", None, ReceiverDisplacedError),
        ("amqp:not-found", None, SourceRejectedError),
        ("not-found", None, SourceRejectedError),
        ("amqp:unauthorized-access", None, SourceRejectedError),
        ("com.microsoft:argument-out-of-range", None, SourceRejectedError),
        ("com.microsoft:georeplication:invalid-offset", None, OffsetRefusedError),
        (None, 401, SourceRejectedError),
        (None, 404, SourceRejectedError),
        ("com.microsoft:server-busy", None, SourceUnavailableError),
        ("com.microsoft:timeout", None, SourceUnavailableError),
        ("amqp:link:detach-forced", None, SourceUnavailableError),
        ("amqp:connection:forced", None, SourceUnavailableError),
        ("amqp:internal-error", 500, SourceUnavailableError),
        ("something:new", None, SourceUnavailableError),
        (None, 503, SourceUnavailableError),
        (None, None, SourceUnavailableError),
    ],
)
def test_a_condition_is_mapped_to_displaced_rejected_or_unavailable(condition, status, meaning):
    """One that is not known to be final means that a retry may help."""
    error = error_for("doing", "it  said\nso", condition=condition, status=status)

    assert type(error) is meaning
    assert str(error) == "doing: it said so"
