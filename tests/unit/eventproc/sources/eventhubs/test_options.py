"""Options that cannot work raise when they are built."""

import ssl
from datetime import timedelta

import pytest

from eventproc import HttpProxy
from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import EventHubOptions, ReceivePath


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


def test_the_repr_of_options_does_not_show_the_proxys_password():
    """Options may be logged."""
    options = EventHubOptions(http_proxy=HttpProxy(host="p", port=8080, password="hush"))

    assert "hush" not in repr(options)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (None, ReceivePath.DIRECT),
        ("", ReceivePath.DIRECT),
        ("direct", ReceivePath.DIRECT),
        ("Public ", ReceivePath.PUBLIC),
    ],
)
def test_the_environment_sets_the_default_of_receive_path(monkeypatch, given, path):
    """An empty variable counts as not set, as in many deployments."""
    monkeypatch.delenv("EVENTPROC_RECEIVE_PATH", raising=False)
    if given is not None:
        monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", given)

    assert EventHubOptions().receive_path is path


@pytest.mark.parametrize("path", ReceivePath)
def test_an_explicit_receive_path_overrides_the_environment(monkeypatch, path):
    """Even an invalid variable is not read then."""
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "nonsense")

    assert EventHubOptions(receive_path=path).receive_path is path


def test_an_unknown_receive_path_in_the_environment_is_refused(monkeypatch):
    """The message has the variable, its value, and the valid ones."""
    monkeypatch.setenv("EVENTPROC_RECEIVE_PATH", "promised")

    with pytest.raises(
        ConfigurationError, match=r"_RECEIVE_PATH is 'promised': set it to direct or public"
    ):
        EventHubOptions()
