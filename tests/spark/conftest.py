"""One small Spark session for all tests, and hubs for it to read.

There is one session in a run, because starting Java takes longer than any test. A test removes the
queries and settings that it leaves in the session.
"""

import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

import spark_integration
from eventproc.emulator import EventHubsEmulator
from tests.spark import faulty_hub

if TYPE_CHECKING:  # Where Spark is missing, its tests are skipped: this file is imported first.
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tests.spark.standalone import Standalone

HERE = Path(__file__).parent
KAFKA_SOURCE = sorted((HERE.parents[1] / ".tools/kafka_source/jars").glob("*.jar"))
"""Spark's own source for Kafka, of Spark 4.2."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of what the installed PySpark does not have yet."""
    out = [item for item in items if any(map(_is_newer, item.iter_markers("since")))]
    if find_spec("delta") is None:  # no release admits the newest PySpark
        out += [item for item in items if item.get_closest_marker("delta")]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def _is_newer(since: pytest.Mark) -> bool:
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        return False  # its tests are skipped
    return minor_of(installed) < minor_of(since.args[0])


def minor_of(release: str) -> tuple[int, ...]:
    """Return the numbers of a minor version."""
    return tuple(map(int, release.split(".")[:2]))


HUB = "orders"
PARTITIONS = 3
COUNT = 200
"""Events in each partition but the last, which is empty."""

