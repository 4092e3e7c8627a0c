"""The URL of a storage account."""

import pytest

from eventproc._base.azure_storage.account import (
    AUTHORITY_VARIABLE,
    account_url,
    require_account,
    require_endpoint,
)
from eventproc.errors import ConfigurationError


@pytest.mark.parametrize(
    ("account", "url"),
    [
        ("contoso", "https://contoso.blob.core.windows.net"),
        ("contoso.blob.core.usgovcloudapi.net", "https://contoso.blob.core.usgovcloudapi.net"),
        ("https://127.0.0.1:10000/dev/", "https://127.0.0.1:10000/dev"),
        ("http://127.0.0.1:10000/dev", "http://127.0.0.1:10000/dev"),
    ],
)
def test_an_account_is_a_name_a_host_or_a_url(account, url):
    """A slash at the end is left out."""
    assert account_url(account, option="storageAccount") == url


@pytest.mark.parametrize(
    ("account", "url"),
    [
        ("contoso", "https://contoso.table.core.windows.net"),
        ("contoso.table.core.windows.net", "https://contoso.table.core.windows.net"),
        ("https://contoso.blob.core.windows.net", "https://contoso.table.core.windows.net"),
        ("http://127.0.0.1:10002/dev", "http://127.0.0.1:10002/dev"),
    ],
)
def test_the_address_of_another_service_of_the_account_is_adapted(account, url):
    """One --storage-account serves a store of tables and dead letters in blobs."""
    assert account_url(account, option="storageAccount", service="table") == url


@pytest.mark.parametrize("account", ["Con/toso", "", "no", "Contoso", "a.b/c"])
def test_anything_else_is_refused(account):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=r"^storageAccount is .*: give the account's name"):
        account_url(account, option="storageAccount")


@pytest.mark.parametrize(("service", "other"), [("blob", "Table"), ("table", "Blob")])
def test_a_connection_string_with_the_endpoints_of_other_services_alone_is_refused(service, other):
    """A client would look for a host that the string does not name."""
    given = f"AccountName=shop;AccountKey=aHVzaA==;{other}Endpoint=http://127.0.0.1:1/shop"
    own = f"{service.upper()}Endpoint=http://127.0.0.1:2/shop"
    with pytest.raises(
        ConfigurationError,
        match=rf"has {other}Endpoint=\.\.\. and no {service.capitalize()}Endpoint=",
    ) as refused:
        require_endpoint(given, service)

    assert "aHVzaA" not in str(refused.value)
    require_endpoint(f"{given}; {own}", service)


@pytest.mark.parametrize(
    "given", ["AccountName=shop;AccountKey=aHVzaA==", "UseDevelopmentStorage=true"]
)
def test_a_connection_string_without_any_endpoint_is_accepted(given):
    """Its services have the usual addresses."""
    require_endpoint(given, "blob")


@pytest.mark.parametrize(
    ("hub", "authority", "domain"),
    [
        ("", "", "windows.net"),
        ("contoso.servicebus.usgovcloudapi.net", "", "usgovcloudapi.net"),
        ("Endpoint=sb://contoso.servicebus.chinacloudapi.cn/;EntityPath=x", "", "chinacloudapi.cn"),
        ("", "https://login.microsoftonline.us", "usgovcloudapi.net"),
        ("", "login.chinacloudapi.cn", "chinacloudapi.cn"),
        ("contoso.servicebus.windows.net", "login.microsoftonline.us", "windows.net"),
        ("127.0.0.1:5671", "login.microsoftonline.us", "usgovcloudapi.net"),
    ],
)
@pytest.mark.parametrize("service", ["blob", "table"])
def test_an_accounts_name_is_one_in_the_cloud_that_is_in_use(
    monkeypatch, hub, authority, domain, service
):
    """The hub tells it, or the variable that tells it to azure-identity."""
    monkeypatch.setenv(AUTHORITY_VARIABLE, authority)
    url = account_url("contoso", option="--storage-account", service=service, hub=hub)

    assert url == f"https://contoso.{service}.core.{domain}"


@pytest.mark.parametrize("address", ["http://azurite", "http://azurite:10000/", "https://azurite"])
def test_the_development_proxy_is_the_address_of_azurite(address):
    """Azure's clients for Python ignore it, and connect to this machine."""
    given = f"UseDevelopmentStorage=true;DevelopmentStorageProxyUri={address}"
    scheme = address.partition(":")[0]

    assert f"BlobEndpoint={scheme}://azurite:10000/dev" in require_endpoint(given, "blob")
    assert f"TableEndpoint={scheme}://azurite:10002/dev" in require_endpoint(given, "table")


def test_a_development_proxy_that_is_no_address_is_refused():
    """A host alone is none."""
    with pytest.raises(
        ConfigurationError, match=r"ProxyUri=azurite is not a URL: give .* http://azurite"
    ):
        require_endpoint("UseDevelopmentStorage=true;DevelopmentStorageProxyUri=azurite", "blob")


@pytest.mark.parametrize(
    "url",
    [
        "https://contoso.blob.core.windows.net",
        "http://127.0.0.1:10000/contoso",
        "http://azurite:10000/contoso?sig=x",
    ],
)
def test_an_address_with_its_account_is_accepted(url):
    """In the host's name, or in the path."""
    require_account(url)
