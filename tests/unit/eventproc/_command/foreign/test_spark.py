"""The position of a Spark query: the end of the last batch that it committed."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventproc._command.foreign.spark import QueryFolder
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup

HERE = Path(__file__).parents[5]
GOLDEN = HERE / "tests/integration/positions/golden"
GROUP = ConsumerGroup(fully_qualified_namespace="host", eventhub_name="Orders")
OURS, CONNECTOR = QueryFolder(is_ours=True), QueryFolder(is_ours=False)
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795784441492,"conf":{}}'


def line(**following: int) -> str:
    """Return an offset as the connector for Event Hubs and the Kafka source write it."""
    return json.dumps({"orders": {key.strip("p"): value for key, value in following.items()}})


def put(folder: Path, planned: dict[int, list[str]], committed: list[int], version="v1") -> Path:
    """Write the logs of a query."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(exist_ok=True)
    for batch, lines in planned.items():
        text = "\n".join([version, METADATA, *lines])
        (folder / "offsets" / str(batch)).write_text(text)
        (folder / "offsets" / f".{batch}.crc").write_bytes(b"\0")
    for batch in committed:
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def found(reader: QueryFolder, folder: Path) -> dict[str, tuple[str | None, int | None]]:
    """Return offset and number of the last handled event of each partition."""
    positions = reader.find(folder, GROUP).positions
    return {p.partition_id: (p.offset, p.sequence_number) for p in positions}


@pytest.mark.parametrize(("name", "reader"), [("spark", OURS), ("spark-kafka", CONNECTOR)])
def test_the_location_of_a_genuine_query_is_read(tmp_path, name, reader):
    """Spark stores the next event: 5 after event 4, and 0 before the first one."""
    text = (GOLDEN / f"{name}.json").read_text().replace("{namespace}", "host")
    for path, content in json.loads(text).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)

    assert found(reader, tmp_path) == {"0": (None, 4), "1": ("-1", -1)}


def test_a_batch_that_was_planned_and_not_committed_does_not_count(tmp_path):
    """Its events are delivered again, and the user is told."""
    put(tmp_path, {8: [line(p0=5)], 9: [line(p0=7)]}, [7, 8])
    read = CONNECTOR.find(tmp_path, GROUP)

    assert [p.sequence_number for p in read.positions] == [4]
    assert "batch 9 was planned and not committed" in read.notes[0]


def test_of_several_sources_the_one_of_the_hub_is_read(tmp_path):
    """A source without an offset has a dash, and other sources have other forms."""
    put(tmp_path, {0: ["-", "17", '{"payments":{"0":9}}', line(p0=5, p10=7)]}, [0])

    assert found(CONNECTOR, tmp_path) == {"0": (None, 4), "10": (None, 6)}


@pytest.mark.parametrize(
    ("planned", "committed", "message"),
    [
        ({}, [], "no batch of this query was committed"),
        ({0: [line(p0=5)]}, [], "no batch of this query was committed"),
        ({0: ['{"payments":{"0":9}}']}, [0], "has 0 sources of event hub 'Orders'.*'payments'"),
        ({0: [line(p0=5), line(p0=6)]}, [0], "has 2 sources of event hub 'Orders'"),
        ({0: ['{"version":1,"hub":"host/orders","next":{"0":5}}']}, [0], "spark:FOLDER for"),
        ({0: [line(p0=-1)]}, [0], "partition '0' is at -1, which is no number of an event"),
        ({0: [line(p0=2**64)]}, [0], "which is no number of an event"),
        ({0: ['{"orders":{"0":true}}']}, [0], "is at True"),
        ({0: ['{"orders":{"0":5.0}}']}, [0], "is at 5.0"),
        ({0: ['{"orders":{"a/b":5}}']}, [0], "without slashes"),
        ({0: ['{"orders":[5]}']}, [0], "has no positions of partitions"),
    ],
)
def test_a_location_without_a_position_of_the_hub_is_refused(tmp_path, planned, committed, message):
    """The message names what is there."""
    put(tmp_path, planned, committed)

    with pytest.raises(ConfigurationError, match=message):
        CONNECTOR.find(tmp_path, GROUP)


def test_a_folder_that_is_none_of_a_query_is_refused(tmp_path):
    """The message says which folder is meant."""
    with pytest.raises(ConfigurationError, match="give the checkpointLocation of a query"):
        OURS.find(tmp_path / "nowhere", GROUP)


def test_an_offset_log_of_another_format_is_refused(tmp_path):
    """Spark 4.3 can write a second one, whose lines mean something else."""
    put(tmp_path, {0: [line(p0=5)]}, [0], version="v2")

    with pytest.raises(ConfigurationError, match="format 'v2', and format 'v1' is read"):
        CONNECTOR.find(tmp_path, GROUP)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=300)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["orders", "next", "hub", "version", "0"]), inner)
        ),
        max_leaves=9,
    ).map(lambda value: f"v1\n{METADATA}\n{json.dumps(value)}".encode())
)
def test_any_offset_log_is_read_or_refused(tmp_path, content):
    """Whatever is in the file; a position that is read is one of 64 bits."""
    put(tmp_path, {0: []}, [0])
    (tmp_path / "offsets/0").write_bytes(content)
    for reader in (OURS, CONNECTOR):
        try:
            positions = reader.find(tmp_path, GROUP).positions
        except ConfigurationError:
            continue
        assert all(-1 <= (p.sequence_number or 0) < 2**63 for p in positions)
