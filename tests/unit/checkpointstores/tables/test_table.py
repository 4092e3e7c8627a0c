"""Error codes of the table service: a lost race, a pause, or a refusal."""

import pytest

from checkpointstores.requests import ConditionFailedError
from checkpointstores.tables.table import Right, error_for
from eventproc.errors import StoreRejectedError, StoreUnavailableError


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
def test_the_meaning_of_an_answer(status, code, kind, text):
    """The message has the remedy."""
    error = error_for(status, code, place="host/t", right=Right.WRITE, is_identity=False)

    assert type(error) is kind
    assert text in str(error)


def test_an_identity_without_the_role_gets_the_name_of_the_role():
    """Azure's code does not say it."""
    error = error_for(
        403,
        "AuthorizationPermissionMismatch",
        place="host/t",
        right=Right.WRITE,
        is_identity=True,
    )

    assert "Storage Table Data Contributor" in str(error)
    assert "write entities" in str(error)
