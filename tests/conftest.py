"""The test bench: markers by directory, seeds, coroutines as tests, a guard, real storage.

Rule 1: a test is marked by where it lies, never by hand.
Rule 2: storage is real; it comes from ``EVENTPROC_TEST_STORAGE`` (a connection string), else from
an Azurite that is started here.
"""

import asyncio
import inspect
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

from eventproc.sources.eventhubs.options import ReceivePath, receive_path_by_default
from eventproc.testing.azurite import Azurite

HERE = Path(__file__).parent
MARKED_DIRECTORIES = ("architecture", "contract", "integration", "simulation", "spark")
GUARDED_DIRECTORIES = ("unit", "simulation")
SEEDS_BY_DEFAULT = 25

settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=200, derandomize=True)
settings.register_profile("night", settings.get_profile("dev"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Take SIGINT as everybody does, for the programs that tests start and interrupt.

    Where the tests run in the background of a script, the shell has had it ignored, and whoever
    is started inherits that.
    """
    if receive_path_by_default() is ReceivePath.PROMISED:
        # Azure's client leaves the connection of a link that was displaced or cut to the garbage
        # collector, and there is no public way to close it.
        config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")
        config.addinivalue_line("filterwarnings", "ignore:loop is closed:ResourceWarning")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Say how events are received where a test does not say it."""
    return f"receive path: {receive_path_by_default().value}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--seeds``: how many worlds a simulation is run in."""
    parser.addoption("--seeds", type=int, default=SEEDS_BY_DEFAULT, help="seeds per simulation")
    parser.addoption("--first-seed", type=int, default=0, help="the first of them")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a ``seed`` once for each; the seed is then part of its name."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed")
        count = metafunc.config.getoption("--seeds")
        metafunc.parametrize("seed", range(first, first + count))


def directory_of(item: pytest.Item) -> str:
    """Return the directory below ``tests`` that an item lies in, or nothing."""
    if HERE not in item.path.parents:
        return ""
    return item.path.relative_to(HERE).parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its directory."""
    for item in items:
        if directory_of(item) in MARKED_DIRECTORIES:
            item.add_marker(directory_of(item))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run ``async def test_...`` in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(autouse=True)
def _nothing_blocks_the_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose code sleeps, reads or writes synchronously inside an event loop."""
    if directory_of(request.node) not in GUARDED_DIRECTORIES:
        yield
        return
    with blockbuster_ctx(["eventproc", "checkpointstores"]) as guard:
        # A logged exception shows source lines, which are read once and kept.
        for name in ("os.stat", "io.BufferedReader.read", "io.TextIOWrapper.read"):
            if name in guard.functions:
                guard.functions[name].can_block_in("linecache.py", {"checkcache", "updatecache"})
        # What measures the tests takes a lock of its own for each file that it meets.
        guard.functions["threading.Lock.acquire"].can_block_in(
            "coverage/collector.py", {"lock_data"}
        )
        # Inside a running loop a stage works in a thread, and the test waits for it.
        guard.functions["threading.Lock.acquire"].can_block_in(
            "testing/stage.py", {"_call", "__exit__"}
        )
        yield


@pytest.fixture(scope="session")
def storage() -> Iterator[str]:
    """Yield the connection string of a real blob storage; ask for a ``container``, too."""
    given = os.environ.get("EVENTPROC_TEST_STORAGE")
    if given:
        yield given
        return
    with Azurite() as azurite:
        yield azurite.connection_string


@pytest.fixture
def container(storage: str) -> Iterator[str]:
    """Yield the name of an empty container in ``storage``."""
    name = f"test-{uuid.uuid4().hex}"
    with ContainerClient.from_connection_string(storage, name) as client:
        client.create_container()
        yield name
        client.delete_container()


@pytest.fixture
def azurite(tmp_path: Path) -> Iterator[Azurite]:
    """Yield an Azurite that belongs to this test alone, to be stopped, restarted and paused."""
    location = tmp_path / "azurite"
    location.mkdir()
    with Azurite(location=location) as own:
        yield own
