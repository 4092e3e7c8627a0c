"""The options of the emulator: its hubs, and how clients reach it."""

from pathlib import Path

import pytest

from eventproc._command.verbs.emulator import ServingOptions, parse_hub
from eventproc.emulator import Right, TokenRules
from eventproc.errors import ConfigurationError


def test_without_options_any_token_is_taken():
    """Neither a certificate nor rules are needed."""
    ServingOptions().check()

    assert ServingOptions().token_rules() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ServingOptions(certificate=Path("a")), "--certificate needs --key"),
        (ServingOptions(key=Path("a")), "--key needs --certificate"),
    ],
)
def test_a_certificate_and_its_key_belong_together(options, message):
    """The message names the option that is missing."""
    with pytest.raises(ConfigurationError, match=message):
        options.check()


def test_checked_tokens_give_every_identity_all_rights():
    """``--check-tokens`` alone knows no identities."""
    assert ServingOptions(check_tokens=True).token_rules() == TokenRules()


def test_rights_are_those_of_each_identity():
    """The case of a right does not matter; others have none."""
    rules = ServingOptions(rights=["anna:listen, Send", "bert:Manage"]).token_rules()

    assert rules == TokenRules(
        rights_by_identity={
            "anna": frozenset({Right.LISTEN, Right.SEND}),
            "bert": frozenset({Right.MANAGE}),
        }
    )


@pytest.mark.parametrize("text", ["", "anna", "anna:", ":Listen", "anna:Read", "anna:Listen,"])
def test_rights_of_another_form_are_refused(text):
    """The message has the value, the form and the possible rights."""
    with pytest.raises(ConfigurationError, match=f"--rights is {text!r}: .* Listen, Send, Manage"):
        ServingOptions(rights=[text]).token_rules()


def test_an_identity_that_is_named_twice_is_refused():
    """Neither of the two would be what was meant."""
    with pytest.raises(ConfigurationError, match="names identity 'anna' twice"):
        ServingOptions(rights=["anna:Listen", "anna:Send"]).token_rules()


@pytest.mark.parametrize("text", ["orders", "orders:", ":8", "orders:many", "orders:-1"])
def test_a_hub_without_name_or_partition_count_is_refused(text):
    """The message shows the form."""
    with pytest.raises(ConfigurationError, match=r"--hub is .*NAME:PARTITIONS"):
        parse_hub(text)


def test_a_hub_is_a_name_and_a_partition_count():
    """As in ``orders:8``."""
    assert parse_hub("orders:8") == ("orders", 8)
