"""The errors for answers of the service other than success."""

from datetime import UTC, datetime
from functools import partial

import pytest

from checkpointstores.tables._azure_table import TABLES
from eventproc._base.azure_storage import answers
from eventproc._base.azure_storage.answers import (
    ConditionFailedError,
    Right,
    expiry_before,
    no_answer,
)
from eventproc._base.azure_storage.blobs import BLOBS
from eventproc.errors import StoreRejectedError, StoreUnavailableError

LOST, AGAIN, NEVER = ConditionFailedError, StoreUnavailableError, StoreRejectedError
PLACE = "contoso.blob.core.windows.net/checkpoints"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

error_for = partial(answers.error_for, BLOBS, place=PLACE, right=Right.WRITE)
table_error_for = partial(answers.error_for, TABLES, place="host/t", right=Right.WRITE)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (412, "ConditionNotMet", LOST),
        (409, "BlobAlreadyExists", LOST),
        (404, "BlobNotFound", LOST),
        (404, "", AGAIN),
        (412, "", AGAIN),
        (412, "LeaseIdMissing", NEVER),
        (409, "ContainerBeingDeleted", NEVER),
        (404, "ContainerNotFound", NEVER),
        (403, "AuthenticationFailed", NEVER),
        (401, "", AGAIN),
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
def test_only_some_answers_mean_that_another_writer_won(status, code, kind):
    """Not for example a lease on the blob, or a deleted container."""
    assert type(error_for(status, code)) is kind


def test_the_error_says_if_the_request_was_repeated():
    """The repetition may have failed because of the first request."""
    error = error_for(412, "ConditionNotMet", was_repeated=True)

    assert isinstance(error, ConditionFailedError)
    assert error.was_repeated


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AuthorizationPermissionMismatch", "lacks the right to write blobs (403 Auth"),
        (403, "AuthenticationFailed", "the credential is refused (403 AuthenticationFailed)"),
        (
            404,
            "ContainerNotFound",
            "does not exist; create it with `eventproc store init --store blob:",
        ),
        (0, "AzureSigningError", "is the account key complete?"),
        (400, "InvalidHeaderValue", "the service refuses the request (400 InvalidHeaderValue)"),
    ],
)
def test_a_refusal_names_the_container_and_what_is_missing(status, code, words):
    """So that one line is enough to correct it."""
    text = str(error_for(status, code))

    assert text.startswith(f"blob container {PLACE} cannot be used: ")
    assert words in text


def test_the_error_names_an_expired_token():
    """The service only says that it refuses the credential."""
    text = str(error_for(403, "AuthenticationFailed", expired_at="2026-01-31T11:00:00Z"))

    assert "the SAS token expired at 2026-01-31T11:00:00Z (403 AuthenticationFailed)" in text


@pytest.mark.parametrize(
    ("query", "expired_at"),
    [
        ("sv=1&se=2026-01-31T11%3A00%3A00Z&sig=x", "2026-01-31T11:00:00Z"),
        ("se=2026-01-31T12%3A00%3A01Z", ""),
        ("se=2026-01-30", ""),
        ("se=soon", ""),
        ("sv=1", ""),
        ("", ""),
    ],
)
def test_the_expiry_of_a_token_is_read_from_the_url(query, expired_at):
    """By the service's clock. One that cannot be parsed has not expired."""
    url = f"https://{PLACE}?{query}"

    assert expiry_before(url, NOON) == expired_at
    assert not expiry_before(url, None)


def test_the_error_for_no_answer_has_the_reason_but_no_url():
    """Only texts of the operating system are quoted: others may have a SAS token."""

    class WrappedError(Exception):
        inner_exception = OSError(111, "Connect call failed ('127.0.0.1', 1)")

    with_reason = str(
        no_answer(WrappedError("GET https://x?sig=secret"), f"blob container {PLACE}")
    )
    without_reason = str(no_answer(ValueError("https://x?sig=secret"), f"blob container {PLACE}"))

    assert f"{PLACE} does not answer (ConnectionRefusedError: Connect call failed" in with_reason
    assert (
        f"{PLACE} does not answer (ValueError); check the storage account's address"
        in without_reason
    )
    assert "secret" not in with_reason + without_reason


@pytest.mark.parametrize(
    ("status", "code", "kind", "text"),
    [
        (412, "UpdateConditionNotSatisfied", ConditionFailedError, "changed"),
        (404, "ResourceNotFound", ConditionFailedError, "changed"),
        (409, "EntityAlreadyExists", ConditionFailedError, "changed"),
        (503, "ServerBusy", StoreUnavailableError, "cannot answer now"),
        (429, "", StoreUnavailableError, "cannot answer now"),
        (409, "TableBeingDeleted", StoreUnavailableError, "cannot answer now"),
        (404, "TableNotFound", StoreRejectedError, "eventproc store init"),
        (403, "AuthenticationFailed", StoreRejectedError, "the credential is refused"),
        (0, "ValueError", StoreRejectedError, "is the account key complete"),
        (400, "InvalidInput", StoreRejectedError, "refuses the request"),
    ],
)
def test_the_meaning_of_an_answer_of_tables(status, code, kind, text):
    """The message has the remedy."""
    error = table_error_for(status, code)

    assert type(error) is kind
    assert text in str(error)


def test_an_identity_without_the_role_gets_the_name_of_the_role():
    """Azure's code does not say it."""
    error = table_error_for(403, "AuthorizationPermissionMismatch", is_identity=True)

    assert "Storage Table Data Contributor" in str(error)
    assert "write entities" in str(error)
