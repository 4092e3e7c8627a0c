"""Options that cannot work are refused when they are built."""

import ssl
from datetime import timedelta

import pytest

from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import EventHubOptions, HttpProxy


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"prefetch": 0}, "prefetch is 0"),
        ({"prefetch": 10_001}, "prefetch is 10001"),
        ({"silence_max": timedelta(milliseconds=999)}, "silence_max"),
        ({"connect_timeout": timedelta(0)}, "connect_timeout"),
        ({"ca_bundle": "ca.pem", "ssl_context": ssl.create_default_context()}, "not both"),
    ],
)
def test_an_option_that_cannot_work_is_refused(wrong, named):
    """The message names it."""
    with pytest.raises(ConfigurationError, match=named):
        EventHubOptions(**wrong)


def test_a_proxy_s_password_is_not_shown():
    """Options end up in logs."""
    options = EventHubOptions(http_proxy=HttpProxy(host="p", port=8080, password="hush"))

    assert "hush" not in repr(options)
