"""Fixtures and hooks of all tests: markers, seeds, coroutines as tests, guards, storage.

Tests are marked by their directory, not by hand. Blob storage is a real one: the connection string
in ``EVENTPROC_TEST_STORAGE``, or an Azurite that is started here.
"""

import asyncio
import gc
import inspect
import logging
import os
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import ContainerClient
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

import eventproc.columns  # noqa: F401 - Its import reads files: no test may do so in a loop.
from eventproc._base import logs
from eventproc.sources.eventhubs._options import ReceivePath, receive_path_by_default
from eventproc.testing._azurite import Azurite
from eventproc.testing._virtual_time import run_virtual
from tests.servers.kafka_broker import KafkaBroker
from tests.servers.postgres_server import PostgresServer
from tests.servers.rabbitmq_broker import RabbitMqBroker, find_rabbitmq

MARKED_DIRECTORIES = ("architecture", "contract", "integration", "simulation", "spark")
GUARDED_DIRECTORIES = ("unit", "scenarios", "simulation")
WATCHED_DIRECTORIES = (*GUARDED_DIRECTORIES, "contract")
VIRTUAL_FOLDERS = frozenset({"scenarios", "_delivery", "_group", "_runtime"})
"""What waits in the tests of these folders takes no time."""

ASYNCIO_ERROR = re.compile("never retrieved|was destroyed but it is pending")
"""asyncio's log messages on an exception that was not retrieved, and on a pending task."""

OF_COMMAND = re.compile("EVENTPROC_(?!TEST_|RECEIVE_PATH$|AZURITE$)")
"""Environment variables of the command's options; the others are of the tests themselves."""

NEXT_NEEDS_KAFKA = pytest.StashKey[bool]()

SEEDS_BY_DEFAULT = 25
SEEDS_OF_QUICK_TESTS = 1
"""``make test`` plays so many of them; ``make test-long`` plays the others."""

