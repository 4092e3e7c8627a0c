"""The response codes of the broker say whether another attempt may help."""

import pytest

from eventproc.errors import SourceRejectedError, SourceUnavailableError
from eventproc.sources.rabbitmq.streams.errors import PERMANENT, TEXTS, error_for


@pytest.mark.parametrize("code", sorted(TEXTS))
def test_a_known_code_has_its_cause_in_the_message(code):
    """And the request that failed."""
    error = error_for("asking", code)
    kind = SourceRejectedError if code in PERMANENT else SourceUnavailableError

    assert type(error) is kind
    assert str(error) == f"asking: {TEXTS[code]} (code {code})"


@pytest.mark.parametrize("code", [6, 14, 15, 99, NotImplemented, None])
def test_other_codes_may_pass(code):
    """A stream without a leader, an error of the broker, a code that is not known."""
    assert type(error_for("asking", code)) is SourceUnavailableError


@pytest.mark.parametrize("code", [2, 8, 12, 16])
def test_a_missing_stream_and_a_refused_login_do_not_pass(code):
    """Nor do a virtual host that is missing, and a right."""
    assert type(error_for("asking", code)) is SourceRejectedError
