"""A task publishes its rows over connections that later tasks of the process use again."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

import pyarrow as pa
import pytest

from eventproc.errors import EventRefusedError, SourceRejectedError, SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.ports import EventPublisher
from spark_integration._errors import PublishFailedError
from spark_integration._publish.connections import OPEN_MAX, Connections
from spark_integration._publish.options import PublishOptions
from spark_integration._publish.targets import FunctionTarget
from spark_integration._publish.writer import publish_rows

PLACE = "tests.unit.spark_integration._publish.test_writer"


class Service:
    """What the publishers of this file publish to."""

    def __init__(self) -> None:
        self.stored: list[bytes | None] = []
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.failures: list[Exception] = []
        self.open_failures: list[Exception] = []
        self.close_failures: list[Exception] = []


class Publisher(EventPublisher):
    """Publishes to ``SERVICE``."""

    numbers = count()

    def __init__(self) -> None:
        self.number = next(self.numbers)

    async def open(self) -> None:
        if SERVICE.open_failures:
            raise SERVICE.open_failures.pop()
        SERVICE.opened.append(self.number)

    async def close(self) -> None:
        SERVICE.closed.append(self.number)
        if SERVICE.close_failures:
            raise SERVICE.close_failures.pop()

    async def publish(self, events: Sequence[OutgoingEvent], *, patience: timedelta) -> None:
        if SERVICE.failures:
            raise SERVICE.failures.pop()
        SERVICE.stored.extend(event.body for event in events)


SERVICE = Service()


def publisher() -> Publisher:
    """Return what a recipe returns."""
    return Publisher()


@dataclass(frozen=True)
class Other(FunctionTarget):
    """One of several targets."""

    function: str = f"{PLACE}:publisher"
    name: int = 0


@asynccontextmanager
async def with_credential() -> AsyncIterator[Publisher]:
    """Yield an open publisher, as a recipe that closes a credential afterwards does."""
    async with Publisher() as opened:
        yield opened


@pytest.fixture(name="connections")
def _connections() -> Iterator[Connections]:
    SERVICE.__init__()  # type: ignore[misc]
    made = Connections()
    yield made
    made.close()


def options(function: str = "publisher") -> PublishOptions:
    return PublishOptions(
        target=FunctionTarget(function=f"{PLACE}:{function}"), patience=timedelta(seconds=5)
    )


def rows(*sizes: int) -> Iterator[pa.RecordBatch]:
    """Return Arrow batches of these sizes; bodies are numbered."""
    number = count()
    for size in sizes:
        bodies = [b"%d" % next(number) for _ in range(size)]
        yield pa.record_batch({"body": pa.array(bodies, pa.binary())})


@pytest.mark.parametrize("function", ["publisher", "with_credential"])
def test_a_task_publishes_all_rows_in_order(connections, function):
    """Every Arrow batch is acknowledged before the next; their number is returned."""
    published = publish_rows(options(function), rows(2, 3), connections)

    assert published == 5
    assert SERVICE.stored == [b"0", b"1", b"2", b"3", b"4"]


def test_a_task_without_rows_connects_to_nothing(connections):
    """Spark runs such tasks."""
    assert publish_rows(options(), rows(), connections) == 0
    assert SERVICE.opened == []


def test_tasks_of_one_process_share_a_connection(connections):
    """Connecting takes longer than a small batch."""
    publish_rows(options(), rows(1), connections)
    publish_rows(options(), rows(1), connections)

    assert (len(SERVICE.opened), SERVICE.closed) == (1, [])


def test_the_connections_of_a_process_are_limited(connections):
    """The one that was used least recently is closed."""
    for name in range(OPEN_MAX + 1):
        publish_rows(PublishOptions(target=Other(name=name)), rows(1), connections)

    assert SERVICE.closed == SERVICE.opened[:1]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (EventRefusedError(1, "it is too large"), "row 4 of the rows cannot.*: it is too large"),
        (SourceRejectedError("no right"), "rows 3 to 5 of the rows are not known.*: no right"),
        (SourceUnavailableError("no answer"), "rows 3 to 5 of the rows are not known.*no answer"),
    ],
)
def test_a_failure_fails_the_task_and_names_the_rows(connections, failure, words):
    """The connection is closed, and the next attempt at the task makes a new one."""

    def failing() -> Iterator[pa.RecordBatch]:
        first, second = rows(2, 3)
        yield first
        SERVICE.failures.append(failure)
        yield second

    with pytest.raises(PublishFailedError, match=words):
        publish_rows(options(), failing(), connections)
    publish_rows(options(), rows(5), connections)

    assert SERVICE.stored == [b"0", b"1", b"0", b"1", b"2", b"3", b"4"]
    assert len(SERVICE.opened) == 2
    assert SERVICE.closed == SERVICE.opened[:1]


def test_connecting_is_repeated_while_there_is_no_answer(connections):
    """As sending is, up to ``operationTimeout``."""
    SERVICE.open_failures += [SourceUnavailableError("no answer")] * 2
    publish_rows(options(), rows(1), connections)

    assert SERVICE.stored == [b"0"]


def test_a_connection_whose_close_fails_is_not_used_again(connections, caplog):
    """A recipe's own publisher may raise then. The task's error is that of its rows."""
    SERVICE.failures.append(SourceUnavailableError("no answer"))
    SERVICE.close_failures.append(OSError("it is closed already"))
    with pytest.raises(PublishFailedError, match="no answer"):
        publish_rows(options(), rows(1), connections)
    publish_rows(options(), rows(1), connections)

    assert "publisher_close_failed" in caplog.text
    assert SERVICE.stored == [b"0"]
    assert len(SERVICE.opened) == 2