SETTINGS = {
    "spark.master": "local[2,4]",  # two tasks at a time, four attempts for each
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "Asia/Kolkata",  # an unusual one: no result may depend on it
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    # Compiling costs more than it gains where every query runs once.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


LOG_TO_FILE = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""


@dataclass(frozen=True)
class SparkLogs:
    """The folder to which Spark writes its logs."""

    directory: Path

    @property
    def text(self) -> Path:
        """The log file that operators read."""
        return self.directory / "spark.log"

    @property
    def events(self) -> Path:
        """The event log, which the history server shows."""
        return self.directory / "events"


@pytest.fixture(scope="session")
def spark_logs(tmp_path_factory: pytest.TempPathFactory) -> SparkLogs:
    """Return the folder of Spark's logs."""
    logs = SparkLogs(tmp_path_factory.mktemp("spark-logs"))
    logs.events.mkdir()
    (logs.directory / "log4j2.properties").write_text(LOG_TO_FILE.format(file=logs.text))
    return logs


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that tests share with the recipes in Spark's workers."""
    folder: Path = tmp_path_factory.mktemp("shared")
    return folder


@pytest.fixture(scope="session")
def environment(shared_folder: Path) -> dict[str, str]:
    """Return environment variables of Spark's Python workers.

    Workers inherit the environment of Java, so they do not see a variable that is set later.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        "PYTHONPATH": str(HERE),  # recipes and handlers are modules beside this file
        faulty_hub.FOLDER: str(shared_folder),
        "EVENTPROC_CONNECTION_STRING": (
            f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
        ),
    }


@pytest.fixture(scope="session")
def spark(spark_logs: SparkLogs, environment: dict[str, str]) -> Iterator["SparkSession"]:
    """Yield the session."""
    from pyspark import __version__  # noqa: PLC0415 - see the imports above
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.appName("tests")
    places = {
        "spark.jars": ",".join(map(str, KAFKA_SOURCE)) if minor_of(__version__) >= (4, 2) else "",
        "spark.eventLog.dir": spark_logs.events.as_uri(),
        "spark.driver.extraJavaOptions": (
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
            f"-Dlog4j2.configurationFile={spark_logs.directory}/log4j2.properties"
        ),
    }
    for name, value in {**SETTINGS, **places}.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:  # or processes of other tests would inherit it
        for name, value in environment.items():
            patch.setenv(name, value)
        session = builder.getOrCreate()
    spark_integration.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Standalone"]:
    """Yield a standalone cluster. Its drivers are separate programs."""
    from tests.spark.standalone import standalone  # noqa: PLC0415 - see the imports above

    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(name="published", scope="session")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of a hub, published once: Azure's producer takes a second for each hub."""
    directory: Path = tmp_path_factory.mktemp("published") / "logs"
    with EventHubsEmulator({HUB: PARTITIONS}, directory=directory) as emulator:
        for partition_id in range(PARTITIONS - 1):
            publish(emulator, str(partition_id), *(b"%d" % number for number in range(COUNT)))
    return directory


@pytest.fixture(name="emulator")
def _emulator(published: Path, tmp_path: Path) -> Iterator[EventHubsEmulator]:
    """Yield an emulator for one test, with the published events."""
    shutil.copytree(published, tmp_path / "logs")
    with EventHubsEmulator({HUB: PARTITIONS}, directory=tmp_path / "logs") as emulator:
        yield emulator


def publish(emulator: EventHubsEmulator, partition_id: str, *bodies: bytes) -> None:
    """Publish events with Azure's own producer."""
    publish_events(emulator, partition_id, *map(EventData, bodies))


def publish_events(
    emulator: EventHubsEmulator, partition_id: str | None, *events: EventData, **batch: str
) -> None:
    """Publish events in one batch with Azure's own producer."""
    if partition_id is not None:
        batch["partition_id"] = partition_id
    sent: list[EventData | AmqpAnnotatedMessage] = [*events]
    with EventHubProducerClient.from_connection_string(
        emulator.connection_string_for(HUB)
    ) as producer:
        producer.send_batch(sent, **batch)  # type: ignore[arg-type]


Place = tuple[str, int]
"""Partition id and sequence number."""


def places(rows: "list[Row]") -> list[Place]:
    """Return the places of rows, sorted."""
    return sorted((row["partition"], row["sequenceNumber"]) for row in rows)


def expected(partition_id: str, begin: int, end: int) -> list[Place]:
    """Return the places of the events of one range."""
    return [(partition_id, number) for number in range(begin, end)]


@dataclass
class Stream:
    """A query that records, for each batch, the places of its rows; it can be run repeatedly.

    Its offsets stay in ``location``, as after the crash of a driver.
    """

    spark: "SparkSession"
    location: Path
    options: dict[str, str]
    batches: dict[int, list[list[Place]]] = field(default_factory=dict)
    """By batch id, the rows of every run of the batch."""

    fails_in: set[int] = field(default_factory=set)
    """Batches whose writing fails after the rows were read."""

    def frame(self) -> "DataFrame":
        stream = self.spark.readStream.format("eventproc").options(**self.options)
        return stream.schema("partition string, sequenceNumber long").load()

    def start(self, **trigger: Any) -> "StreamingQuery":
        def keep(batch: "DataFrame", batch_id: int) -> None:
            found = places(batch.collect())
            # At once: the test reads this from another thread, and expects a run of each batch.
            self.batches[batch_id] = [*self.batches.get(batch_id, ()), found]
            if batch_id in self.fails_in:
                raise RuntimeError("the sink failed")

        writer = self.frame().writeStream.foreachBatch(keep)
        location = str(self.location)
        return writer.option("checkpointLocation", location).trigger(**trigger).start()

    def run(self) -> None:
        """Read all events of the hub, and end."""
        query = self.start(availableNow=True)
        query.awaitTermination()

    def lose_last_commit(self) -> int:
        """Delete the commit of the last batch, as if the driver was killed before it wrote it."""
        last = max(self.location.glob("commits/[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        return int(last.name)

    def seen(self) -> list[Place]:
        """Return all places of the last run of each batch."""
        return sorted(place for runs in self.batches.values() for place in runs[-1])


@pytest.fixture
def stream(
    spark: "SparkSession", emulator: EventHubsEmulator, tmp_path: Path
) -> Iterator[Callable[..., Stream]]:
    """Return a function that makes a stream that reads ``emulator``, from options."""

    def make(**options: str) -> Stream:
        given = {"connectionString": emulator.connection_string_for(HUB), **options}
        return Stream(spark, tmp_path / "checkpoint", given)

    yield make
    for query in spark.streams.active:
        query.stop()
