"""What ``on_error`` gets."""

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.eventhub.exceptions import AuthenticationError, ConnectError, ConnectionLostError

from eventproc.compat._errors import WrongPartitionError, azures_error
from eventproc.errors import (
    EventProcError,
    ReceiverDisplacedError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreUnavailableError,
)

OWN, REQUEST = KeyError("own"), ServiceRequestError("no answer")


def caused(error: Exception, *causes: Exception) -> Exception:
    """Chain these errors; the last one is the first cause."""
    for later, cause in zip([error, *causes], causes, strict=False):
        later.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OWN, OWN),
        (caused(StoreUnavailableError("failed"), OWN), OWN),
        (caused(StoreUnavailableError("failed"), EventProcError("inner"), REQUEST), REQUEST),
    ],
)
def test_an_error_of_the_program_its_store_or_azures_clients_is_given_as_it_is(error, expected):
    assert azures_error(error) is expected


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SourceUnavailableError("no answer"), ConnectError),
        (caused(SourceUnavailableError("no answer"), OSError("reset")), ConnectError),
        (SourceRejectedError("no such hub"), AuthenticationError),
        (ReceiverDisplacedError("another took it"), ConnectionLostError),
        (caused(SourceRejectedError("wrong"), WrongPartitionError("9")), ValueError),
        (StoreUnavailableError("no answer"), StoreUnavailableError),
    ],
)
def test_another_error_becomes_one_that_azures_client_would_have_raised(error, kind):
    assert type(azures_error(error)) is kind
