"""The failure policy of the command line, and the exit code of a stop."""

import pytest

from eventproc._command.terminal.exits import FAILED, OK
from eventproc._command.verbs.run import GiveUp, _exit_code, _failure_policy
from eventproc._delivery.config import FailureAction, FailurePolicy
from eventproc._delivery.handler import BlockingPartitionHandler, PartitionHandler
from eventproc.decoders import JsonDecoder
from eventproc.errors import ConfigurationError

NO_LIMIT = FailurePolicy()


class Plain(PartitionHandler):
    """Decodes nothing."""


class Typed(PartitionHandler[object]):
    """Decodes each body."""

    decode = JsonDecoder()


class BlockingTyped(BlockingPartitionHandler[object]):
    """Chooses its decoder when it is made."""

    @property
    def decode(self):  # type: ignore[override]
        """Return the decoder."""
        return JsonDecoder()


def make_handler():
    """Return a handler: a function instead of a class."""
    return Typed()


@pytest.mark.parametrize("handler", [Typed, BlockingTyped, make_handler])
def test_a_handler_that_decodes_gives_events_up_without_a_limit(handler):
    """What a function returns is not known yet, so it may decode, too."""
    stored = _failure_policy(NO_LIMIT, None, "blob:dead", handler)
    skipped = _failure_policy(NO_LIMIT, GiveUp.SKIP, "", handler)

    assert (stored.action, stored.attempts_max) == (FailureAction.DEAD_LETTER, None)
    assert skipped.action is FailureAction.SKIP


@pytest.mark.parametrize(
    ("give_up", "dead_letters", "option"),
    [(None, "blob:dead", "--dead-letters"), (GiveUp.SKIP, "", "--give-up")],
)
def test_without_a_decoder_or_a_limit_no_event_would_be_given_up(give_up, dead_letters, option):
    """The message says how to set a limit, and which option to leave out."""
    with pytest.raises(ConfigurationError, match=f"--attempts or --deliveries.* {option}$"):
        _failure_policy(NO_LIMIT, give_up, dead_letters, Plain)

    policy = _failure_policy(FailurePolicy(attempts_max=3), give_up, dead_letters, Plain)
    assert policy.attempts_max == 3


@pytest.mark.parametrize(
    ("abandoned", "code", "words"),
    [((), OK, ""), (("3",), FAILED, "partition 3:"), (("0", "3"), FAILED, "partitions 0, 3:")],
)
def test_a_stop_without_all_checkpoints_has_failed(abandoned, code, words, capsys):
    """Events of these partitions are delivered again."""
    assert _exit_code(abandoned) == code
    assert words in capsys.readouterr().err