settings.register_profile(
    "dev", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.register_profile("ci-long", settings.get_profile("ci"), max_examples=200)
settings.register_profile("night", settings.get_profile("dev"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Restore the default action of SIGINT, for the programs that tests start and interrupt.

    A shell ignores SIGINT in background processes of a script, and their children inherit that.
    """
    if receive_path_by_default() is ReceivePath.PUBLIC:
        # Azure's client does not close the connection of a link that was stolen or lost, and
        # there is no public way to close it.
        config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")
        config.addinivalue_line("filterwarnings", "ignore:loop is closed:ResourceWarning")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Show the default receive path."""
    return f"receive path: {receive_path_by_default().value}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--seeds`` and ``--first-seed``, the seeds of simulations."""
    parser.addoption("--seeds", type=int, default=SEEDS_BY_DEFAULT, help="seeds per simulation")
    parser.addoption("--first-seed", type=int, default=0, help="the first seed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with a parameter ``seed`` once for each seed."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed")
        count = metafunc.config.getoption("--seeds")
        quick = range(first, first + SEEDS_OF_QUICK_TESTS)
        metafunc.parametrize(
            "seed",
            [
                seed if seed in quick else pytest.param(seed, marks=pytest.mark.long)
                for seed in range(first, first + count)
            ],
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Note whether the next test needs Kafka: a fixture of it, or a case of that name."""
    name, fixtures = getattr(nextitem, "nodeid", ""), getattr(nextitem, "fixturenames", ())
    item.stash[NEXT_NEEDS_KAFKA] = "kafka" in name or "kafka" in fixtures


def directory_of(item: pytest.Item | pytest.Module) -> str:
    """Return the directory of an item below ``tests``, or an empty string."""
    top, _, below = item.nodeid.partition("/")
    return below.partition("/")[0] if top == "tests" else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its directory."""
    for item in items:
        if directory_of(item) in MARKED_DIRECTORIES:
            item.add_marker(directory_of(item))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run ``async def test_...`` in its own event loop; that of some folders has virtual time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    folders = pyfuncitem.nodeid.partition("::")[0].split("/")
    is_virtual = not VIRTUAL_FOLDERS.isdisjoint(folders) and not pyfuncitem.get_closest_marker(
        "real_time"
    )
    run = run_virtual if is_virtual else asyncio.run
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session", autouse=True)
def _no_options_of_the_shell() -> Iterator[None]:
    """Run the command as if the shell had set none of its options, such as ``EVENTPROC_STORE``."""
    with pytest.MonkeyPatch.context() as patch:
        for name in filter(OF_COMMAND.match, [*os.environ]):
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True)
def _no_processor_of_other_tests():
    """Forget processors that were started: text lines differ from the second one on."""
    logs._processors.clear()


@pytest.fixture(scope="module", autouse=True)
def _no_blocking_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail tests whose code sleeps, reads or writes synchronously inside an event loop.

    For a whole module, because putting guards around fifty functions takes a millisecond.
    """
    if directory_of(request.node) not in GUARDED_DIRECTORIES:
        yield
        return
    with blockbuster_ctx(["eventproc", "checkpointstores"]) as guard:
        # The traceback of a logged exception reads source lines once.
        for name in ("os.stat", "io.BufferedReader.read", "io.TextIOWrapper.read"):
            if name in guard.functions:
                guard.functions[name].can_block_in("linecache.py", {"checkcache", "updatecache"})
        # Coverage takes a lock for each new file.
        guard.functions["threading.Lock.acquire"].can_block_in(
            "coverage/collector.py", {"lock_data"}
        )
        # A child process is started within milliseconds.
        guard.functions["os.read"].can_block_in("subprocess.py", {"_execute_child"})
        # In a running loop, a test harness works in a thread, and the test waits for it.
        guard.functions["threading.Lock.acquire"].can_block_in(
            "_harness/harness.py", {"_call", "__exit__"}
        )
        # The database of a rehearsal is in memory.
        for name in guard.functions:
            if name.startswith("sqlite3."):
                guard.functions[name].can_block_in("_rehearsal/database.py", {"carry_out", "rows"})
        yield


class AsyncioErrors(logging.Handler):
    """Collects asyncio's log messages on exceptions not retrieved and on pending tasks."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, with its traceback."""
        text = logging.Formatter().format(record)
        if ASYNCIO_ERROR.search(text):
            self.messages.append(text)


@pytest.fixture(scope="module", autouse=True)
def _no_lost_tasks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a module whose tests leave a pending task or an exception that was not retrieved.

    The message names the coroutine. Not for each test, because that would take a third of the time
    of most. What was imported so far is exempted, which makes the collection much faster.
    """
    if directory_of(request.node) not in WATCHED_DIRECTORIES:
        yield
        return
    gc.collect()
    gc.freeze()
    errors = AsyncioErrors()
    logger = logging.getLogger("asyncio")
    logger.addHandler(errors)
    try:
        yield
        gc.collect()
    finally:
        logger.removeHandler(errors)
    assert not errors.messages, "\n".join(errors.messages)


@pytest.fixture(scope="session")
def storage() -> Iterator[str]:
    """Yield the connection string of a blob storage; most tests use ``container`` as well."""
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
        with suppress(ResourceExistsError):  # The client asks again after a slow answer.
            client.create_container()
        yield name
        client.delete_container()


@pytest.fixture
def azurite(tmp_path: Path) -> Iterator[Azurite]:
    """Yield an Azurite for one test, which may stop, restart and pause it."""
    location = tmp_path / "azurite"
    location.mkdir()
    with Azurite(location=location) as own:
        yield own


@pytest.fixture(scope="session", name="has_rabbitmq")
def _has_rabbitmq() -> None:
    """Skip the tests of RabbitMQ where it cannot be had."""
    find_rabbitmq()


@pytest.fixture(scope="session")
def rabbitmq(has_rabbitmq: None) -> Iterator[RabbitMqBroker]:
    """Yield one broker; a test declares queues with names of its own.

    ``conftest.scope_of`` runs the tests that need it in one process, because a broker takes ten
    seconds to start.
    """
    with RabbitMqBroker() as broker:
        yield broker


@pytest.fixture(scope="session", name="kafka_of_process")
def _kafka_of_process() -> Iterator[KafkaBroker]:
    """Yield a broker that is not started."""
    broker = KafkaBroker()
    yield broker
    broker.remove()


@pytest.fixture
def kafka(request: pytest.FixtureRequest, kafka_of_process: KafkaBroker) -> Iterator[KafkaBroker]:
    """Yield one broker for the tests of one process; a test uses topics of its own.

    It ends with the last test in a row that needs it: an idle one takes an eighth of a core.
    """
    kafka_of_process.start()
    yield kafka_of_process
    if not request.node.stash[NEXT_NEEDS_KAFKA]:
        kafka_of_process.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Yield one PostgreSQL server; a test uses a schema of its own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def tables() -> Iterator[Azurite]:
    """Yield an Azurite with its table service; a test uses a table of its own."""
    with Azurite(has_tables=True) as azurite:
        yield azurite
