"""A remedy that is a command can be typed as it is shown."""

import pytest

from eventproc.cli.terminal.follow_up import with_given_options

HINT = "there is no table; create it with `eventproc store init`, or correct the name"


def hint(command, *, message=HINT):
    """Return the command in the message after this one has failed."""
    return with_given_options(message, command.split()).split("`")[1]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("run orders:Orders --store tables:leases", "--store tables:leases"),
        ("run orders:Orders --store=tables:leases --http 80", "--store tables:leases"),
        ("status --store postgres:DSN?schema=a", "--store 'postgres:DSN?schema=a'"),
        (
            "status --ca-bundle ca.pem --store blob:a --eventhub o --storage-account=contoso",
            "--ca-bundle ca.pem --store blob:a --storage-account contoso",
        ),
        ("status --store blob:a --proxy http://proxy:80", "--store blob:a --proxy http://proxy:80"),
    ],
)
def test_a_remedy_repeats_the_options_of_the_store(given, shown):
    """Without those of the hub, which the other command does not have."""
    assert hint(given) == f"eventproc store init {shown}"


@pytest.mark.parametrize(
    "secret", ["--storage-connection-string AccountKey=s", "--proxy http://user:s@proxy:80"]
)
def test_a_remedy_repeats_no_secret(secret):
    """Neither a key nor a password is printed."""
    assert hint(f"run a:B {secret} --store blob:a") == "eventproc store init --store blob:a"


def test_a_remedy_with_a_store_of_its_own_keeps_it():
    """As that of a container for dead letters, in the same account as the store."""
    message = "create it with `eventproc store init --store blob:dead-letters`"
    given = "run a:B --store tables:leases --storage-account contoso"

    assert hint(given, message=message) == (
        "eventproc store init --store blob:dead-letters --storage-account contoso"
    )


def test_what_the_environment_gave_is_not_repeated():
    """It is still set when the other command runs; other messages stay as they are."""
    assert with_given_options(HINT, ["status"]) == HINT
    assert with_given_options("no answer", ["status", "--store", "blob:a"]) == "no answer"
