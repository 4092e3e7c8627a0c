"""The exit codes, by which a supervisor decides whether to restart."""

import pytest

from eventproc._command.terminal.exits import (
    BAD_INPUT,
    FAILED,
    UNREACHABLE,
    exit_code_of,
    explained,
    print_error,
)
from eventproc.errors import (
    ConfigurationError,
    DuplicateOwnerError,
    EventProcError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreCorruptError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
    SuspectSettingError,
)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConfigurationError, BAD_INPUT),
        (DuplicateOwnerError, BAD_INPUT),
        (StoreRejectedError, BAD_INPUT),
        (StoreCorruptError, BAD_INPUT),
        (SourceRejectedError, BAD_INPUT),
        (SuspectSettingError, BAD_INPUT),
        (StoreUnavailableError, UNREACHABLE),
        (SourceUnavailableError, UNREACHABLE),
        (StoreError, FAILED),
        (EventProcError, FAILED),
    ],
)
def test_the_exit_code_says_whether_a_restart_may_help(kind, code):
    """2: an operator must correct something; 3: a retry may help; 1: unknown."""
    assert exit_code_of(kind("why")) == code


def test_a_hub_without_an_answer_has_a_remedy():
    """Its own, unless the message has one; other errors have none."""
    assert "that this machine can reach them" in explained(SourceUnavailableError("no answer"))
    assert "connection string" in explained(SuspectSettingError("unknown host"))
    assert explained(StoreUnavailableError("no answer")) == "no answer"


def test_the_remedy_for_a_refusal_says_whose_right_it_names():
    """The Listen right is one of Event Hubs; other brokers have none of that name."""
    assert "may read (at Event Hubs: has the right Listen, or the role" in explained(
        SourceRejectedError("no")
    )


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (
            "--namespace is 'Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=c2Vj=='",
            "--namespace is 'Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=...'",
        ),
        (
            "--store is 'AccountName=a;AccountKey=c2Vj=='",
            "--store is 'AccountName=a;AccountKey=...'",
        ),
        ("--store is 'host=db password=pw user=u'", "--store is 'host=db password=... user=u'"),
        ("--store is 'amqps://user:pw@host:5671/v'", "--store is 'amqps://user:...@host:5671/v'"),
        ("https://a.blob.core/c?sv=1&sig=ab%3D&se=2", "https://a.blob.core/c?sv=1&sig=...&se=2"),
        ("--store is 'amqps://user:password@host'", "--store is 'amqps://user:...@host'"),
        ("http://host:8080/ready did not answer", "http://host:8080/ready did not answer"),
        ("give http://USER:PASSWORD@HOST:PORT", "give http://USER:PASSWORD@HOST:PORT"),
    ],
)
def test_an_error_shows_no_secret_that_was_given_in_the_wrong_place(given, shown, capsys):
    print_error(given)

    assert capsys.readouterr().err.endswith(f" {shown}\n")
