"""AMQP error conditions and HTTP statuses of the service, and the errors raised for them."""

import pickle

import pytest

from eventproc.emulator._amqp.refusal import token_expired
from eventproc.errors import ReceiverDisplacedError, SourceRejectedError, SourceUnavailableError
from eventproc.sources.eventhubs._errors import OffsetRefusedError, error_for


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


TRACKING = "TrackingId:6c_G16, SystemTracker:ns:eventhub:orders~16383|$default"
NOT_FOUND = (
    "The messaging entity 'sb://ns/orders' could not be found. To know more visit "
    "https://aka.ms/sbResourceMgrExceptions."
)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (f"{NOT_FOUND}  {TRACKING}, Timestamp:2026-11-24T16:52:28", None),
        (f"{NOT_FOUND} {TRACKING}, Timestamp:11/24/2026 4:52:28 PM", None),
        (f"{NOT_FOUND} Reference:0f-1, {TRACKING}, Timestamp:2026-11-24T16:52:28", None),
        (f"{NOT_FOUND} TrackingId:6c_G16", None),
        (f"{NOT_FOUND} TrackingId:1 TrackingId:2.", "TrackingId:1; TrackingId:2"),
    ],
)
def test_what_support_asks_for_is_at_the_end(text, reference):
    """After the remedy that somebody adds, so that it stands in the middle of no sentence."""
    error = error_for("asking for partitions", text, condition="amqp:not-found")
    reference = reference or text.removeprefix(NOT_FOUND).strip()
    words, end = NOT_FOUND.rstrip("."), f" (for a support ticket: {reference})"

    assert str(error) == f"asking for partitions: {words}{end}"
    assert error.with_remedy(". Check it") == f"asking for partitions: {words}. Check it{end}"
    assert str(pickle.loads(pickle.dumps(error)).with_remedy(". Check it")).endswith(f"it{end}")


@pytest.mark.parametrize(
    "condition", ["link:stolen", "georeplication:invalid-offset", "not-found", "server-busy"]
)
def test_every_error_of_the_service_keeps_what_support_asks_for(condition):
    """Also one that passes, which is only logged."""
    error = error_for("reading", "No. TrackingId:1", condition=condition)

    assert str(error) == "reading: No (for a support ticket: TrackingId:1)"
    assert "TrackingId:1" in repr(error)


def test_the_remedy_for_a_missing_right_is_before_what_support_asks_for():
    """It has a remedy of its own, so no other is added."""
    text = "Unauthorized access. 'Listen' claim(s) are required. TrackingId:1, Timestamp:2"
    error = error_for("opening", text, condition="amqp:unauthorized-access")

    assert str(error).startswith(
        "opening: Unauthorized access. 'Listen' claim(s) are required. The"
    )
    assert str(error).endswith(
        "a key with this right (for a support ticket: TrackingId:1, Timestamp:2)"
    )
    assert error.with_remedy(". Check it") == str(error)


@pytest.mark.parametrize("right", ["Listen", "Send"])
def test_a_link_that_was_detached_because_its_token_expired_may_be_opened_again(right):
    """The service names the right, as it does where the credential lacks it."""
    said = token_expired("link-1", right, "orders")
    error = error_for("reading", said.description, condition=said.condition)

    assert f"'{right}' claim" in str(error)
    assert type(error) is SourceUnavailableError
