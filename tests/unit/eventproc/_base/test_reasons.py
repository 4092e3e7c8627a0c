"""A credential's long message becomes one line."""

from eventproc._base.identity import no_token_reason

TRIED = """DefaultAzureCredential failed to retrieve a token from the included credentials.
Attempted credentials:
\tEnvironmentCredential: EnvironmentCredential authentication unavailable. Not configured.
Visit https://aka.ms/azsdk to troubleshoot this issue.
\tWorkloadIdentityCredential: {workload}
\tAzureCliCredential: Azure CLI not found on path
To mitigate this issue, see the guidelines."""
UNAVAILABLE = "WorkloadIdentityCredential authentication unavailable."


def test_if_nothing_is_set_up_the_remedy_is_named():
    """Which of a dozen credentials are missing helps nobody."""
    assert no_token_reason(ValueError(TRIED.format(workload=UNAVAILABLE))).startswith(
        "no credential was found. In Azure, give the machine or the pod a managed identity"
    )


def test_a_credential_that_is_set_up_and_failed_is_named_alone():
    """Also if its reason contains the words of one that is missing."""
    text = no_token_reason(ValueError(TRIED.format(workload="AADSTS700016: not found here")))

    assert text == (
        "no credential gave a token. WorkloadIdentityCredential failed: AADSTS700016: not found "
        "here"
    )


def test_another_error_is_kept_and_shortened():
    """It stays on one line."""
    assert no_token_reason(ValueError("a\n b")) == "the credential gave no token: a b"
    assert no_token_reason(KeyError()) == "the credential gave no token: KeyError"
    assert len(no_token_reason(ValueError("x" * 5000))) < 400
