"""An error that concerns a setting names it apart from the message."""

import pickle

import pytest

from eventproc import ConfigurationError, EventProcessorConfig
from eventproc._command import main

REFUSED = ConfigurationError(
    "give a shorter one",
    setting="batch_wait",
    value="1 s",
    beside={"stall_timeout": "0.5 s", "ca_bundle": ""},
)


def test_the_text_names_the_setting_with_its_value_and_those_beside_it():
    """As a sentence that begins with what was given."""
    assert str(REFUSED) == (
        "batch_wait is 1 s, stall_timeout is 0.5 s and ca_bundle: give a shorter one"
    )
    assert str(ConfigurationError("there is no hub")) == "there is no hub"


def test_a_front_end_shows_its_own_names_and_a_pickle_keeps_them():
    """The message stays as it is."""
    copied = pickle.loads(pickle.dumps(REFUSED))
    copied.name_settings({"batch_wait": "--batch-wait", "ca_bundle": "--ca-bundle"})
    again = pickle.loads(pickle.dumps(copied))

    assert (again.setting, again.value, again.message) == ("--batch-wait", "1 s", REFUSED.message)
    assert str(again) == str(copied)
    assert str(again).startswith(
        "--batch-wait is 1 s, stall_timeout is 0.5 s and --ca-bundle: give"
    )
    assert REFUSED.setting == "batch_wait"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--expiration", "5s"], "--expiration is 5 s and --interval is 10 s: give at least 3 "),
        (["--interval", "0s"], "--interval is 0 s: give more than 0 s"),
        (["--attempts", "0"], "--attempts is 0: give 1 or more"),
        (["--batch-min", "5"], "--batch-min is 5 and --batch-wait is not given: "),
        (["--weight", "2"], "--weight is 2 and --placement is Even: only the placement Weighted"),
        (["--key-concurrency", "x"], "Invalid value for '--key-concurrency'"),
    ],
)
def test_the_command_names_the_options_that_were_typed(options, message, monkeypatch, capsys):
    """And not the settings of Python behind them."""
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", "kafka://localhost:9092")
    given = ["run", "eventproc.testing:Nothing", "--eventhub", "o", "--store", "sqlite:x.db"]

    assert main([*given, *options]) == 2
    assert f"eventproc: {message}" in capsys.readouterr().err


def test_the_same_error_from_python_names_the_setting():
    """With value and remedy."""
    with pytest.raises(ConfigurationError) as refused:
        EventProcessorConfig(batch_min=5)

    assert refused.value.setting == "batch_min"
    assert str(refused.value).startswith("batch_min is 5 and batch_wait is not given: the last ")
