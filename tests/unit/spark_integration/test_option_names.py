"""An error of a connection names the option that Spark's user gave."""

from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eventproc.errors import ConfigurationError
from spark_integration.option_names import OPTIONS, naming_options


@asynccontextmanager
async def connection(error=None):
    """Yield a connection, or fail to connect."""
    if error is not None:
        raise error
    yield "opened"


async def test_an_error_of_connecting_names_the_option():
    """It stays the same error: Spark's retries look at the class, and people at the cause."""
    error = ConfigurationError("ca_bundle 'no.pem' cannot be read; my_ca_bundle_x is no setting")

    with pytest.raises(ConfigurationError) as raised:
        async with naming_options(connection(error)):
            pass

    assert raised.value is error
    assert str(error) == "caBundle 'no.pem' cannot be read; my_ca_bundle_x is no setting"


async def test_an_error_of_a_request_names_the_option():
    """A connection may be made only with the first request."""
    with pytest.raises(ConfigurationError, match="give proxy with both for opened"):
        async with naming_options(connection()) as opened:
            raise ConfigurationError(f"give http_proxy with both for {opened}")


async def test_other_errors_are_left_alone():
    """They are not of this library."""
    with pytest.raises(ValueError, match="ca_bundle"):
        async with naming_options(connection()):
            raise ValueError("ca_bundle")


def test_the_options_are_documented():
    """With their names of today."""
    page = (Path(__file__).parents[3] / "docs/spark.md").read_text("utf-8")

    assert all(f"`{option}`" in page for option in OPTIONS.values())
