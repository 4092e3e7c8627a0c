"""A group or a hub that does not exist is not taken for an empty one: its name is mistyped."""

import json

import pytest

from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT, OK

VERBS = {
    "status": [],
    "status --format json": [],
    "scale": [],
    "scale --watch": [],
    "dashboard": ["--http", "0"],
    "pause --reason x --new-group": [],
    "resume": [],
    "checkpoints list": [],
    "checkpoints lag": [],
    "checkpoints reset --to earliest --yes": [],
    "checkpoints set --partition 0 --sequence-number 1 --offset 1 --yes": [],
    "checkpoints export": ["-"],
}


@pytest.fixture(name="verb")
def _verb(orders, tmp_path, monkeypatch, capsys):
    """Return a function that runs a verb here; the store is a new one, and the hub is orders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", orders.connection_string)
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:g.db")
    assert main(["store", "init"]) == OK
    capsys.readouterr()

    def run(*arguments):
        code = main(list(arguments))
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize("wrong", ["--consumer-group=billing", "--eventhub=order"])
def test_every_verb_refuses_a_group_or_a_hub_that_does_not_exist(verb, words, wrong):
    """It changes nothing, and its exit code is that of a wrong setting."""
    code, out, err = verb(*words.split(), *VERBS[words], "--eventhub=orders", wrong)

    assert (code, out) == (BAD_INPUT, "")
    assert "billing" in err or "there is no such event hub" in err


@pytest.mark.parametrize(
    "words",
    [
        "status --format json",
        "status --format csv",
        "checkpoints list --format json",
        "checkpoints lag --format json",
        "checkpoints reset --to earliest --yes",
    ],
)
def test_a_group_that_no_process_has_served_is_said_to_be_unknown(verb, words):
    """It may be a new one, so the verb works; programs that read its output are not disturbed."""
    code, _, err = verb(*words.split(), "--eventhub=orders")

    assert code == OK
    assert "no process of consumer group '$Default' of event hub 'orders' at" in err
    assert "has ever run with this store: check --eventhub" in err


def test_a_verb_that_may_not_ask_the_hub_says_so(verb):
    """Without the hub, nobody knows whether there is such a group."""
    group = ["--consumer-group=billing", "--eventhub=orders", "--without-hub"]
    code, out, err = verb("status", "--format", "json", *group)

    assert (code, json.loads(out)["partitions"]) == (OK, [])
    assert "The hub was not asked whether this consumer group exists" in err


def test_a_group_of_resources_that_does_not_exist_is_said_to_be_unknown(verb):
    """The message names its options."""
    code, _, err = verb("status", "--format", "json", "--resources", "keys")

    assert code == OK
    assert "no process of group 'keys" in err
    assert "check --resources and --store" in err


def test_scale_votes_on_while_the_hub_is_away_at_its_start(orders, tmp_path, command):
    """An outage is no reason to stop voting; only what a retry cannot heal is."""
    place = ["--eventhub", "orders", "--store", "sqlite:g.db"]
    (tmp_path / "g.db").touch()
    orders.stop()
    scaling = command.start(
        *("scale", "--watch", "--every", "0.2s", *place),
        EVENTPROC_CONNECTION_STRING=orders.connection_string,
    )
    first = json.loads(scaling.stdout.readline())
    orders.start()
    second = json.loads(scaling.stdout.readline())

    assert "did not answer" in first["reason"]
    assert "error" not in second
