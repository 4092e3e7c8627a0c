"""The address of a proxy, as a URL and in its parts."""

import pytest

from eventproc._base.network import HttpProxy
from eventproc.errors import ConfigurationError


def test_a_url_has_host_port_and_user():
    """Special characters of a password are encoded."""
    proxy = HttpProxy.from_url("http://anna:p%40ss@proxy:8080")

    assert (proxy.host, proxy.port, proxy.username, proxy.password) == (
        "proxy",
        8080,
        "anna",
        "p@ss",
    )
    assert proxy.url == "http://proxy:8080"
    assert proxy.url_with_user == "http://anna:p%40ss@proxy:8080"


def test_a_proxy_without_a_user_and_with_an_ipv6_address():
    """Brackets belong to the URL, not to the host."""
    proxy = HttpProxy.from_url("http://[::1]:3128/")

    assert (proxy.host, proxy.username) == ("::1", None)
    assert proxy.url == proxy.url_with_user == "http://[::1]:3128"


@pytest.mark.parametrize(
    "url",
    [
        "proxy:8080",
        "https://proxy:8080",
        "http://u:hush@proxy",
        "http://u:hush@proxy:x",
        "http://u:hush@proxy:8080/path",
        "http://u:hush@:8080",
        "http://u:hush@proxy:8080?a=b",
        "",
    ],
)
def test_another_form_is_refused_without_the_password(url):
    """The message is the same for all of them."""
    with pytest.raises(ConfigurationError, match="http://HOST:PORT") as caught:
        HttpProxy.from_url(url)

    assert "hush" not in str(caught.value)
