"""What the options about failures amount to."""

import pytest

from eventproc.cli.arguments.delivery import GiveUp, failure_policy
from eventproc.config import FailureAction, FailurePolicy
from eventproc.errors import ConfigurationError


def test_dead_letters_need_a_limit():
    """Without one, nothing would ever be given up."""
    with pytest.raises(ConfigurationError, match="set a limit with --attempts or --deliveries"):
        failure_policy(FailurePolicy(), None, "blob:dead")
    with pytest.raises(ConfigurationError, match="leave out --give-up"):
        failure_policy(FailurePolicy(), GiveUp.SKIP, "")


def test_a_handler_with_a_decoder_needs_no_limit():
    """A body that it cannot decode is given up at once; what fails later is retried for ever."""
    policy = failure_policy(FailurePolicy(), None, "blob:dead", decodes=True)

    assert (policy.action, policy.attempts_max) == (FailureAction.DEAD_LETTER, None)
