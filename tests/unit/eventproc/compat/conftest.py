"""The drop-in needs the direct receive path, whatever path the other tests are run with."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _direct_path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVENTPROC_RECEIVE_PATH", "direct")
        yield
