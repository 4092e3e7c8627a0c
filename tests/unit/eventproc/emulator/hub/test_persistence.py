"""Logs on disk: what was written is there again, whatever the last write was cut to."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator import EmulatorConfiguration, Retention, hubs_of
from eventproc.emulator.amqp.encoding import encode
from eventproc.emulator.amqp.message import draft_of
from eventproc.emulator.amqp.refusal import RefusedError
from eventproc.emulator.amqp.values import Described, ULong
from eventproc.emulator.hub.hub import Namespace
from eventproc.emulator.hub.log import PartitionLog
from eventproc.emulator.hub.persistence import PartitionFile, partition_path
from eventproc.errors import ConfigurationError

sizes = st.lists(st.lists(st.integers(0, 200), min_size=1, max_size=4), max_size=6)


def drafts(lengths):
    """Events of these sizes."""
    return [draft_of(encode(Described(ULong(0x75), b"x" * length))) for length in lengths]


def write(path, batches, *, sync=False):
    """Write batches to a log on disk; the log as it is in memory."""
    file = PartitionFile(path, sync=sync)
    log = file.load(1)
    for now_ms, lengths in enumerate(batches):
        events = log.place(drafts(lengths), now_ms)
        file.append(events)
        log.append(events)
    file.close()
    return log


def load(path):
    """Read a log from disk, and let go of the file."""
    file = PartitionFile(path)
    log = file.load(2)
    file.close()
    return log


def everything(log: PartitionLog):
    """Every event that a log keeps."""
    return log.read(0, 10**6, 10**9)


@given(batches=sizes, sync=st.booleans())
def test_a_log_is_the_same_after_a_restart(tmp_path_factory, batches, sync):
    """Events, and the numbers that come next."""
    path = tmp_path_factory.mktemp("log") / "0.log"
    written = write(path, batches, sync=sync)

    loaded = load(path)

    assert everything(loaded) == everything(written)
    assert loaded.properties() == written.properties()
    assert loaded.next_offset == written.next_offset


@given(batches=sizes.filter(bool), data=st.data())
def test_a_torn_end_costs_only_what_is_torn(tmp_path_factory, batches, data):
    """Cut anywhere: the whole records before the cut are there, and writing goes on behind them."""
    path = tmp_path_factory.mktemp("log") / "0.log"
    written = everything(write(path, batches))
    raw = path.read_bytes()
    head = len(raw) - sum(len(event.payload) + 32 for event in written)
    cut = data.draw(st.integers(head, len(raw)))
    garbage = data.draw(st.binary(max_size=50))
    path.write_bytes(raw[:cut] + garbage)

    loaded = everything(load(path))
    again = everything(write(path, [[7]]))

    assert loaded == written[: len(loaded)]
    assert sum(len(event.payload) + 32 for event in written[: len(loaded) + 1]) > cut - head or (
        len(loaded) == len(written)
    )
    assert again[:-1] == loaded
    assert [event.sequence_number for event in again] == list(range(len(loaded) + 1))


def test_a_flipped_bit_ends_the_log(tmp_path):
    """A record whose checksum is wrong is not delivered, nor what comes behind it."""
    path = tmp_path / "0.log"
    written = everything(write(path, [[10], [20], [30]]))
    raw = bytearray(path.read_bytes())
    raw[-100] ^= 1
    path.write_bytes(raw)

    loaded = everything(load(path))

    assert loaded == written[: len(loaded)]
    assert len(loaded) < 3


def test_what_lies_behind_a_broken_record_never_comes_back(tmp_path):
    """Even when the next record fills the gap to the byte."""
    path = tmp_path / "0.log"
    first, second, _ = everything(write(path, [[10], [20], [30]]))
    raw = bytearray(path.read_bytes())
    raw[raw.index(second.payload)] ^= 1
    path.write_bytes(raw)

    again = everything(write(path, [[20]]))

    assert everything(load(path)) == again
    assert [event.offset for event in again] == [first.offset, second.offset]


def test_numbering_outlives_the_events(tmp_path):
    """When all has expired and the file was written anew, it goes on where it was."""
    path = tmp_path / "0.log"
    file = PartitionFile(path, compact_above=0)
    log = file.load(1)
    events = log.place(drafts([10, 20, 30]), 5)
    file.append(events)
    log.append(events)
    size = path.stat().st_size
    before = log.byte_count
    log.expire(Retention(age_max=timedelta(0)), 6)
    file.expired(before, log)
    file.close()

    loaded = load(path)

    assert len(loaded) == 0
    assert loaded.next_sequence_number == 3
    assert loaded.next_offset == log.next_offset
    assert path.stat().st_size < size


def test_a_file_of_something_else_is_not_touched(tmp_path):
    """It is said which file, and what to do."""
    path = tmp_path / "0.log"
    path.write_text("shopping list\n" * 10)

    with pytest.raises(ConfigurationError, match="move it away"):
        load(path)

    assert path.read_text().startswith("shopping list")


def test_a_hub_s_name_is_never_a_path(tmp_path):
    """Names may hold dots and spaces; files stay inside the directory."""
    path = partition_path(tmp_path, "..", "0")

    assert path.resolve().is_relative_to(tmp_path)


def configured(directory, partition_count):
    """A namespace of one hub on disk."""
    return Namespace(
        EmulatorConfiguration(hubs=hubs_of({"orders": partition_count}), directory=directory)
    )


def test_a_hub_may_grow_but_not_shrink(tmp_path):
    """Silently hiding the events of partitions that are no longer configured would lose them."""
    configured(tmp_path, 2).close()
    configured(tmp_path, 4).close()

    with pytest.raises(ConfigurationError, match="cannot shrink"):
        configured(tmp_path, 3)


def test_a_directory_belongs_to_one_emulator(tmp_path):
    """Two that append to the same files would tear them."""
    first = configured(tmp_path, 1)

    with pytest.raises(ConfigurationError, match="another emulator"):
        configured(tmp_path, 1)

    first.close()
    configured(tmp_path, 1).close()


def test_a_hub_keeps_the_time_of_its_creation(tmp_path):
    """Over restarts, like everything it tells about itself."""
    first = configured(tmp_path, 1)
    first.close()
    second = configured(tmp_path, 1)
    second.close()

    assert first.hub("orders").created_ms == second.hub("orders").created_ms


def test_what_could_not_be_written_is_refused_and_not_kept(tmp_path):
    """The disk is full: the producer is told, and the file ends where it ended."""
    resource = pytest.importorskip("resource")
    namespace = configured(tmp_path, 1)
    partition = namespace.hub("orders").partition("0")
    partition.publish(drafts([100]))
    size = partition_path(tmp_path, "orders", "0").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, before[1]))
    try:
        with pytest.raises(RefusedError, match="Not written"):
            partition.publish(drafts([100_000]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    partition.publish(drafts([200]))
    kept = everything(partition.log)
    namespace.close()

    loaded = everything(load(partition_path(tmp_path, "orders", "0")))

    assert loaded == kept
    assert [event.sequence_number for event in loaded] == [0, 1]


def test_events_that_were_dropped_stay_dropped(tmp_path):
    """A restart does not bring back what a test let expire."""
    namespace = configured(tmp_path, 1)
    partition = namespace.hub("orders").partition("0")
    partition.publish(drafts([1, 2, 3]))
    partition.drop_before(2)
    namespace.close()

    again = configured(tmp_path, 1)
    kept = everything(again.hub("orders").partition("0").log)
    again.close()

    assert [event.sequence_number for event in kept] == [2]
